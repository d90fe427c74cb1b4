package api

import (
	"path"
	"strconv"

	"fermata/engine/files"
)

// fileEncoders are the shapes of a file in a list, by what the client calls them.
var fileEncoders = map[string]func(files.File) []byte{
	"simple":     encodeFileName,
	"summary":    encodeFileSummary,
	"full":       encodeFileFull,
	"normalized": encodeFileNormalized,
}

// objectName is the name of a file among all. Clients take the id to be what stands
// between the slash and the first dot.
func objectName(f files.File) string { return f.Session + "/" + f.ID + path.Ext(f.Name) }

func lastModified(f files.File) string {
	return f.Modified.UTC().Format("2006-01-02T15:04:05.000Z")
}

func (o *object) number(name string, value int64) {
	o.raw(name, strconv.AppendInt(nil, value, 10))
}

func (o *object) bool(name string, value bool) {
	o.raw(name, strconv.AppendBool(nil, value))
}

func encodeFileName(f files.File) []byte { return encodeText(objectName(f)) }

func encodeFileSummary(f files.File) []byte {
	var o object
	o.text("name", objectName(f))
	o.number("size", f.Size)
	o.text("lastModified", lastModified(f))
	o.text("etag", f.ETag)
	return o.end()
}

func encodeFileFull(f files.File) []byte {
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

func encodeFileNormalized(f files.File) []byte {
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
func encodeFileObject(f files.File) []byte {
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

func encodeUpload(session string, list []uploaded) []byte {
	o := uploadHead("success", session)
	o.raw("files", encodeList(list, func(f uploaded) []byte {
		var file object
		file.text("filename", f.name)
		file.text("fileId", f.id)
		return file.end()
	}))
	return o.end()
}

func encodeBatch(message, session string, list []uploaded, failed int, limitReached bool) []byte {
	o := uploadHead(message, session)
	o.raw("files", encodeList(list, func(f uploaded) []byte {
		var file object
		if f.err != nil {
			file.text("status", "error")
			file.text("filename", f.name)
			file.text("error", f.err.text)
			return file.end()
		}
		file.text("status", "success")
		file.text("filename", f.name)
		file.text("fileId", f.id)
		return file.end()
	}))
	o.number("succeeded", int64(len(list)-failed))
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
