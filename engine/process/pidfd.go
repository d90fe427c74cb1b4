//go:build linux

package process

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// A pidfd refers to a process that need not be a child of this one. It never refers to
// another process that has got the same number later.
type pidfd struct{ file *os.File }

// peerOf returns the zygote at the other end of a control connection, which is the process
// that called listen on the socket last.
func peerOf(conn *net.UnixConn) (*pidfd, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("find zygote: %w", err)
	}
	var peer *unix.Ucred
	var peerErr error
	err = raw.Control(func(fd uintptr) { peer, peerErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err := errors.Join(err, peerErr); err != nil {
		return nil, fmt.Errorf("find zygote: %w", err)
	}
	fd, err := unix.PidfdOpen(int(peer.Pid), unix.PIDFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("find zygote: process %d: %w", peer.Pid, err)
	}
	file := os.NewFile(uintptr(fd), "pidfd")
	// A zygote that does not listen yet has not put its own number there: the number is that
	// of the server which started it, and may belong to another process by now.
	if !firstOfItsOwn(peer.Pid) {
		return nil, errors.Join(fmt.Errorf("find zygote: process %d is none", peer.Pid), file.Close())
	}
	return &pidfd{file}, nil
}

// firstOfItsOwn reports whether a process is the first one of a PID namespace below ours.
func firstOfItsOwn(pid int32) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return false
	}
	for lines := bufio.NewScanner(bytes.NewReader(status)); lines.Scan(); {
		if numbers, ok := bytes.CutPrefix(lines.Bytes(), []byte("NSpid:")); ok {
			fields := bytes.Fields(numbers)
			return len(fields) > 1 && string(fields[len(fields)-1]) == "1"
		}
	}
	return false
}

func (p *pidfd) kill() error {
	raw, err := p.file.SyscallConn()
	if err != nil {
		return err
	}
	var killErr error
	err = raw.Control(func(fd uintptr) { killErr = unix.PidfdSendSignal(int(fd), unix.SIGKILL, nil, 0) })
	if errors.Is(killErr, unix.ESRCH) {
		killErr = nil
	}
	return errors.Join(err, killErr)
}

// wait waits until the process and all others of its PID namespace have ended, or until the
// pidfd is closed.
func (p *pidfd) wait() error {
	raw, err := p.file.SyscallConn()
	if err != nil {
		return err
	}
	if err := p.file.SetReadDeadline(time.Time{}); err != nil {
		return err // The runtime could wait for it only with a thread.
	}
	return raw.Read(func(fd uintptr) bool {
		ended, _ := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return ended > 0
	})
}

func (p *pidfd) close() error { return p.file.Close() }
