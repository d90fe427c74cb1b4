package mcptool

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	workFolder = "work"    // the working directory of a command, in the command's folder
	recordFile = "command" // the record of a command, beside it
	maxRecord  = 4 << 10
	clearTime  = 5 * time.Second
)

// A launch is what is recorded about a command when it is started, so that the next server finds what a killed one
// has left of it. The command leads a session, which has its process id as its number.
type launch struct {
	Session int    `json:"session"`
	Start   uint64 `json:"start"` // in ticks since the machine has started, or 0 if it is not known

	folder string // which has the record
}

// newFolder makes the folder of a command below a directory, or in the temporary directory if that is "".
func newFolder(below string) (folder string, err error) {
	if below != "" {
		if err := os.MkdirAll(below, 0o700); err != nil {
			return "", err
		}
	}
	if folder, err = os.MkdirTemp(below, "fermata-mcp-"); err != nil {
		return "", err
	}
	if err := os.Mkdir(filepath.Join(folder, workFolder), 0o700); err != nil {
		return "", errors.Join(err, os.RemoveAll(folder))
	}
	return folder, nil
}

// writeLaunch writes the record of the command that leads a session.
func writeLaunch(folder string, session int) error {
	_, start, _ := processStat(session) // Only Linux tells it.
	text, err := json.Marshal(launch{Session: session, Start: start})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, recordFile), text, 0o600)
}

// Clear ends what a former server has left of its commands, and removes their folders below dir, which is the Dir
// of its Options. The caller makes sure that the former server has ended. Processes are found on Linux only: those
// that are of the session of a command, are not older than it, and are in its working directory or below. So no
// other process is ended when its number was used before. Clear returns how many it has ended.
func Clear(dir string) (ended int, err error) {
	root, err := filepath.Abs(dir)
	if err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	folders, err := os.ReadDir(root)
	if err != nil {
		return 0, err
	}
	launches := map[int][]launch{}
	for _, f := range folders {
		if l, err := readLaunch(filepath.Join(root, f.Name())); err == nil {
			launches[l.Session] = append(launches[l.Session], l)
		}
	}
	if ended, err = endAll(launches); err != nil {
		return ended, err // The records stay for the next server.
	}
	var errs []error
	for _, f := range folders {
		errs = append(errs, os.RemoveAll(filepath.Join(root, f.Name())))
	}
	return ended, errors.Join(errs...)
}

// readLaunch reads the record of a command.
func readLaunch(folder string) (l launch, err error) {
	// A command could have put something else there, which is not waited for.
	f, err := os.OpenFile(filepath.Join(folder, recordFile), os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return l, err
	}
	defer f.Close()
	if err := json.NewDecoder(io.LimitReader(f, maxRecord)).Decode(&l); err != nil {
		return l, err
	}
	l.folder = folder
	return l, nil
}

// endAll kills what is left of commands until nothing is, since a process may start others meanwhile.
func endAll(launches map[int][]launch) (ended int, err error) {
	seen := map[int]bool{}
	for deadline := time.Now().Add(clearTime); len(launches) > 0; <-time.After(10 * time.Millisecond) {
		left := 0
		names, _ := os.ReadDir("/proc") // There is none but on Linux.
		for _, name := range names {
			pid, err := strconv.Atoi(name.Name())
			if err == nil && pid > 1 && endIfLeft(pid, launches) {
				left++
				seen[pid] = true
			}
		}
		switch {
		case left == 0:
			return len(seen), nil
		case time.Now().After(deadline):
			return len(seen) - left, fmt.Errorf("%d processes do not end", left)
		}
	}
	return 0, nil
}

// endIfLeft kills a process if it is left of one of the commands, and reports whether it is.
func endIfLeft(pid int, launches map[int][]launch) bool {
	session, _, err := processStat(pid)
	if err != nil || len(launches[session]) == 0 {
		return false
	}
	p, err := os.FindProcess(pid) // From here on it is this process, also if the number is given to another one.
	if err != nil {
		return false
	}
	defer func() { _ = p.Release() }()
	session, start, err := processStat(pid)
	if err != nil {
		return false
	}
	cwd, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid)) // A process that has ended has none.
	if err != nil {
		return false
	}
	for _, l := range launches[session] {
		if start >= l.Start && strings.HasPrefix(cwd, l.folder+string(filepath.Separator)) {
			_ = p.Signal(syscall.SIGKILL) // It may have ended since.
			return true
		}
	}
	return false
}

// processStat returns the session of a process, and when it has started.
func processStat(pid int) (session int, start uint64, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}
	text := string(stat)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:]) // The name before may have parentheses and spaces.
	if len(fields) < 20 {
		return 0, 0, errors.New("the state of a process has too few fields")
	}
	if session, err = strconv.Atoi(fields[3]); err != nil {
		return 0, 0, err
	}
	start, err = strconv.ParseUint(fields[19], 10, 64)
	return session, start, err
}
