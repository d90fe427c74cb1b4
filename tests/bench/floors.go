package main

import (
	"bufio"
	"bytes"
	"context"
	_ "embed" // the Python halves of two floors
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

//go:embed floor_socket.py
var socketSource string

//go:embed floor_fork.py
var forkSource string

// The floors: the time that any such server needs for HTTP, for the kernel and for CPython.
const (
	floorHTTP      = "HTTP echo, keep-alive"
	floorSocket    = "Unix socket, JSON to CPython and back"
	floorForkPlain = "fork into namespaces"
	floorFork      = "fork with libraries into namespaces"
	floorHTTP1     = "HTTP, 1 MiB in"
	floorHTTP10    = "HTTP, 10 MiB in"
	floorSocket1   = "Unix socket, 1 MiB to CPython"
	floorSocket10  = "Unix socket, 10 MiB to CPython"
)

// libraries are what the server's parent process of scientific sandboxes imports.
var libraries = []string{"numpy", "pandas", "matplotlib.pyplot", "scipy", "sklearn"}

// measureFloors returns every floor, and the names of the libraries that are not installed.
func measureFloors(ctx context.Context, python, dir string, n int) (rows []row, missing string, err error) {
	small := payload{json: []byte(`{"call_id":"call_001","result":{"n":1},"is_error":false}`), length: 3}
	few := max(3, n/10)
	for _, floor := range []struct {
		name    string
		n       int
		measure func(n int) ([]float64, error)
	}{
		{floorHTTP, n, func(n int) ([]float64, error) { return echoHTTP(ctx, small, n) }},
		{floorSocket, n, func(n int) ([]float64, error) { return echoSocket(ctx, python, dir, small, n) }},
		{floorForkPlain, n, func(n int) (samples []float64, err error) {
			samples, _, err = fork(ctx, python, n, nil)
			return samples, err
		}},
		{floorFork, n, func(n int) (samples []float64, err error) {
			samples, missing, err = fork(ctx, python, n, libraries)
			return samples, err
		}},
		{floorHTTP1, few, func(n int) ([]float64, error) { return echoHTTP(ctx, oneMiB, n) }},
		{floorSocket1, few, func(n int) ([]float64, error) { return echoSocket(ctx, python, dir, oneMiB, n) }},
		{floorHTTP10, few, func(n int) ([]float64, error) { return echoHTTP(ctx, tenMiB, n) }},
		{floorSocket10, few, func(n int) ([]float64, error) { return echoSocket(ctx, python, dir, tenMiB, n) }},
	} {
		// The first samples do not count.
		samples, err := floor.measure(floor.n + warmUp)
		if err != nil {
			return nil, "", fmt.Errorf("floor %s: %w", floor.name, err)
		}
		rows = append(rows, newRow(floor.name, milliseconds, samples[warmUp:]))
	}
	return rows, missing, nil
}

// echoHTTP posts a body to a bare server, which reads all of it and sends back its start.
func echoHTTP(ctx context.Context, body payload, n int) (samples []float64, err error) {
	const kept = 256
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			// A buffer that has to grow would copy the body several times.
			read := bytes.NewBuffer(make([]byte, 0, r.ContentLength+bytes.MinRead))
			if _, err := read.ReadFrom(r.Body); err != nil {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(read.Bytes()[:min(read.Len(), kept)]) // If this fails, the client fails.
		}),
		ReadHeaderTimeout: time.Minute,
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	defer func() {
		err = errors.Join(err, server.Close())
		if stopped := <-served; !errors.Is(stopped, http.ErrServerClosed) {
			err = errors.Join(err, stopped)
		}
	}()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for range n {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+listener.Addr().String(), bytes.NewReader(body.json))
		if err != nil {
			return nil, err
		}
		request.Header.Set("Content-Type", "application/json")
		begin := time.Now()
		response, err := client.Do(request)
		if err != nil {
			return nil, err
		}
		echo, err := io.ReadAll(response.Body)
		took := time.Since(begin)
		if err := errors.Join(err, response.Body.Close()); err != nil {
			return nil, err
		}
		if !bytes.Equal(echo, body.json[:min(len(body.json), kept)]) {
			return nil, fmt.Errorf("got %q, want the start of what was sent", echo)
		}
		samples = append(samples, inMilliseconds(took))
	}
	return samples, nil
}

// echoSocket sends a frame of JSON to CPython, which decodes it and answers with another
// frame, the length of the value.
func echoSocket(ctx context.Context, python, dir string, body payload, n int) (samples []float64, err error) {
	path := filepath.Join(dir, "floor.sock")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	if err := listener.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, python, "-I", "-S", "-c", socketSource, path)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, cmd.Wait()) }()
	conn, err := listener.Accept()
	if err != nil {
		return nil, errors.Join(err, cmd.Process.Kill())
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	frame := append(binary.BigEndian.AppendUint32(nil, uint32(len(body.json))), body.json...)
	want := fmt.Sprintf(`{"length": %d}`, body.length)
	for range n {
		begin := time.Now()
		if _, err := conn.Write(frame); err != nil {
			return nil, err
		}
		var length [4]byte
		if _, err := io.ReadFull(conn, length[:]); err != nil {
			return nil, err
		}
		reply := make([]byte, binary.BigEndian.Uint32(length[:]))
		if _, err := io.ReadFull(conn, reply); err != nil {
			return nil, err
		}
		took := time.Since(begin)
		if string(reply) != want {
			return nil, fmt.Errorf("got %s, want %s", reply, want)
		}
		samples = append(samples, inMilliseconds(took))
	}
	return samples, nil
}

// fork measures how long a parent process with these libraries takes to make a child that
// writes its first byte. It also returns the libraries that are not installed.
func fork(ctx context.Context, python string, n int, libraries []string) (samples []float64, missing string, err error) {
	cmd := exec.CommandContext(ctx, python, append([]string{"-I", "-c", forkSource}, libraries...)...)
	// A process with threads takes longer to fork, and the server's parent processes have none.
	cmd.Env = append(os.Environ(), "OPENBLAS_NUM_THREADS=1", "OMP_NUM_THREADS=1", "MPLBACKEND=Agg")
	cmd.Stderr = os.Stderr
	ask, err := cmd.StdinPipe()
	if err != nil {
		return nil, "", err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	if err := cmd.Start(); err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, ask.Close(), cmd.Wait()) }()
	heard := bufio.NewReader(out)
	missing, err = heard.ReadString('\n')
	if err != nil {
		return nil, "", err
	}
	for range n {
		begin := time.Now()
		if _, err := ask.Write([]byte{'f'}); err != nil {
			return nil, "", err
		}
		for _, want := range []byte("cp") {
			got, err := heard.ReadByte()
			if err != nil {
				return nil, "", err
			}
			if got != want {
				return nil, "", fmt.Errorf("got %q, want %q", got, want)
			}
			if got == 'c' {
				samples = append(samples, inMilliseconds(time.Since(begin)))
			}
		}
	}
	return samples, strings.TrimSpace(missing), nil
}
