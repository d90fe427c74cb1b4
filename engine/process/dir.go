//go:build linux

package process

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
)

const (
	socketSuffix = ".sock"
	// control is the socket on which a zygote hears its server; the others are those of its sandboxes.
	control = "control"
	// serverFile holds the instance of the server that started the zygote.
	serverFile = "server"
)

// A dir is the directory of a zygote. It has a socket for each sandbox, by which a later
// server finds the sandbox and what belongs to it.
type dir struct {
	// path is where the directory is, and id its name, which references to sandboxes begin with.
	path, id string
	// root is the directory opened: sockets are named through it, since the name of a socket
	// may have 107 bytes and a state directory more. It is nil for a directory that cannot be opened.
	root *os.File
	// server is the instance of the server that started the zygote.
	server string
}

// makeDir makes the directory of a new zygote.
func makeDir(parent, id, server string) (dir, error) {
	path := filepath.Join(parent, id)
	for _, d := range []string{path, filepath.Join(path, "root")} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return dir{}, fmt.Errorf("make zygote directory: %w", err)
		}
	}
	if err := os.WriteFile(filepath.Join(path, serverFile), []byte(server), 0o600); err != nil {
		return dir{}, fmt.Errorf("mark zygote: %w", err)
	}
	return openDir(parent, id)
}

// openDir opens the directory of a zygote. Also with an error it returns where that is.
func openDir(parent, id string) (dir, error) {
	d := dir{path: filepath.Join(parent, id), id: id}
	root, err := os.Open(d.path)
	if err != nil {
		return d, fmt.Errorf("open zygote directory: %w", err)
	}
	server, err := os.ReadFile(filepath.Join(d.path, serverFile))
	if err != nil {
		return d, errors.Join(fmt.Errorf("read mark of zygote: %w", err), root.Close())
	}
	d.root, d.server = root, string(server)
	return d, nil
}

// close closes the directory; its sockets cannot be named any more.
func (d dir) close() error {
	if d.root == nil {
		return nil
	}
	return d.root.Close()
}

// remove removes the directory with all that is in it.
func (d dir) remove() error { return os.RemoveAll(d.path) }

// listen makes a socket; the file is its listening end.
func (d dir) listen(name string) (*os.File, error) {
	network := "unix"
	if name == control {
		network = "unixpacket"
	}
	l, err := net.ListenUnix(network, &net.UnixAddr{Name: d.socket(name), Net: network})
	if err != nil {
		return nil, fmt.Errorf("make socket: %w", err)
	}
	defer l.Close()
	l.SetUnlinkOnClose(false)
	return l.File()
}

// socket is a short path to a socket.
func (d dir) socket(name string) string {
	return fmt.Sprintf("/proc/self/fd/%d/%s%s", d.root.Fd(), name, socketSuffix)
}

// forget removes the socket of a sandbox, which is the last thing that is left of it.
func (d dir) forget(sandbox string) error {
	err := os.Remove(filepath.Join(d.path, sandbox+socketSuffix))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// sandboxes names the sandboxes of the zygote; there are none where there is no directory.
func (d dir) sandboxes() ([]string, error) {
	entries, err := os.ReadDir(d.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list sandboxes: %w", err)
	}
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), socketSuffix); ok && name != control {
			names = append(names, name)
		}
	}
	return names, nil
}
