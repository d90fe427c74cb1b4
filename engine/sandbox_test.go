package engine

import (
	"bytes"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// A worker may take its results as slowly as it likes while its program may run, and
// keeps nobody waiting.
func TestSlowWorkerGetsItsResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		line, worker := net.Pipe()
		s := &sandbox{line: line, direct: true}
		began := time.Now()
		if err := s.resume(time.Minute, [][]byte{[]byte("[1,"), []byte("2]")}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("resume took %v of waiting", took)
		}
		time.Sleep(writeTimeout + time.Second)
		header := make([]byte, frameHeader)
		if _, err := io.ReadFull(worker, header); err != nil {
			t.Fatal(err)
		}
		time.Sleep(writeTimeout + time.Second)
		payload := make([]byte, 5)
		if _, err := io.ReadFull(worker, payload); err != nil || !bytes.Equal(payload, []byte("[1,2]")) {
			t.Errorf("the worker read %q, %v", payload, err)
		}
	})
}

// What a worker has not taken when its program's time is over is given up: no
// goroutine is left, which would fail the test.
func TestResultsThatNobodyTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		line, _ := net.Pipe()
		s := &sandbox{line: line, direct: true}
		if err := s.resume(time.Minute, [][]byte{[]byte("[]")}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
	})
}
