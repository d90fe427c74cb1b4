package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// homeWait is how long a server that is ending may keep the state directory.
const homeWait = 2 * time.Second

// lockHome takes the state directory for this process and returns its id, which
// stays the same for every server that lives there. The kernel gives it free when
// the process ends, however it ends.
func lockHome(dir string) (id string, release func() error, err error) {
	f, err := os.OpenFile(filepath.Join(dir, "home"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return "", nil, fmt.Errorf("lock state directory: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	for deadline := time.Now().Add(homeWait); ; {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			return "", nil, fmt.Errorf("another server uses the state directory %s: give each its own FERMATA_STATE_DIR: %w", dir, err)
		}
		<-time.After(homeWait / 100)
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return "", nil, fmt.Errorf("read id of state directory: %w", err)
	}
	if len(text) == 0 {
		text = []byte(rand.Text())
		if _, err := f.Write(text); err != nil {
			return "", nil, fmt.Errorf("write id of state directory: %w", err)
		}
	}
	return string(text), f.Close, nil
}
