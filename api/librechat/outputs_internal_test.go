package librechat

import (
	"testing"

	"fermata/api"
	"fermata/engine/core"
)

func TestEntriesOfFiles(t *testing.T) {
	input := func(kind string) *core.InputFile {
		return &core.InputFile{Session: "s", ID: "i", Name: "n", Kind: kind, Resource: "r:1", Version: 2}
	}
	for name, c := range map[string]struct {
		file core.OutputFile
		want string
	}{
		"new": {
			core.OutputFile{Session: "s", ID: "i", Name: "n", Size: 0, Type: "text/csv"},
			`"size":0,"mime":"text/csv","url":"/v1/download/s/i"}`,
		},
		"stored by an older server": {
			core.OutputFile{Session: "s", ID: "i", Name: "n"},
			`"url":"/v1/download/s/i"}`,
		},
		"of a user": {
			core.OutputFile{Session: "s", ID: "i", Name: "n", Input: input("user"), Inherited: true},
			`"url":"/v1/download/s/i","inherited":true,"kind":"user","resource_id":"r:1"}`,
		},
		"of an agent": {
			core.OutputFile{Session: "s", ID: "i", Name: "n", Input: input("agent"), Inherited: true},
			`"url":"/v1/download/s/i?id=r%3A1&kind=agent","inherited":true,"kind":"agent","resource_id":"r:1"}`,
		},
		"of a skill": {
			core.OutputFile{Session: "s", ID: "i", Name: "n", Input: input("skill"), Inherited: true},
			`"url":"/v1/download/s/i?id=r%3A1&kind=skill&version=2","inherited":true,"kind":"skill","resource_id":"r:1","version":2}`,
		},
	} {
		want := `{"id":"i","name":"n","session_id":"s","storage_session_id":"s",` + c.want
		if got, err := api.Encode(outputsOf([]core.OutputFile{c.file}, "/v1")[0]); err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v, want %s", name, got, err, want)
		}
	}
}
