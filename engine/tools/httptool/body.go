package httptool

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"mime/multipart"
	"net/textproto"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// The media types of forms.
const (
	MediaForm      = "application/x-www-form-urlencoded"
	MediaMultipart = "multipart/form-data"
)

// A field is a member of a body with the parameter that it is the value of.
type field struct {
	Parameter
	value json.RawMessage
}

// kind returns the media type of the body in small letters and without its parameters.
func (o Operation) kind() string {
	if o.Media == "" {
		return "application/json"
	}
	kind, _, err := mime.ParseMediaType(o.Media)
	if err != nil {
		return ""
	}
	return kind
}

// isForm reports whether the members of the body are written as the fields of a form.
func (o Operation) isForm() bool {
	kind := o.kind()
	return kind == MediaForm || kind == MediaMultipart
}

// isText reports whether the body is a text that is sent as it is.
func (o Operation) isText() bool {
	kind := o.kind()
	return !o.isForm() && kind != "application/json" && kind != "text/json" && !strings.HasSuffix(kind, "+json")
}

// write sets the body of a request, which has members, or is one value.
func (o *operation) write(r *request, fields []field, whole json.RawMessage) error {
	if !o.hasMembers() && whole == nil {
		return nil
	}
	media := o.Media
	var err error
	switch {
	case o.isText():
		r.body, err = o.text(whole)
	case !o.isForm() && whole != nil:
		r.body = whole
	case !o.isForm():
		members := make([]entry, len(fields))
		for i, f := range fields {
			members[i] = entry{f.sent(), f.value}
		}
		r.body = marshal(members)
	default:
		if whole != nil {
			if fields, err = fieldsOf(whole); err != nil {
				return err
			}
		}
		if o.kind() == MediaForm {
			r.body, err = o.form(fields)
		} else {
			r.body, media, err = multipartBody(fields)
		}
	}
	if media == "" {
		media = "application/json"
	}
	r.header.Set("Content-Type", media)
	return err
}

// text returns the text that is the whole body.
func (o *operation) text(whole json.RawMessage) ([]byte, error) {
	i := slices.IndexFunc(o.Parameters, func(p Parameter) bool { return p.In == InWhole })
	if i < 0 || jsontext.Value(whole).Kind() != jsontext.KindString {
		return nil, errors.New("the body must be a text")
	}
	text, err := scalar(o.Parameters[i], whole)
	return []byte(text), err
}

// fieldsOf returns the members of a body that is one value as fields.
func fieldsOf(whole json.RawMessage) ([]field, error) {
	if jsontext.Value(whole).Kind() != jsontext.KindBeginObject {
		return nil, errors.New("the body must be an object, since it is sent as a form")
	}
	var fields []field
	for _, m := range entries(whole) {
		fields = append(fields, field{Parameter{Name: m.name, In: InBody}, m.value})
	}
	return fields, nil
}

// form returns a body in the form of a query. Null is left out.
func (o *operation) form(fields []field) ([]byte, error) {
	var pairs []string
	for _, f := range fields {
		if jsontext.Value(f.value).Kind() == jsontext.KindNull {
			continue
		}
		var err error
		if pairs, err = o.appendQuery(pairs, f.Parameter, f.value); err != nil {
			return nil, err
		}
	}
	body := strings.Join(pairs, "&")
	return []byte(strings.ReplaceAll(body, "%20", "+")), nil
}

// multipartBody returns a body that has a part for each field, and its media type. Null is left out, and the
// elements of a list are parts of their own.
func multipartBody(fields []field) ([]byte, string, error) {
	var out bytes.Buffer
	w := multipart.NewWriter(&out)
	for _, f := range fields {
		values := []json.RawMessage{f.value}
		if jsontext.Value(f.value).Kind() == jsontext.KindBeginArray && f.Style != StyleJSON {
			if err := json.Unmarshal(f.value, &values); err != nil {
				return nil, "", fmt.Errorf("%s: is not a list", f.Name)
			}
		}
		for _, value := range values {
			if jsontext.Value(value).Kind() == jsontext.KindNull {
				continue
			}
			p, err := partOf(f.Parameter, value)
			if err != nil {
				return nil, "", err
			}
			to, err := w.CreatePart(p.header)
			if err == nil {
				_, err = to.Write(p.content)
			}
			if err != nil {
				return nil, "", errors.New("the body of the call cannot be built")
			}
		}
	}
	if err := w.Close(); err != nil {
		return nil, "", errors.New("the body of the call cannot be built")
	}
	return out.Bytes(), w.FormDataContentType(), nil
}

// A part is one part of a multipart body.
type part struct {
	header  textproto.MIMEHeader
	content []byte
}

// partOf returns a value as a part: a file, a text, or JSON.
func partOf(p Parameter, value json.RawMessage) (part, error) {
	name, media := strings.ToValidUTF8(p.sent(), "\ufffd"), p.Media
	disposition, filename := "", ""
	var content []byte
	var err error
	switch kind := jsontext.Value(value).Kind(); {
	case p.Style == StyleFile:
		if filename, content, err = file(p, value); err != nil {
			return part{}, err
		}
		disposition = multipart.FileContentDisposition(name, filename)
		if media == "" {
			media = "application/octet-stream"
		}
	case p.Style == StyleJSON, kind == jsontext.KindBeginObject, kind == jsontext.KindBeginArray:
		content = value
		if media == "" {
			media = "application/json"
		}
	default:
		var text string
		text, err = scalar(p, value)
		content = []byte(text)
	}
	if strings.ContainsFunc(name+filename, isControl) {
		return part{}, fmt.Errorf("%s: must not have control characters in a name, since it is sent as a header", shown(p.Name))
	}
	if disposition == "" {
		disposition = strings.TrimSuffix(multipart.FileContentDisposition(name, ""), `; filename=""`)
	}
	header := textproto.MIMEHeader{"Content-Disposition": {disposition}}
	if media != "" {
		header.Set("Content-Type", media)
	}
	return part{header, content}, err
}

// file returns the name and the content of a file: a text, or an object with filename and content or base64.
func file(p Parameter, value json.RawMessage) (name string, content []byte, err error) {
	if jsontext.Value(value).Kind() != jsontext.KindBeginObject {
		text, err := scalar(p, value)
		return p.sent(), []byte(text), err
	}
	var given struct {
		Filename, Content, Base64 *string
	}
	if err := json.Unmarshal(value, &given); err != nil || (given.Content == nil) == (given.Base64 == nil) {
		return "", nil, fmt.Errorf("%s: a file is a text, or an object with filename and either content or base64", p.Name)
	}
	name = p.sent()
	if given.Filename != nil {
		name = *given.Filename
	}
	if given.Content != nil {
		return name, []byte(*given.Content), nil
	}
	if content, err = base64.StdEncoding.DecodeString(*given.Base64); err != nil {
		return "", nil, fmt.Errorf("%s: base64 is not valid base64", p.Name)
	}
	return name, content, nil
}
