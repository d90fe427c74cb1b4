package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fermata/tests/harness"
)

const (
	// thousand is how many executions TestSoakPaused has paused at once. FERMATA_TEST_SOAK may
	// make it less.
	thousand = 1000
	// thousandMemory is the most memory that a server with a thousand paused executions may
	// take, with all its processes. The goal is 6 GiB; today they take 6.3.
	thousandMemory = 7 << 30
	// idleFor is how long the processor time of paused executions is measured, and idleTime the
	// most that the server and all its processes may use meanwhile: half a percent of one
	// processor. It is for the server's own timers, and does not grow with the number of
	// executions.
	idleFor  = 10 * time.Second
	idleTime = 50 * time.Millisecond
)

// TestSoakPaused pauses a thousand plain executions at once, checks that they use no processor
// time and little memory, and then answers all of them. `make soak` runs it.
func TestSoakPaused(t *testing.T) {
	total := min(thousand, soakTotal(t))
	setup := harness.ProcessSetup()
	server := harness.ServeAlone(t, setup, harness.With(setup.Libraries(), harness.Settings{
		"MAX_SANDBOXES": strconv.Itoa(total + 16), "PAUSE_TTL": "1h", "QUEUE_TIMEOUT": "60s",
	}))
	harness.Resting(server.Processes)
	before := memoryInAll(t, server)

	paused := make([]harness.Answer, total)
	begin := time.Now()
	byClients(t, total, func(ctx context.Context, i int) (err error) {
		paused[i], err = server.Alice().Send(ctx, harness.Program{Code: fmt.Sprintf("print(await ask(n=%d))", i), Tools: harness.Tools("ask")})
		if err == nil && paused[i].Status != "tool_call_required" {
			err = fmt.Errorf("got %v, want a pause", paused[i])
		}
		return err
	})
	t.Logf("%d executions paused after %v", total, time.Since(begin).Round(time.Second))
	harness.Resting(server.Processes)

	// What the pauses have left to do may take some seconds.
	err := harness.Within(time.Minute, func() error {
		used, err := processorTimeDuring(server, idleFor)
		if err != nil {
			return err
		}
		t.Logf("the server and its sandboxes used %v of processor time in %v", used, idleFor)
		if used > idleTime {
			return fmt.Errorf("%d paused executions used %v of processor time in %v, want at most %v", total, used, idleFor, idleTime)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}

	const mib = 1 << 20
	after := memoryInAll(t, server)
	t.Logf("memory in all: %d MiB, before the pauses %d MiB, for each of them %.1f MiB",
		after/mib, before/mib, float64(after-before)/float64(total)/mib)
	// For a thousand executions this is thousandMemory, for fewer of them their share of it.
	if limit := before + (thousandMemory-before)*int64(total)/thousand; after > limit {
		t.Errorf("%d paused executions and the server take %d MiB of memory, want at most %d MiB", total, after/mib, limit/mib)
	}

	begin = time.Now()
	byClients(t, total, func(ctx context.Context, i int) error {
		a, err := server.Alice().Send(ctx, paused[i].Continue(harness.Echo))
		if want := fmt.Sprintf("{'n': %d}\n", i); err == nil && (a.Status != "completed" || a.Stdout != want) {
			err = fmt.Errorf("got %v, want it completed with %q", a, want)
		}
		return err
	})
	t.Logf("%d executions completed after %v", total, time.Since(begin).Round(time.Second))
}

// byClients calls do for 0 to total-1, from sixteen clients at once, until one call fails.
func byClients(t *testing.T, total int, do func(ctx context.Context, i int) error) {
	t.Helper()
	var next, failed atomic.Int64
	var clients sync.WaitGroup
	for range 16 {
		clients.Go(func() {
			for i := int(next.Add(1)) - 1; i < total && failed.Load() == 0; i = int(next.Add(1)) - 1 {
				if err := do(t.Context(), i); err != nil {
					failed.Add(1)
					t.Errorf("execution %d: %v", i, err)
				}
			}
		})
	}
	clients.Wait()
	if failed.Load() > 0 {
		t.FailNow()
	}
}

// processorTimeDuring returns the processor time that the server and all processes below it use
// in the time d. Processes that end meanwhile count up to its beginning.
func processorTimeDuring(s *harness.Server, d time.Duration) (used time.Duration, err error) {
	before, err := threadTimes(s)
	if err != nil {
		return 0, err
	}
	time.Sleep(d)
	after, err := threadTimes(s)
	for thread, t := range after {
		used += t - before[thread]
	}
	return used, err
}

// threadTimes returns the processor time of each thread of the server and of the processes below
// it. The kernel tells it by the nanosecond in schedstat only: with the hundredths of seconds
// of stat, a thousand processes could use seconds unseen.
func threadTimes(s *harness.Server) (map[string]time.Duration, error) {
	times := map[string]time.Duration{}
	for _, p := range s.Family() {
		files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", p.PID)) // The pattern is good.
		for _, file := range files {
			stat, err := os.ReadFile(file)
			if err != nil {
				continue // The thread has ended.
			}
			first, _, _ := strings.Cut(string(stat), " ")
			nanoseconds, err := strconv.ParseInt(first, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			times[file] = time.Duration(nanoseconds)
		}
	}
	if len(times) == 0 {
		return nil, errors.New("the kernel tells no processor times in schedstat")
	}
	return times, nil
}

// memoryInAll returns the memory of the server and of all processes below it, in bytes. Where they
// have a cgroup, that includes what the kernel needs for them, such as page tables, but not
// its cache of files. Elsewhere it is the sum of the processes' proportional set sizes.
func memoryInAll(t *testing.T, s *harness.Server) int64 {
	t.Helper()
	for _, group := range s.Groups {
		for file, prefix := range map[string]string{"memory.usage_in_bytes": "total_", "memory.current": ""} {
			usage, err := os.ReadFile(filepath.Join(group, file))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			stat, statErr := os.ReadFile(filepath.Join(group, "memory.stat"))
			bytes, parseErr := strconv.ParseInt(strings.TrimSpace(string(usage)), 10, 64)
			if err := errors.Join(err, statErr, parseErr); err != nil {
				t.Fatal(err)
			}
			return bytes - number(stat, prefix+"inactive_file ") - number(stat, prefix+"active_file ")
		}
	}
	var sum int64
	for _, p := range s.Family() {
		rollup, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", p.PID)) // The process may have ended.
		sum += number(rollup, "Pss:") << 10
	}
	return sum
}

// number returns the number in the line of text that starts with this name, or 0.
func number(text []byte, name string) int64 {
	for line := range bytes.Lines(text) {
		if rest, ok := bytes.CutPrefix(line, []byte(name)); ok {
			n, _ := strconv.ParseInt(string(bytes.Fields(rest)[0]), 10, 64) // The kernel wrote it.
			return n
		}
	}
	return 0
}
