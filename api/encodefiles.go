package api

import (
	"path"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"fermata/engine/workspace"
)

// fileEncoders are the shapes of a file in a list, by what the client calls them.
var fileEncoders = map[string]func(workspace.File) []byte{
	"simple":     encodeFileName,
	"summary":    encodeFileSummary,
	"full":       encodeFileFull,
	"normalized": encodeFileNormalized,
}

func encodeList(files []workspace.File, encode func(workspace.File) []byte) []byte {
	list := []byte{'['}
	for i, f := range files {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, encode(f)...)
	}
	return append(list, ']')
}

// objectName is the name of a file among all. Clients take the id to be what stands
// between the slash and the first dot.
func objectName(f workspace.File) string { return f.Session + "/" + f.ID + path.Ext(f.Name) }

func lastModified(f workspace.File) string {
	return f.Modified.UTC().Format("2006-01-02T15:04:05.000Z")
}

func (o *object) number(name string, value int64) {
	o.raw(name, strconv.AppendInt(nil, value, 10))
}

func (o *object) bool(name string, value bool) {
	o.raw(name, strconv.AppendBool(nil, value))
}

func encodeFileName(f workspace.File) []byte {
	// Names have been checked to be UTF-8.
	name, _ := jsontext.AppendQuote(nil, objectName(f))
	return name
}

func encodeFileSummary(f workspace.File) []byte {
	var o object
	o.text("name", objectName(f))
	o.number("size", f.Size)
	o.text("lastModified", lastModified(f))
	o.text("etag", f.ETag)
	return o.end()
}

func encodeFileFull(f workspace.File) []byte {
	var metadata, o object
	metadata.text("original-filename", f.Name)
	metadata.text("content-type", f.Type)
	o.text("name", objectName(f))
	o.text("id", f.ID)
	o.text("session_id", f.Session)
	o.text("storage_session_id", f.Session)
	o.number("size", f.Size)
	o.text("lastModified", lastModified(f))
	o.text("etag", f.ETag)
	o.text("contentType", f.Type)
	o.raw("metadata", metadata.end())
	return o.end()
}

func encodeFileNormalized(f workspace.File) []byte {
	var o object
	o.text("id", f.ID)
	o.text("name", f.Name)
	o.text("storage_session_id", f.Session)
	o.number("size", f.Size)
	o.text("contentType", f.Type)
	o.text("lastModified", lastModified(f))
	if f.ReadOnly {
		o.bool("read_only", true)
	}
	return o.end()
}

// encodeFileObject is what is said of a single file.
func encodeFileObject(f workspace.File) []byte {
	var o object
	o.text("lastModified", lastModified(f))
	o.text("originalFilename", f.Name)
	o.text("name", objectName(f))
	o.number("size", f.Size)
	o.text("etag", f.ETag)
	o.text("contentType", f.Type)
	o.bool("readOnly", f.ReadOnly)
	return o.end()
}

// An uploaded file is one of the files of a request: stored, or refused for err.
type uploaded struct {
	name string
	id   string
	err  *failure
}

func encodeUpload(session string, files []uploaded) []byte {
	o := uploadHead("success", session)
	o.raw("files", encodeEach(files, func(o *object, f uploaded) {
		o.text("filename", f.name)
		o.text("fileId", f.id)
	}))
	return o.end()
}

func encodeBatch(message, session string, files []uploaded, failed int, limitReached bool) []byte {
	o := uploadHead(message, session)
	o.raw("files", encodeEach(files, func(o *object, f uploaded) {
		if f.err != nil {
			o.text("status", "error")
			o.text("filename", f.name)
			o.text("error", f.err.text)
			return
		}
		o.text("status", "success")
		o.text("filename", f.name)
		o.text("fileId", f.id)
	}))
	o.number("succeeded", int64(len(files)-failed))
	o.number("failed", int64(failed))
	if limitReached {
		o.bool("filesLimitReached", true)
		o.number("maxFiles", maxUploads)
	}
	return o.end()
}

// uploadHead begins the answer to an upload. Newer and older hosts have different
// names for the session.
func uploadHead(message, session string) object {
	var o object
	o.text("message", message)
	o.text("storage_session_id", session)
	o.text("session_id", session)
	return o
}

func encodeEach(files []uploaded, encode func(*object, uploaded)) []byte {
	list := []byte{'['}
	for i, f := range files {
		if i > 0 {
			list = append(list, ',')
		}
		var o object
		encode(&o, f)
		list = append(list, o.end()...)
	}
	return append(list, ']')
}
