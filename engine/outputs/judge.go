package outputs

import (
	"cmp"
	"fmt"
	"strings"
)

// A Found is what is known about a file at the end of a program. State is Produced for every file that was
// stored, whatever its size; then ID, Size and Type describe the stored file.
type Found struct {
	State State
	ID    string
	Size  int64
	Type  string
}

// Files returns the names of the outputs in the workspace.
func (c Contract) Files() []string {
	names := make([]string, len(c.Outputs))
	for i, o := range c.Outputs {
		names[i] = o.File
	}
	return names
}

// Directory returns the directory of the turn, relative to the workspace, if at least one output is in it,
// and "" otherwise. Programs expect that it exists.
func (c Contract) Directory() string {
	for _, o := range c.Outputs {
		if directory := c.Turn + "/files"; strings.HasPrefix(o.File, directory+"/") {
			return directory
		}
	}
	return ""
}

// Judge returns what has become of the outputs, in their order. found describes files by their names in the
// workspace. An output that is not in found is missing. So is one whose file is an unchanged input file.
func (c Contract) Judge(found map[string]Found) []Judged {
	judged := make([]Judged, len(c.Outputs))
	for i, o := range c.Outputs {
		judged[i] = o.judge(found[o.File])
	}
	return judged
}

func (o Output) judge(f Found) Judged {
	j := Judged{Path: o.Path, State: cmp.Or(f.State, Missing), Size: f.Size}
	switch {
	case j.State != Produced:
	case f.Size == 0 && o.MinBytes > 0:
		j.State = Empty
	case f.Size < o.MinBytes:
		j.State, j.Error = TooSmall, fmt.Sprintf("file has %d of at least %d bytes", f.Size, o.MinBytes)
	}
	if j.Stored() {
		j.ID, j.Type = f.ID, cmp.Or(o.Type, f.Type)
	} else {
		j.Error = j.State.Words()
	}
	return j
}
