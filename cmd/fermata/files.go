package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"

	"fermata/api/librechat"
	"fermata/engine/workspace"
)

// files opens the store of files of a server that lives in the state directory dir.
func (s *settings) files(ctx context.Context, log *slog.Logger, dir string) (*workspace.Store, error) {
	store, err := workspace.Open(ctx, workspace.Options{
		URL:     s.filesURL(dir),
		MaxFile: int64(s.FileSize),
		Quota:   int64(s.FilesQuota),
		// All that a session has can be given to one program.
		MaxFiles: librechat.MaxFiles,
		Life:     s.FilesLife,
		Log:      log,
	})
	if err != nil {
		return nil, fmt.Errorf("open the store of files (FERMATA_FILES_URL): %w", err)
	}
	return store, nil
}

func (s *settings) filesURL(dir string) string {
	if s.FilesURL != "" {
		return s.FilesURL
	}
	return (&url.URL{Scheme: "file", Path: filepath.Join(dir, "files")}).String()
}

// hidden are the directories that no program may see, should they lie where it can
// look.
func (s *settings) hidden(dir string) []string {
	hide := []string{dir}
	if u, err := url.Parse(s.filesURL(dir)); err == nil && u.Scheme == "file" {
		hide = append(hide, filepath.Clean(u.Path))
	}
	return hide
}

// inputSize is what the inputs of a program may take. They are in its workspace, which
// is in its memory, where it needs some room, too.
func (s *settings) inputSize() int64 { return int64(min(s.Disk, s.Memory/2)) }
