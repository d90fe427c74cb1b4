package librechat

import (
	"path"

	"fermata/engine/files"
)

// objectName is the name of a file among all files. Clients take the part between the slash
// and the first dot for its id.
func objectName(f files.File) string { return f.Session + "/" + f.ID + path.Ext(f.Name) }

func lastModified(f files.File) string {
	return f.Modified.UTC().Format("2006-01-02T15:04:05.000Z")
}

// inDetail returns a file in the form that a client has asked for.
func inDetail(detail string, f files.File) any {
	switch detail {
	case "summary":
		return fileSummary{objectName(f), f.Size, lastModified(f), f.ETag, f.Name}
	case "full":
		return fullFile{
			Name: objectName(f), ID: f.ID, SessionID: f.Session, StorageSession: f.Session,
			Size: f.Size, LastModified: lastModified(f), ETag: f.ETag, ContentType: f.Type,
			Metadata: fileMetadata{f.Name, f.Type}, Filename: f.Name,
		}
	case "normalized":
		return normalizedFile{f.ID, f.Name, f.Session, f.Size, f.Type, lastModified(f), f.ReadOnly}
	}
	return objectName(f)
}

type fileSummary struct {
	Name         string `json:"name"`
	Size         int64  `json:"size"`
	LastModified string `json:"lastModified"`
	ETag         string `json:"etag"`
	Filename     string `json:"filename"`
}

type fullFile struct {
	Name           string       `json:"name"`
	ID             string       `json:"id"`
	SessionID      string       `json:"session_id"`
	StorageSession string       `json:"storage_session_id"`
	Size           int64        `json:"size"`
	LastModified   string       `json:"lastModified"`
	ETag           string       `json:"etag"`
	ContentType    string       `json:"contentType"`
	Metadata       fileMetadata `json:"metadata"`
	Filename       string       `json:"filename"`
}

type fileMetadata struct {
	Name string `json:"original-filename"`
	Type string `json:"content-type"`
}

type normalizedFile struct {
	ID             string `json:"id"`
	Name           string `json:"name"`
	StorageSession string `json:"storage_session_id"`
	Size           int64  `json:"size"`
	ContentType    string `json:"contentType"`
	LastModified   string `json:"lastModified"`
	ReadOnly       bool   `json:"read_only,omitzero"`
}

// A fileObject is the answer to a question for a single file.
type fileObject struct {
	LastModified string `json:"lastModified"`
	Filename     string `json:"originalFilename"`
	Name         string `json:"name"`
	Size         int64  `json:"size"`
	ETag         string `json:"etag"`
	ContentType  string `json:"contentType"`
	ReadOnly     bool   `json:"readOnly"`
}

// A deletedAnswer says that a file was deleted.
type deletedAnswer struct {
	Message   string `json:"message"`
	SessionID string `json:"session_id"`
	FileID    string `json:"fileId"`
}

// An uploadAnswer is the answer to an upload. Newer and older clients have different names
// for the session.
type uploadAnswer struct {
	Message        string     `json:"message"`
	StorageSession string     `json:"storage_session_id"`
	SessionID      string     `json:"session_id"`
	Files          []uploaded `json:"files"`
}

// A batchAnswer is the answer to an upload of which a part may have failed.
type batchAnswer struct {
	uploadAnswer
	Succeeded    int  `json:"succeeded"`
	Failed       int  `json:"failed"`
	LimitReached bool `json:"filesLimitReached,omitzero"`
	MaxFiles     int  `json:"maxFiles,omitzero"`
}

// An uploaded file is one of the files of a request, either stored or refused with an Error. Its
// Status is told in a batch only. ID, Name and SessionID say the same as other members: with them the
// entry is a reference, as programs take it.
type uploaded struct {
	Status    string `json:"status,omitempty"`
	Filename  string `json:"filename"`
	FileID    string `json:"fileId,omitempty"`
	ID        string `json:"id,omitempty"`
	Name      string `json:"name,omitempty"`
	SessionID string `json:"session_id,omitempty"`
	Error     string `json:"error,omitempty"`
}
