package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"fermata/api/librechat"
	"fermata/engine/files"
)

// fileSettings are the settings of session files.
type fileSettings struct {
	FilesURL       string        `name:"files-url" placeholder:"URL" help:"Where to keep session files: file:///directory, or s3://bucket with parameters such as ?region=NAME&endpoint=https://HOST and the credentials that AWS's own tools would find. Default: the directory files in the state directory."`
	FilesLife      time.Duration `default:"24h" help:"How long to keep a session file."`
	FilesQuota     byteSize      `default:"2GiB" help:"Most bytes of session files of one user, or of all agents and skills of one tenant together. A file counts as at least 4 KiB."`
	FileSize       byteSize      `default:"150MiB" help:"Largest file that may be uploaded."`
	OutputFiles    int           `default:"50" help:"Most files of one execution to keep. The files that the program was given do not count."`
	OutputFileSize byteSize      `default:"25MiB" help:"Largest file of a program to keep."`
}

func (s *fileSettings) check(m *mistakes) {
	m.unless(s.FilesURL == "" || strings.HasPrefix(s.FilesURL, "file:///") || s.bucket(),
		"files-url", "file:///directory or s3://bucket")
	m.unless(s.FilesLife > 0, "files-life", "more than 0")
	m.unless(s.FilesQuota > 0, "files-quota", "more than 0")
	m.unless(s.FileSize > 0, "file-size", "more than 0")
	m.unless(s.OutputFiles >= 0, "output-files", "0 or more")
	m.unless(s.OutputFileSize > 0, "output-file-size", "more than 0")
	m.unless(s.OutputFileSize <= s.FileSize, "output-file-size", "at most --file-size")
}

// bucket reports whether the files are in a bucket.
func (s *fileSettings) bucket() bool { return strings.HasPrefix(s.FilesURL, "s3://") }

// open opens the store that keeps the files of sessions. dir is the state directory of the server.
func (s *fileSettings) open(ctx context.Context, log *slog.Logger, dir string) (*files.Store, error) {
	store, err := files.Open(ctx, files.Options{
		URL:     s.url(dir),
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

// url returns where the store is.
func (s *fileSettings) url(dir string) string {
	if s.FilesURL != "" {
		return s.FilesURL
	}
	return (&url.URL{Scheme: "file", Path: filepath.Join(dir, "files")}).String()
}

// hidden returns the directories that must be hidden from programs: they may lie below a
// directory that programs can see.
func (s *fileSettings) hidden(dir string) []string {
	hide := []string{dir}
	if u, err := url.Parse(s.url(dir)); err == nil && u.Scheme == "file" {
		hide = append(hide, filepath.Clean(u.Path))
	}
	return hide
}
