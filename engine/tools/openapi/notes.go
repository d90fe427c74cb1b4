package openapi

import (
	"fmt"
	"slices"
	"strings"
)

const (
	maxNotes = 200 // kinds of notes
	maxNamed = 5   // operations that a note names
)

// notes collects what the operator should know. What is so in several places is said once.
type notes struct {
	list []*note
}

// A note is about operations, or says that they are left out.
type note struct {
	text    string
	leftOut bool
	about   []string
}

// add adds a note about an operation. Where it is so, or why, may be added to its name.
func (n *notes) add(e endpoint, text, where string) {
	about := e.String()
	if where != "" {
		about += " (" + where + ")"
	}
	n.put(about, false, text)
}

// leaveOut adds that an operation is left out. The reason continues a sentence that begins with "it".
func (n *notes) leaveOut(e endpoint, reason error) {
	if failed, ok := reason.(*refError); ok { //nolint:errorlint // Others say more than the reference.
		n.put(fmt.Sprintf("%s ($ref %.200q)", e, failed.ref), true, "has a $ref that "+failed.err.Error())
		return
	}
	n.put(e.String(), true, reason.Error())
}

func (n *notes) put(about string, leftOut bool, text string) {
	i := slices.IndexFunc(n.list, func(other *note) bool { return other.leftOut == leftOut && other.text == text })
	switch {
	case i < 0 && len(n.list) >= maxNotes:
		return
	case i < 0:
		i = len(n.list)
		n.list = append(n.list, &note{text: text, leftOut: leftOut})
	}
	if one := n.list[i]; !slices.Contains(one.about, about) {
		one.about = append(one.about, about)
	}
}

// lines returns the notes, each in one line.
func (n *notes) lines() []string {
	var lines []string
	for _, note := range n.list {
		about := strings.Join(note.about[:min(len(note.about), maxNamed)], ", ")
		if more := len(note.about) - maxNamed; more > 0 {
			about += fmt.Sprintf(" and %d more", more)
		}
		switch {
		case !note.leftOut:
			lines = append(lines, about+": "+note.text)
		case len(note.about) == 1:
			lines = append(lines, about+" is left out: it "+note.text)
		default:
			lines = append(lines, about+" are left out: each "+note.text)
		}
	}
	return lines
}
