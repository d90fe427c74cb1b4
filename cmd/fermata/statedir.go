package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// stateDirName returns the name of the state directory.
func (s *executionSettings) stateDirName() (string, error) {
	if s.StateDir != "" {
		return s.StateDir, nil
	}
	base := os.Getenv("XDG_STATE_HOME")
	// The XDG specification says that relative paths are ignored.
	if !filepath.IsAbs(base) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("find the default state directory (set FERMATA_STATE_DIR to name one): %w", err)
		}
		base = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(base, "fermata"), nil
}

// stateDir returns the name of the state directory. It creates the directory if there is
// none, and makes it private.
func (s *executionSettings) stateDir(log *slog.Logger) (string, error) {
	dir, err := s.stateDirName()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("create the state directory: %w", err)
	}
	return dir, makePrivate(dir, log)
}

// makePrivate makes sure that no other user can read or change a directory.
func makePrivate(dir string, log *slog.Logger) error {
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("look at the state directory: %w", err)
	}
	status, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(status.Uid) != os.Geteuid() {
		return fmt.Errorf("the state directory %s belongs to another user: make it the server's (chown), "+
			"or set FERMATA_STATE_DIR to a directory that the server can make itself", dir)
	}
	if info.Mode().Perm()&0o077 == 0 {
		return nil
	}
	if err := os.Chmod(dir, 0o700); err != nil { //nolint:gosec // a directory
		return fmt.Errorf("the state directory %s is open to other users: %w", dir, err)
	}
	log.Warn("the state directory was open to other users; it no longer is", "dir", dir, "mode_before", info.Mode().Perm().String())
	return nil
}

// stateDirWait is how long to wait for a server that is ending to release the state
// directory.
const stateDirWait = 2 * time.Second

// lockStateDir locks the state directory for this process and returns the directory's id,
// which is the same for every server that uses it, one after the other. The kernel
// releases the lock when the process ends, however it ends.
func lockStateDir(dir string) (id string, release func() error, err error) {
	f, err := os.OpenFile(filepath.Join(dir, "home"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return "", nil, fmt.Errorf("lock the state directory: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	for deadline := time.Now().Add(stateDirWait); ; {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			break
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return "", nil, fmt.Errorf("lock the state directory %s: %w", dir, err)
		}
		if time.Now().After(deadline) {
			return "", nil, fmt.Errorf("another server uses the state directory %s: give each server its own FERMATA_STATE_DIR", dir)
		}
		<-time.After(stateDirWait / 100)
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return "", nil, fmt.Errorf("read the id of the state directory: %w", err)
	}
	if len(text) == 0 {
		text = []byte(rand.Text())
		if _, err := f.Write(text); err != nil {
			return "", nil, fmt.Errorf("write the id of the state directory: %w", err)
		}
	}
	return string(text), f.Close, nil
}
