package librechat

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"fermata/engine/core"
	"fermata/engine/files"
)

// An output is a file that is in the workspace at the end.
type output struct {
	ID             string `json:"id"`
	Name           string `json:"name"`
	SessionID      string `json:"session_id"`
	StorageSession string `json:"storage_session_id"`
	// Size and Type are missing if the file was stored by an older server.
	Size *int64 `json:"size,omitzero"`
	Type string `json:"mime,omitempty"`
	// URL is the path from which the file can be downloaded.
	URL string `json:"url"`
	// Inherited is true if the file is an input that the program has not changed. Version is that
	// of a skill.
	Inherited bool   `json:"inherited,omitzero"`
	Kind      string `json:"kind,omitempty"`
	Resource  string `json:"resource_id,omitempty"`
	Version   *int   `json:"version,omitzero"`
	// ModifiedFrom is the input that was changed.
	ModifiedFrom *origin `json:"modified_from,omitzero"`
}

// An origin names an input file.
type origin struct {
	ID             string `json:"id"`
	StorageSession string `json:"storage_session_id"`
}

// outputsOf returns the entries of files in an answer. prefix is that of the routes (see prefixOf).
func outputsOf(list []core.OutputFile, prefix string) []output {
	outputs := make([]output, len(list))
	for i, f := range list {
		o := output{ID: f.ID, Name: f.Name, SessionID: f.Session, StorageSession: f.Session, Type: f.Type, URL: prefix + downloadPath(f)}
		if f.Type != "" {
			o.Size = &f.Size
		}
		switch {
		case f.Inherited:
			o.Inherited, o.Kind, o.Resource = true, f.Input.Kind, f.Input.Resource
			if f.Input.Kind == "skill" {
				o.Version = &f.Input.Version
			}
		case f.Input != nil:
			o.ModifiedFrom = &origin{f.Input.ID, f.Input.Session}
		}
		outputs[i] = o
	}
	return outputs
}

// downloadPath returns the path from which a file can be downloaded, below the prefix of the routes.
func downloadPath(f core.OutputFile) string {
	path := "/download/" + f.Session + "/" + f.ID
	if !f.Inherited || f.Input.Kind == files.KindUser || f.Input.Kind == "" {
		return path
	}
	query := url.Values{"kind": {f.Input.Kind}, "id": {f.Input.Resource}}
	if f.Input.Kind == files.KindSkill {
		query.Set("version", strconv.Itoa(f.Input.Version))
	}
	return path + "?" + query.Encode()
}

// prefixOf returns what stands before the routes of the contract in the path of a request: nothing
// or /v1. Paths in the answer have it, too.
func prefixOf(c echo.Context) string {
	if strings.HasPrefix(c.Path(), versionPrefix+"/") {
		return versionPrefix
	}
	return ""
}
