package tests

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
)

// count is how often a test is to repeat something: in a soak it takes its time.
func count(usually, soaking int) int {
	if os.Getenv("FERMATA_SOAK") == "1" {
		return soaking
	}
	return usually
}

// quick are the settings of a server that starts in no time, since its Python has no
// libraries to import, and always at the same address.
func quick(t *testing.T) settings {
	t.Helper()
	python, err := barePython()
	if err != nil {
		t.Fatal(err)
	}
	return settings{"PYTHON": python, "ADDR": freeAddr(t), "POOL_SIZE": "4"}
}

var barePython = sync.OnceValues(func() (string, error) {
	dir, err := scratch()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(dir, "python")
	out, err := exec.Command(common["PYTHON"], "-m", "venv", "--without-pip", dir).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("make a Python without libraries: %w\n%s", err, out)
	}
	return filepath.Join(dir, "bin", "python3"), nil
})

// freeAddr returns an address that was free.
func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return l.Addr().String()
}

// insist sends a request until it is answered, and not with a 503: the same request
// again and again.
func (c client) insist(ctx context.Context, header http.Header, body any) (answer, error) {
	raw, err := marshal(body)
	if err != nil {
		return answer{}, err
	}
	for {
		a, err := c.request(ctx, http.MethodPost, programmatic, header, raw)
		if ctx.Err() != nil {
			return a, errors.Join(err, fmt.Errorf("no answer but %v", a))
		}
		if err == nil && a.code != http.StatusServiceUnavailable {
			return a, nil
		}
		if err == nil && a.header.Get("Retry-After") == "" {
			return a, fmt.Errorf("got %v without Retry-After", a)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// A ledger is written by the tools of one program: how often each has run, by the
// call's id and argument.
type ledger map[string]int

// steps is how many rounds a walker's program has.
const steps = 6

// walk is a program that keeps a sum in a variable, rests between its calls, tells the
// sum at its end and leaves it in a file.
var walk = program{Code: py(`
	import random, time
	total = 0
	for n in range(` + strconv.Itoa(steps) + `):
		time.sleep(random.random() * 0.04)
		total += await step(n=n)
	print(int(total))
	open("total", "w").write(str(total))
`), Tools: tools("step")}

// walked checks that a walk has called every tool once.
func (l ledger) walked(end answer) error {
	for n := range steps {
		if call := fmt.Sprintf(`call_%03d {"n":%d}`, n+1, n); l[call] != 1 {
			return fmt.Errorf("%s was executed %d times, want 1; in all %v, ended with %v", call, l[call], l, end)
		}
	}
	if want := fmt.Sprintf("%d\n", 10*steps*(steps-1)/2); len(l) != steps || end.Status != "completed" || end.Stdout != want {
		return fmt.Errorf("got %v and %d calls, want %d and %q", end, len(l), steps, want)
	}
	if names := end.names(); len(names) != 1 || names[0] != "total" {
		return fmt.Errorf("got %v with the files %q, want one file, total", end, names)
	}
	return nil
}

// errLostStart is the clear error of a start that may or may not have run.
var errLostStart = errors.New("lost before its first answer")

// walk runs the program to its end through whatever happens to the server.
func (c client) walk(ctx context.Context) error {
	l := ledger{}
	a, err := c.insist(ctx, keyed(uuid.NewString()), walk)
	if err == nil && a.Status == "error" && a.Error == "Sandbox execution failed" {
		return errLostStart
	}
	for err == nil && a.Status == "tool_call_required" {
		next := a.answers(func(call call) result {
			l[call.ID+" "+strings.ReplaceAll(string(call.Input), " ", "")]++
			n := strings.Trim(strings.SplitN(string(call.Input), ":", 2)[1], " }")
			return result{Result: []byte(n + "e1")}
		})
		time.Sleep(rand.N(40 * time.Millisecond)) // The tools take their time.
		a, err = c.insist(ctx, nil, next)
	}
	if err != nil {
		return err
	}
	return l.walked(a)
}

// walkers keeps programs going, through whatever happens to their servers, until
// stop is called, which waits for their ends and returns how many were lost.
func walkers(t *testing.T, clients ...client) (stop func() int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	var wg sync.WaitGroup
	var walks, lost atomic.Int64
	done := make(chan struct{})
	for i := range 4 {
		wg.Go(func() {
			for n := i; ; n++ {
				select {
				case <-done:
					return
				default:
				}
				one, cancel := context.WithTimeout(ctx, 90*time.Second)
				err := clients[n%len(clients)].walk(one)
				cancel()
				walks.Add(1)
				switch {
				case errors.Is(err, errLostStart):
					lost.Add(1)
				case err != nil:
					t.Error(err)
					return
				}
			}
		})
	}
	return func() int64 {
		defer cancel()
		close(done)
		wg.Wait()
		t.Logf("%d programs, %d of them %v", walks.Load(), lost.Load(), errLostStart)
		if walks.Load() < 4 || lost.Load() > walks.Load()/2 {
			t.Errorf("%d of %d programs were lost at their start", lost.Load(), walks.Load())
		}
		return lost.Load()
	}
}

// TestKilledAtAnyInstant kills the server again and again while programs run, are
// paused, start and end, while the pool is filled, and while its successor takes over.
func TestKilledAtAnyInstant(t *testing.T) {
	kills := count(10, 200)
	overSetups(t, eachStore|ordinaryUser|ordinaryUserWithRange, func(t *testing.T, s setup) {
		server := serveAlone(t, s, quick(t))
		stop := walkers(t, server.alice())
		for n := range kills {
			if n%3 == 0 {
				// Before it has begun to serve, or not long after.
				time.Sleep(rand.N(400 * time.Millisecond))
			} else {
				if err := server.await(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(rand.N(600 * time.Millisecond))
			}
			if err := server.kill(); err != nil {
				t.Fatal(err)
			}
			if err := server.launch(); err != nil {
				t.Fatal(err)
			}
		}
		if err := server.await(); err != nil {
			t.Fatal(err)
		}
		stop()
	})
}
