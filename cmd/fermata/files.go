package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"

	"fermata/api/librechat"
	"fermata/engine/files"
)

// files opens the store that keeps the files of sessions. dir is the state directory of the server.
func (s *settings) files(ctx context.Context, log *slog.Logger, dir string) (*files.Store, error) {
	store, err := files.Open(ctx, files.Options{
		URL:     s.filesURL(dir),
		MaxFile: int64(s.FileSize),
		Quota:   int64(s.FilesQuota),
		// All files of a session can be given to one program.
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

// hidden returns the directories that must be hidden from programs: they may lie below a
// directory that programs can see.
func (s *settings) hidden(dir string) []string {
	hide := []string{dir}
	if u, err := url.Parse(s.filesURL(dir)); err == nil && u.Scheme == "file" {
		hide = append(hide, filepath.Clean(u.Path))
	}
	return hide
}

// inputSize returns how many bytes the input files of a program may take in its workspace. The
// workspace is part of the sandbox's memory, half of which is left for the program itself.
func (s *settings) inputSize() int64 { return int64(min(s.Disk, s.Memory/2)) }
