package librechat

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"fermata/api"
	"fermata/engine/files"
)

// The encodings of the content of a file in a request.
const (
	encodingText   = "utf-8"
	encodingBase64 = "base64"
)

// inlineOf returns name and content of the i-th file of a request that contains the file. It does not
// check what the name may be.
func inlineOf(i int, m fileMembers) (name string, content []byte, err error) {
	for _, other := range []struct {
		name  string
		value jsontext.Value
	}{
		{"id", m.ID},
		{"fileId", m.FileID},
		{"session_id", m.Session},
		{"storage_session_id", m.StorageSession},
		{"resource_id", m.Resource},
		{"version", m.Version},
	} {
		if !isNull(other.value) {
			return "", nil, api.BadRequestf("files[%d] has content and %s: it is either a new file or a stored one", i, other.name)
		}
	}
	if kind, ok := unquote(m.Kind); !isNull(m.Kind) && (!ok || kind != files.KindUser) {
		return "", nil, api.BadRequestf("files[%d].kind must be user, since the file has content: new files belong to the user", i)
	}
	nameValue := orElse(m.Name, m.Filename)
	if isNull(nameValue) {
		return "", nil, api.BadRequestf("files[%d].name is missing", i)
	}
	name, ok := unquote(nameValue)
	if !ok {
		return "", nil, api.BadRequestf("files[%d].name must be a string", i)
	}
	if m.Content.Kind() != jsontext.KindString {
		return "", nil, api.BadRequestf("files[%d].content must be a string", i)
	}
	encoding := encodingText
	if !isNull(m.Encoding) {
		encoding, _ = unquote(m.Encoding)
	}
	content, halved := jsontext.AppendUnquote(nil, m.Content)
	switch {
	case encoding == encodingBase64:
		decoded, err := base64.StdEncoding.AppendDecode(nil, content)
		if err != nil {
			return "", nil, api.BadRequestf("files[%d].content is not base64 of the standard alphabet with padding", i)
		}
		return name, decoded, nil
	case encoding != encodingText:
		return "", nil, api.BadRequestf("files[%d].encoding must be %s or %s", i, encodingBase64, encodingText)
	case halved != nil:
		return "", nil, api.BadRequestf("files[%d].content has half of a surrogate pair, which UTF-8 cannot write", i)
	}
	return name, content, nil
}

// contentError returns the answer to a request that contains a file which could not be stored.
func contentError(err *files.ContentError) error {
	if errors.Is(err, files.ErrTooLarge) {
		return &api.Error{
			Status: http.StatusRequestEntityTooLarge,
			Text:   fmt.Sprintf("files[%d].content has more than %d bytes (FERMATA_FILE_SIZE)", err.Index, err.Limit),
		}
	}
	return err
}
