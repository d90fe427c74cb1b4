package harness

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
	"testing"
)

// A FileRef is how a client refers to a file in a request.
type FileRef struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Session  string `json:"session_id,omitempty"`
	Storage  string `json:"storage_session_id,omitempty"`
	Resource string `json:"resource_id,omitempty"`
	Kind     string `json:"kind,omitempty"`
	Version  int    `json:"version,omitempty"`
}

// As returns the reference under another name.
func (f FileRef) As(name string) FileRef {
	f.Name = name
	return f
}

// A LeftFile is a file that a program leaves, as the answer describes it.
type LeftFile struct {
	FileRef
	Size         *int64 `json:"size"`
	Mime         string `json:"mime"`
	URL          string `json:"url"`
	Inherited    bool   `json:"inherited"`
	ModifiedFrom *struct {
		ID      string `json:"id"`
		Storage string `json:"storage_session_id"`
	} `json:"modified_from"`
}

// LeftFiles are the members of an answer that are about files.
type LeftFiles struct {
	Files    []LeftFile `json:"files"`
	Deleted  []string   `json:"deleted_files"`
	Delivery *struct {
		Code, Status                 string
		Attempted, Delivered, Failed int
	} `json:"artifact_delivery"`
	Truncation *struct {
		Code    string         `json:"code"`
		Reasons map[string]int `json:"reasons"`
		Skipped []string       `json:"skipped"`
		Count   int            `json:"skipped_count"`
	} `json:"artifact_truncation"`
}

// Names returns the name of each file in an answer, followed by "inherited" or "modified" if it
// was an input of the program.
func (l LeftFiles) Names() (names []string) {
	for _, f := range l.Files {
		switch {
		case f.Inherited:
			names = append(names, f.Name+" inherited")
		case f.ModifiedFrom != nil:
			names = append(names, f.Name+" modified")
		default:
			names = append(names, f.Name)
		}
	}
	return names
}

// File returns the file with this name, and fails the test if there is none.
func (a Answer) File(t testing.TB, name string) LeftFile {
	t.Helper()
	i := slices.IndexFunc(a.Files, func(f LeftFile) bool { return f.Name == name })
	if i < 0 {
		t.Fatalf("got %v, want a file %s in it", a, name)
	}
	return a.Files[i]
}

// Leaves checks which files an answer has, by what Names returns.
func (a Answer) Leaves(t testing.TB, want ...string) {
	t.Helper()
	if got := a.Names(); !slices.Equal(got, want) {
		t.Errorf("files = %q, want %q (%v)", got, want, a)
	}
}

// A Reply is the answer to a request of the file routes.
type Reply struct {
	HTTPStatus int
	Header     http.Header
	Body       string
}

func (r Reply) String() string { return fmt.Sprintf("%d %.1000s", r.HTTPStatus, r.Body) }

// SendFiles sends a request to a file route.
func (c Client) SendFiles(method, path, contentType string, body io.Reader) (Reply, error) {
	r, err := http.NewRequest(method, c.URL+path, body)
	if err != nil {
		return Reply{}, err
	}
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	return c.replyTo(r)
}

// SendRange asks for a part of a file, as the header Range names it.
func (c Client) SendRange(path, part string) (Reply, error) {
	r, err := http.NewRequest(http.MethodGet, c.URL+path, nil)
	if err != nil {
		return Reply{}, err
	}
	r.Header.Set("Range", part)
	return c.replyTo(r)
}

