// Command bench measures the server side by side with what nobody can avoid: HTTP, a
// socket to CPython, a fork. It builds and starts the real server, checks every answer,
// and prints one table. It judges no figure by its exit code: machines differ.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

type options struct {
	sandbox, store, url, key, python string
	n                                int
	json                             bool
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.sandbox, "sandbox", "process", "sandbox of the server: process or docker")
	flags.StringVar(&o.store, "store", "", "store of the server, a Redis URL; embedded if empty")
	flags.StringVar(&o.url, "url", "", "measure the server that runs there instead of starting one")
	flags.StringVar(&o.key, "key", key, "API key for -url")
	flags.StringVar(&o.python, "python", "/usr/bin/python3", "Python for the floors and the process sandbox")
	flags.IntVar(&o.n, "n", 100, "samples of each figure; fewer of slow ones, more of fast ones")
	flags.BoolVar(&o.json, "json", false, "print JSON")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case o.sandbox != "process" && o.sandbox != "docker":
		return o, fmt.Errorf("-sandbox is %q, want process or docker", o.sandbox)
	case o.n < 1:
		return o, fmt.Errorf("-n is %d, want at least 1", o.n)
	}
	return o, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "fermata-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	r := report{Machine: machine(), Sandbox: o.sandbox, Store: "embedded"}
	if o.store != "" {
		r.Store = "redis"
	}
	progress := log.New(stderr, "", 0)
	progress.Print("measuring the floors …")
	floors, missing, err := measureFloors(ctx, o.python, dir, o.n)
	if err != nil {
		return err
	}
	r.Floors = floors
	if missing != "" {
		r.Notes = append(r.Notes, fmt.Sprintf("Not installed for %s, so not in the floor: %s.", o.python, missing))
	}
	if o.url != "" {
		err = r.measureRunning(ctx, o, progress)
	} else {
		err = r.measureOwn(ctx, o, dir, progress)
	}
	if err != nil {
		return err
	}
	if o.json {
		return r.printJSON(stdout)
	}
	return r.print(stdout)
}

// settleRunning is how long a server that was not started here gets to fill its pool:
// how fast it does is not known.
const settleRunning = 500 * time.Millisecond

// teardown is how long the kernel may take to be rid of a sandbox, whose namespaces it
// takes apart after the last process has ended.
const teardown = 200 * time.Millisecond

// measureRunning measures the server at o.url.
func (r *report) measureRunning(ctx context.Context, o options, progress *log.Logger) error {
	r.Store = "of " + o.url
	s := subject{client: newClient(o.url, o.key), n: o.n, settle: settleRunning}
	if err := s.client.healthy(ctx); err != nil {
		return err
	}
	r.Notes = append(r.Notes, "A server that runs already: its pool is its own, and its memory is measured if it is on this machine.")
	return r.measure(ctx, s, scenarios, progress)
}

// measureOwn builds the server and measures it with the pool empty, then with a pool.
func (r *report) measureOwn(ctx context.Context, o options, dir string, progress *log.Logger) error {
	progress.Print("building the server …")
	binary, err := build(ctx, dir)
	if err != nil {
		return err
	}
	common := settings{"SANDBOX": o.sandbox, "PYTHON": o.python, "MAX_SANDBOXES": "200", "MAX_RESULT": "16MiB", "QUEUE_TIMEOUT": "60s"}
	if o.store != "" {
		common["REDIS_URL"] = o.store
	}
	withServer := func(pool string, measure func(*client) error) error {
		common["POOL_SIZE"] = pool
		srv, err := startServer(ctx, binary, dir, common)
		if err != nil {
			return err
		}
		err = measure(newClient(srv.url, key))
		if err != nil {
			err = fmt.Errorf("%w\nlog of the server:\n%s", err, srv.log)
		}
		return errors.Join(err, srv.stop())
	}
	err = withServer("0", func(c *client) error {
		return r.measure(ctx, subject{client: c, n: o.n, settle: teardown}, []scenario{coldStart}, progress)
	})
	if err != nil {
		return err
	}
	// In this time the server makes another sandbox; should it take longer once, the
	// pool still has others.
	settle := teardown + time.Duration(r.Server[0].P95*float64(time.Millisecond))
	return withServer("8", func(c *client) error {
		return r.measure(ctx, subject{client: c, n: o.n, settle: settle}, scenarios, progress)
	})
}

// measure adds a row for each scenario.
func (r *report) measure(ctx context.Context, s subject, list []scenario, progress *log.Logger) error {
	for _, one := range list {
		progress.Printf("measuring %s …", one.name)
		samples, err := one.measure(ctx, s)
		if err != nil {
			return fmt.Errorf("%s: %w", one.name, err)
		}
		added := newRow(one.name, one.unit, samples).compare(one, r.Sandbox, r.Floors)
		r.Server = append(r.Server, added)
	}
	return nil
}
