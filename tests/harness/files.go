package tests

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

// A fileRef is a file as a client refers to it.
type fileRef struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Session  string `json:"session_id,omitempty"`
	Storage  string `json:"storage_session_id,omitempty"`
	Resource string `json:"resource_id,omitempty"`
	Kind     string `json:"kind,omitempty"`
	Version  int    `json:"version,omitempty"`
}

// as returns the reference with another name.
func (f fileRef) as(name string) fileRef {
	f.Name = name
	return f
}

// A leftFile is a file in an answer.
type leftFile struct {
	fileRef
	Inherited    bool `json:"inherited"`
	ModifiedFrom *struct {
		ID      string `json:"id"`
		Storage string `json:"storage_session_id"`
	} `json:"modified_from"`
}

// leftFiles are what an answer says of files.
type leftFiles struct {
	Files    []leftFile `json:"files"`
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

// names returns the names of the files of an answer, each with what it is.
func (l leftFiles) names() (names []string) {
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

// file returns the file of this name.
func (a answer) file(t testing.TB, name string) leftFile {
	t.Helper()
	i := slices.IndexFunc(a.Files, func(f leftFile) bool { return f.Name == name })
	if i < 0 {
		t.Fatalf("got %v, want a file %s in it", a, name)
	}
	return a.Files[i]
}

// leaves checks the names of the files in an answer.
func (a answer) leaves(t testing.TB, want ...string) {
	t.Helper()
	if got := a.names(); !slices.Equal(got, want) {
		t.Errorf("files = %q, want %q (%v)", got, want, a)
	}
}

// A reply is what a server says to a request for files.
type reply struct {
	code   int
	header http.Header
	body   string
}

func (r reply) String() string { return fmt.Sprintf("%d %.1000s", r.code, r.body) }

// sendFiles sends a request for files.
func (c client) sendFiles(method, path, contentType string, body io.Reader) (reply, error) {
	r, err := http.NewRequest(method, c.url+path, body)
	if err != nil {
		return reply{}, err
	}
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	c.authorize(r)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return reply{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return reply{response.StatusCode, response.Header, string(text)}, err
}

// files sends a request for files that has no body.
func (c client) files(t testing.TB, method, path string) reply {
	t.Helper()
	r, err := c.sendFiles(method, path, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A form is a multipart body: fields, then files.
type form struct {
	fields map[string]string
	files  []formFile
}

type formFile struct{ name, content string }

// one returns a form with one file.
func one(name, content string) form { return form{files: []formFile{{name, content}}} }

// with returns the form with one more field.
func (f form) with(name, value string) form {
	fields := map[string]string{name: value}
	maps.Copy(fields, f.fields)
	f.fields = fields
	return f
}

// encode returns the body and its type.
func (f form) encode() (body *bytes.Buffer, contentType string, err error) {
	body = &bytes.Buffer{}
	w := multipart.NewWriter(body)
	for name, value := range f.fields {
		if err := w.WriteField(name, value); err != nil {
			return nil, "", err
		}
	}
	for _, file := range f.files {
		header := textproto.MIMEHeader{}
		name := strings.NewReplacer("\\", "\\\\", `"`, `\"`).Replace(file.name)
		header.Set("Content-Disposition", `form-data; name="file"; filename="`+name+`"`)
		header.Set("Content-Type", "application/octet-stream")
		part, err := w.CreatePart(header)
		if err != nil {
			return nil, "", err
		}
		if _, err := io.WriteString(part, file.content); err != nil {
			return nil, "", err
		}
	}
	return body, w.FormDataContentType(), w.Close()
}

// uploadTo sends a form to a route.
func (c client) uploadTo(t testing.TB, path string, f form) reply {
	t.Helper()
	body, contentType, err := f.encode()
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.sendFiles(http.MethodPost, path, contentType, body)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// upload uploads one file and returns a reference to it.
func (c client) upload(t testing.TB, f form) fileRef {
	t.Helper()
	r := c.uploadTo(t, "/upload", f)
	var body struct {
		Message string `json:"message"`
		Storage string `json:"storage_session_id"`
		Files   []struct {
			Name string `json:"filename"`
			ID   string `json:"fileId"`
		} `json:"files"`
	}
	if err := json.Unmarshal([]byte(r.body), &body); err != nil || r.code != 200 || body.Message != "success" || len(body.Files) != 1 {
		t.Fatalf("POST /upload: got %v, want one file stored", r)
	}
	return fileRef{ID: body.Files[0].ID, Name: body.Files[0].Name, Storage: body.Storage}
}

// download returns the contents of a file.
func (c client) download(t testing.TB, f fileRef) string {
	t.Helper()
	r := c.files(t, http.MethodGet, "/download/"+f.Storage+"/"+f.ID)
	if r.code != 200 {
		t.Fatalf("GET /download of %s: got %v, want its contents", f.Name, r)
	}
	return r.body
}
