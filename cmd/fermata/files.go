package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"

	"fermata/api"
	"fermata/engine/workspace"
)

// files opens the store of session files. dir is the state directory.
func (s *settings) files(ctx context.Context, log *slog.Logger, dir string) (*workspace.Store, error) {
	store, err := workspace.Open(ctx, workspace.Options{
		URL:     s.filesURL(dir),
		MaxFile: int64(s.FileSize),
		Quota:   int64(s.FilesQuota),
		// So that all files of a session can be given to one program.
		MaxFiles: api.MaxFiles,
		Life:     s.FilesLife,
		Log:      log,
	})
	if err != nil {
		return nil, fmt.Errorf("open the store of session files (FERMATA_FILES_URL): %w", err)
	}
	return store, nil
}

func (s *settings) filesURL(dir string) string {
	if s.FilesURL != "" {
		return s.FilesURL
	}
	return (&url.URL{Scheme: "file", Path: filepath.Join(dir, "files")}).String()
}

// hidden are directories that no program may see, even if they are below a directory that
// programs see.
func (s *settings) hidden(dir string) []string {
	hide := []string{dir}
	if u, err := url.Parse(s.filesURL(dir)); err == nil && u.Scheme == "file" {
		hide = append(hide, filepath.Clean(u.Path))
	}
	return hide
}

// inputSize is how much the input files of a program may take. They are in its workspace and
// so in its memory, of which the program itself needs a part.
func (s *settings) inputSize() int64 { return int64(min(s.Disk, s.Memory/2)) }
