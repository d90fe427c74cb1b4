package config

import (
	"os"
	"slices"
)

// A Stamp has the state of all files that were read, including those that ${file:} and openapi.file name.
type Stamp struct {
	// opened has the files by their paths. The entry of a file that did not exist is nil.
	opened map[string]os.FileInfo
	// list are the files of the directory, if it is one.
	directory string
	list      []string
}

// note keeps the state of a file that cannot be opened.
func (s *Stamp) note(path string) {
	info, err := os.Stat(path)
	if err != nil {
		info = nil
	}
	s.opened[path] = info
}

// Unchanged reports whether all files are still the same as when they were read.
func (s Stamp) Unchanged() bool {
	if s.directory != "" {
		if list, err := listDirectory(s.directory); err != nil || !slices.Equal(list, s.list) {
			return false
		}
	}
	for path, before := range s.opened {
		now, err := os.Stat(path)
		switch {
		case before == nil && err != nil:
		case before == nil || err != nil || !os.SameFile(before, now):
			return false
		case !before.ModTime().Equal(now.ModTime()) || before.Size() != now.Size() || before.Mode() != now.Mode():
			return false
		}
	}
	return true
}
