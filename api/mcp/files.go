package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"fermata/api"
	"fermata/engine/files"
)

const (
	maxListed  = 300      // files that list_files returns
	maxText    = 64 << 10 // bytes of text that read_file returns at once
	maxPicture = 1 << 20  // bytes of a picture
)

// pictures are the media types of pictures that models can see. The first bytes of a file tell its type.
var pictures = []string{"image/png", "image/jpeg", "image/gif", "image/webp"} //nolint:gochecknoglobals // it is a constant

// listing returns the latest version of each file of a session of the caller, ordered by name.
func (f *face) listing(ctx context.Context, session string) ([]files.File, error) {
	if !files.ValidID(session) {
		return nil, api.BadRequest("session is required, and is not one of ours: take it from the result of run_program")
	}
	list, err := f.o.Files.List(ctx, api.OwnerOf(f.who), session)
	if err != nil && !errors.Is(err, files.ErrForeign) {
		return nil, err
	}
	latest := map[string]files.File{}
	for _, file := range list {
		if known, found := latest[file.Name]; !found || file.Modified.After(known.Modified) {
			latest[file.Name] = file
		}
	}
	list = list[:0]
	for _, file := range latest {
		list = append(list, file)
	}
	slices.SortFunc(list, func(a, b files.File) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) })
	return list, nil
}

// listFiles implements the tool list_files.
func (f *face) listFiles(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	var asked struct {
		Session string `json:"session"`
	}
	if err := decode(r, &asked); err != nil {
		return nil, err
	}
	list, err := f.listing(ctx, asked.Session)
	if err != nil {
		return nil, err
	}
	answer := struct {
		Files []resultFile `json:"files"`
		More  int          `json:"left_out,omitempty"`
	}{Files: []resultFile{}, More: max(0, len(list)-maxListed)}
	for _, file := range list[:min(len(list), maxListed)] {
		answer.Files = append(answer.Files, resultFile{file.Name, file.Size, file.Type})
	}
	return structured(answer)
}

// readFile implements the tool read_file.
func (f *face) readFile(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	var asked struct {
		Session string `json:"session"`
		Path    string `json:"path"`
		Offset  int64  `json:"offset"`
	}
	if err := decode(r, &asked); err != nil {
		return nil, err
	}
	list, err := f.listing(ctx, asked.Session)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(list, func(file files.File) bool { return file.Name == asked.Path })
	if at < 0 {
		return nil, &api.Error{Status: http.StatusNotFound, Text: "The session has no file at this path: use list_files"}
	}
	file := list[at]
	if asked.Offset < 0 || asked.Offset > file.Size {
		return nil, api.BadRequestf("offset is in bytes, from 0 to the size of the file, %d", file.Size)
	}
	head, err := f.part(ctx, file, asked.Offset, min(file.Size, asked.Offset+maxText))
	if err != nil {
		return nil, err
	}
	if kind := http.DetectContentType(head); asked.Offset == 0 && slices.Contains(pictures, kind) {
		if file.Size > maxPicture {
			return nil, api.BadRequestf("the picture has %d bytes, at most %d can be read: make it smaller with a program", file.Size, maxPicture)
		}
		whole, err := f.part(ctx, file, 0, file.Size)
		if err != nil {
			return nil, err
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.ImageContent{MIMEType: kind, Data: whole}}}, nil
	}
	return textPart(file, asked.Offset, head)
}

// textPart returns a part of a file as text.
func textPart(file files.File, offset int64, part []byte) (*sdk.CallToolResult, error) {
	end := offset+int64(len(part)) == file.Size
	text := string(part)
	if !end {
		text = whole(text)
	}
	if !utf8.ValidString(text) || bytes.IndexByte(part, 0) >= 0 {
		return nil, api.BadRequest("the file is neither text nor a picture: read it with a program that runs in the same session")
	}
	answer := struct {
		Text string `json:"text"`
		Size int64  `json:"size"`
		Next *int64 `json:"next_offset,omitempty"`
	}{Text: text, Size: file.Size}
	if !end {
		answer.Next = new(offset + int64(len(text)))
	}
	return structured(answer)
}

// part reads a part of a file.
func (f *face) part(ctx context.Context, file files.File, from, to int64) (data []byte, err error) {
	if from == to {
		return nil, nil
	}
	content, err := f.o.Files.Content(ctx, file, from, to)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, content.Close()) }()
	return io.ReadAll(io.LimitReader(content, to-from))
}

// structured returns a result with a value, as text and as structured content.
func structured(v any) (*sdk.CallToolResult, error) {
	text, err := api.Encode(v)
	if err != nil {
		return nil, err
	}
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(text)}}, StructuredContent: json.RawMessage(text)}, nil
}
