package live

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"fermata/tests/harness"
)

// late is a Writer that waits before it writes.
type late struct {
	to    io.Writer
	delay time.Duration
}

func (l late) Write(p []byte) (int, error) {
	time.Sleep(l.delay)
	return l.to.Write(p)
}

// TestPrintDelays measures how long it takes from a print to its reader: after quiet moments, and of
// one that prints all the time, which reaches readers in pieces. A machine that is busy with other
// things gets more time, by how late the program's own sleeps end, and may try again.
func TestPrintDelays(t *testing.T) {
	harness.OverSetups(t, harness.Processes, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		// From the program to the reader several processes have to wake up.
		const wakes = 6
		for _, way := range []struct {
			name     string
			sleep    time.Duration
			p50, p99 time.Duration
			atLeast  int
		}{
			{"after quiet moments", 30 * time.Millisecond, 10 * time.Millisecond, 60 * time.Millisecond, 50},
			{"all the time", 2 * time.Millisecond, 60 * time.Millisecond, 80 * time.Millisecond, 500},
		} {
			err := errors.New("not measured")
			for try := 0; try < 3 && err != nil; try++ {
				delays, lates := printDelays(t, c, way.sleep)
				if len(delays) < way.atLeast {
					t.Fatalf("only %d prints have come", len(delays))
				}
				t.Logf("%d prints %s: p50 %v, p99 %v; sleeps were late by p50 %v, p99 %v",
					len(delays), way.name, at(delays, 50), at(delays, 99), at(lates, 50), at(lates, 99))
				err = nil
				if most := way.p50 + wakes*at(lates, 75); at(delays, 50) > most {
					err = fmt.Errorf("%s: half of the prints took more than %v, want %v", way.name, at(delays, 50), most)
				}
				if most := way.p99 + wakes*at(lates, 99); at(delays, 99) > most {
					err = fmt.Errorf("%s: one of a hundred prints took more than %v, want %v", way.name, at(delays, 99), most)
				}
			}
			if err != nil {
				t.Error(err)
			}
		}
	})
}

// printDelays runs a program that prints after each of its sleeps. It returns, sorted, how long the
// prints took to a reader, and how late the sleeps ended.
func printDelays(t *testing.T, c harness.Client, sleep time.Duration) (delays, lates []time.Duration) {
	t.Helper()
	answering, id := begin(t, c, harness.Program{Code: harness.Py(fmt.Sprintf(`
		import time
		until = time.monotonic() + 4
		while time.monotonic() < until:
		    at = time.monotonic()
		    time.sleep(%v)
		    late = time.monotonic() - at - %[1]v
		    print(f"{time.time():.6f} {late:.9f}", flush=True)
	`, sleep.Seconds()))})
	r := open(t, c, http.MethodGet, "/executions/"+id+"/events", nil, nil)
	text := ""
	for {
		f := r.one(t)
		now := time.Now()
		if f.Event == "execution.ended" {
			break
		}
		if f.Event != "output" {
			continue
		}
		// A line may come in two events.
		text += f.event(t).Text
		whole := strings.LastIndexByte(text, '\n') + 1
		lines := text[:whole]
		text = text[whole:]
		for line := range strings.Lines(lines) {
			var printed, late float64
			if _, err := fmt.Sscan(line, &printed, &late); err != nil {
				t.Fatalf("the program has printed %q: %v", line, err)
			}
			delays = append(delays, now.Sub(time.UnixMicro(int64(printed*1e6))))
			lates = append(lates, time.Duration(late*1e9))
		}
	}
	answering.liveAnswer(t)
	slices.Sort(delays)
	slices.Sort(lates)
	return delays, lates
}

// at returns a percentile of a sorted list.
func at(sorted []time.Duration, percent int) time.Duration {
	return sorted[len(sorted)*percent/100]
}

// TestOneByte prints one byte at a time, with characters that are torn apart, and looks whether
// they all come, as whole characters and in few events.
func TestOneByte(t *testing.T) {
	harness.OverSetups(t, harness.Processes, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		text := "é\u2028\x00🎉\xff\xe2\x80\r\n\r\ndata: "
		st, id := begin(t, c, harness.Program{Code: fmt.Sprintf("import os\nfor b in bytes(%s) * 3000: os.write(1, bytes([b]))", ints(text))})
		frames := open(t, c, http.MethodGet, "/executions/"+id+"/events", nil, nil).all(t)
		a := st.liveAnswer(t)
		want := strings.Repeat("é\u2028\x00🎉\uFFFD\uFFFD\r\n\r\ndata: ", 3000)
		a.Completes(t, want)
		checkOutput(t, frames, a.Answer)
		if bytes := 3000 * len(text); len(frames) > bytes/50 {
			t.Errorf("%d bytes have come as %d events", bytes, len(frames))
		}
	})
}

// ints returns the bytes of a text as a list in Python.
func ints(text string) string {
	var b bytes.Buffer
	for i, c := range []byte(text) {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strconv.Itoa(int(c)))
	}
	return "[" + b.String() + "]"
}
