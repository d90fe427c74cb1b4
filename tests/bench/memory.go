package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// memory pauses n executions of programs that run code first. It returns the private memory of
// each, in MiB: the pages that no process outside its sandbox maps.
func (s subject) memory(ctx context.Context, code string) (samples [][]float64, err error) {
	var held []answer
	defer func() {
		for _, a := range held {
			last, failed := s.client.resume(ctx, a, nil)
			err = errors.Join(err, failed, last.completed("None\n"))
		}
	}()
	// The program tells its PID namespace, by which the processes of its sandbox are found.
	code += "print(await lookup(n=1, namespace=os.readlink('/proc/self/ns/pid')))"
	for range s.n {
		// A sandbox that has waited in the pool has more private memory than a new one.
		if err := s.rest(ctx); err != nil {
			return nil, err
		}
		a, err := s.client.start(ctx, python, code)
		if err := errors.Join(err, a.paused(1, 1)); err != nil {
			return nil, err
		}
		held = append(held, a)
	}
	if err := s.rest(ctx); err != nil {
		return nil, err
	}
	private, err := privateMemory()
	if err != nil {
		return nil, err
	}
	samples = make([][]float64, 1)
	for _, a := range held {
		bytes, ok := private[a.Calls[0].Input.Namespace]
		if !ok {
			return nil, fmt.Errorf("no process of this machine is in the namespace %q in which the program runs", a.Calls[0].Input.Namespace)
		}
		samples[0] = append(samples[0], float64(bytes)/(1<<20))
	}
	return samples, nil
}

// privateMemory returns the private memory in each PID namespace, in bytes.
func privateMemory() (map[string]int64, error) {
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	private := map[string]int64{}
	for _, process := range processes {
		namespace, err := os.Readlink(filepath.Join(process, "ns/pid"))
		if err != nil {
			continue // The process has ended, or this user may not look at it.
		}
		rollup, err := os.ReadFile(filepath.Join(process, "smaps_rollup"))
		if err != nil {
			continue // The same, or it is a thread of the kernel.
		}
		bytes, err := privateBytes(rollup)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", process, err)
		}
		private[namespace] += bytes
	}
	return private, nil
}

// privateBytes adds up the lines Private_Clean, Private_Dirty and Private_Hugetlb.
func privateBytes(rollup []byte) (sum int64, err error) {
	lines := bufio.NewScanner(bytes.NewReader(rollup))
	for lines.Scan() {
		value, ok := strings.CutPrefix(lines.Text(), "Private_")
		if !ok {
			continue
		}
		fields := strings.Fields(value)
		if len(fields) != 3 || fields[2] != "kB" {
			return 0, fmt.Errorf("the line %q of smaps_rollup does not have the form NAME: NUMBER kB", lines.Text())
		}
		kilobytes, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			return 0, err
		}
		sum += kilobytes << 10
	}
	return sum, lines.Err()
}
