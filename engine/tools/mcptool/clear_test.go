package mcptool

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// orphan starts a command that leaves a process in a session of its own, in a working directory, as a killed server
// does. It returns the number of the session, and the process that is left.
func orphan(t *testing.T, dir string) (session, left int) {
	t.Helper()
	cmd := exec.CommandContext(context.Background(), "/bin/sh", "-c", "trap '' TERM; sleep 600 & echo $!; exec sleep 600")
	cmd.Dir, cmd.SysProcAttr = dir, &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if left, _ = strconv.Atoi(strings.TrimSpace(line)); left == 0 {
		t.Fatalf("no process: %q, %v", line, err)
	}
	t.Cleanup(func() {
		if running(left) {
			_ = syscall.Kill(left, syscall.SIGKILL)
		}
	})
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // It was killed.
	return cmd.Process.Pid, left
}

// folderIn makes the folder of a command, and returns it with its working directory.
func folderIn(t *testing.T, dir string) (folder, work string) {
	t.Helper()
	folder, err := newFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	return folder, filepath.Join(folder, workFolder)
}

// TestClear leaves what a killed server leaves, and clears it, but no process that only has the number of a session.
func TestClear(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells what is left")
	}
	dir := filepath.Join(t.TempDir(), "mcp")
	if ended, err := Clear(dir); ended != 0 || err != nil {
		t.Fatalf("without a former server: %d, %v", ended, err)
	}
	folder, work := folderIn(t, dir)
	session, left := orphan(t, work)
	if err := writeLaunch(folder, left); err != nil { // for its start; the session is another one
		t.Fatal(err)
	}
	l, err := readLaunch(folder)
	if err != nil || l.Start == 0 {
		t.Fatalf("%+v, %v", l, err)
	}
	write := func(folder, text string) {
		if err := os.WriteFile(filepath.Join(folder, recordFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(folder, `{"session":`+strconv.Itoa(session)+`,"start":`+strconv.FormatUint(l.Start, 10)+`}`)

	elsewhere, foreign := orphan(t, t.TempDir())
	other, otherWork := folderIn(t, dir)
	write(other, `{"session":`+strconv.Itoa(elsewhere)+`,"start":0}`)
	_, inside := orphan(t, otherWork) // of a session without a record
	younger, youngerWork := folderIn(t, dir)
	before, older := orphan(t, youngerWork)
	write(younger, `{"session":`+strconv.Itoa(before)+`,"start":18446744073709551615}`)
	broken, _ := folderIn(t, dir)
	write(broken, "{")
	odd, _ := folderIn(t, dir)
	if err := syscall.Mkfifo(filepath.Join(odd, recordFile), 0o600); err != nil {
		t.Fatal(err)
	}

	ended, err := Clear(dir)
	if ended != 1 || err != nil {
		t.Errorf("%d processes are ended, %v", ended, err)
	}
	for deadline := time.Now().Add(5 * time.Second); running(left) && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	if running(left) || !running(foreign) || !running(inside) || !running(older) {
		t.Errorf("running: what is left %v, foreign ones %v, %v, %v", running(left), running(foreign), running(inside), running(older))
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
		t.Errorf("%v is left, %v", names, err)
	}
}

// TestLaunchIsRecorded shows that a command has its folder in Dir, with a record, until it has ended.
func TestLaunchIsRecorded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "mcp")
	p, err := startProcess(&Options{Command: []string{"/bin/cat"}, Dir: dir, times: quick()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	l, err := readLaunch(p.dir)
	if err != nil || l.Session != p.cmd.Process.Pid || filepath.Dir(p.dir) != dir || p.cmd.Dir != filepath.Join(p.dir, workFolder) {
		t.Errorf("%+v, %v for process %d in %s", l, err, p.cmd.Process.Pid, p.cmd.Dir)
	}
	if runtime.GOOS == "linux" && l.Start == 0 {
		t.Error("the record does not tell the start")
	}
	_ = p.Close()
	<-p.done
	if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
		t.Errorf("%v is left, %v", names, err)
	}
}