func (c Client) replyTo(r *http.Request) (Reply, error) {
	c.Authorize(r)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return Reply{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return Reply{response.StatusCode, response.Header, string(text)}, err
}

// Files sends a request without a body to a file route.
func (c Client) Files(t testing.TB, method, path string) Reply {
	t.Helper()
	r, err := c.SendFiles(method, path, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A Form is a multipart body: first the fields, then the files.
type Form struct {
	Fields map[string]string
	Files  []FormFile
}

// A FormFile is one file of a form.
type FormFile struct{ Name, Content string }

// OneFile returns a form with one file and no fields.
func OneFile(name, content string) Form { return Form{Files: []FormFile{{name, content}}} }

// With returns the form with one more field.
func (f Form) With(name, value string) Form {
	fields := map[string]string{name: value}
	maps.Copy(fields, f.Fields)
	f.Fields = fields
	return f
}

// Encode returns the body and its content type.
func (f Form) Encode() (body *bytes.Buffer, contentType string, err error) {
	body = &bytes.Buffer{}
	w := multipart.NewWriter(body)
	for name, value := range f.Fields {
		if err := w.WriteField(name, value); err != nil {
			return nil, "", err
		}
	}
	for _, file := range f.Files {
		header := textproto.MIMEHeader{}
		name := strings.NewReplacer("\\", "\\\\", `"`, `\"`).Replace(file.Name)
		header.Set("Content-Disposition", `form-data; name="file"; filename="`+name+`"`)
		header.Set("Content-Type", "application/octet-stream")
		part, err := w.CreatePart(header)
		if err != nil {
			return nil, "", err
		}
		if _, err := io.WriteString(part, file.Content); err != nil {
			return nil, "", err
		}
	}
	return body, w.FormDataContentType(), w.Close()
}

// UploadTo sends a form to a file route.
func (c Client) UploadTo(t testing.TB, path string, f Form) Reply {
	t.Helper()
	body, contentType, err := f.Encode()
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.SendFiles(http.MethodPost, path, contentType, body)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Upload uploads the one file of a form and returns a reference to it.
func (c Client) Upload(t testing.TB, f Form) FileRef {
	t.Helper()
	r := c.UploadTo(t, "/upload", f)
	var body struct {
		Message string `json:"message"`
		Storage string `json:"storage_session_id"`
		Files   []struct {
			Name string `json:"filename"`
			ID   string `json:"fileId"`
		} `json:"files"`
	}
	if err := json.Unmarshal([]byte(r.Body), &body); err != nil || r.HTTPStatus != 200 || body.Message != "success" || len(body.Files) != 1 {
		t.Fatalf("POST /upload: got %v, want one file stored", r)
	}
	return FileRef{ID: body.Files[0].ID, Name: body.Files[0].Name, Storage: body.Storage}
}

// Download returns the contents of a file, and fails the test if it cannot.
func (c Client) Download(t testing.TB, f FileRef) string {
	t.Helper()
	r := c.Files(t, http.MethodGet, "/download/"+f.Storage+"/"+f.ID)
	if r.HTTPStatus != 200 {
		t.Fatalf("GET /download of %s: got %v, want its contents", f.Name, r)
	}
	return r.Body
}

// TryForeignFile checks that a client cannot reach a file of another principal, by any route.
// name is the client's, for messages.
func TryForeignFile(t *testing.T, c Client, name string, f FileRef) {
	t.Helper()
	file := f.Storage + "/" + f.ID
	for _, scope := range []string{"", "?kind=user", "?kind=user&id=alice", "?kind=agent&id=alice", "?kind=skill&id=alice&version=1", "?entity_id=alice"} {
		for _, route := range []struct{ method, path string }{
			{http.MethodGet, "/download/" + file},
			{http.MethodGet, "/sessions/" + f.Storage + "/objects/" + f.ID},
			{http.MethodDelete, "/files/" + file},
			{http.MethodDelete, "/sessions/" + f.Storage + "/objects/" + f.ID},
			{http.MethodGet, "/files/" + f.Storage},
		} {
			if got := c.Files(t, route.method, route.path+scope); got.HTTPStatus != 403 || got.Body != `{"error":"Unauthorized"}` {
				t.Errorf("%s %s%s as %s: got %v, want 403", route.method, route.path, scope, name, got)
			}
		}
	}
	for _, kind := range []string{"", "user", "agent", "skill"} {
		ref := FileRef{ID: f.ID, Name: "x", Storage: f.Storage, Resource: "alice", Kind: kind}
		if kind == "skill" {
			ref.Version = 1
		}
		c.Post(t, Program{Files: []FileRef{ref}, Code: "print(open('x').read())"}).Fails(t, 403, "Unauthorized file reference")
	}
	a := c.Post(t, Program{Session: f.Storage, Code: "print(os.listdir())\nopen('secret', 'w').write('overwritten')"})
	a.Completes(t, "[]\n")
	if a.Session == f.Storage {
		t.Errorf("%s runs in the session of another principal", name)
	}
}
