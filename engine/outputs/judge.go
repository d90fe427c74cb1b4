package outputs

import (
	"cmp"
	"fmt"
	"strings"
)

// A Found is what is known of a file at the end of a program. State is Produced for a file that is
// stored, of whatever size; then ID, Size and Type are those of the stored file.
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

// Directory returns the directory of the turn, beneath the workspace, if an output belongs into it:
// programs write there as if it were there. It is empty if none does.
func (c Contract) Directory() string {
	for _, o := range c.Outputs {
		if directory := c.Turn + "/files"; strings.HasPrefix(o.File, directory+"/") {
			return directory
		}
	}
	return ""
}

// Judge returns what has become of the outputs, in their order. found has what is known of files, by
// their names in the workspace. The others are missing, and so is a file that was only given.
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
		j.State, j.Error = TooSmall, fmt.Sprintf("file has %d bytes, at least %d were expected", f.Size, o.MinBytes)
	}
	if j.Stored() {
		j.ID, j.Type = f.ID, cmp.Or(o.Type, f.Type)
	} else {
		j.Error = j.State.Words()
	}
	return j
}
