// Command bench measures the server beside the floors, the work that no such server can avoid:
// HTTP, a socket to CPython, a fork. With -ab it compares two servers instead, which are of
// two commits or have two settings. It builds and starts the real server, checks every answer
// and prints one table. Its exit code judges no figure, since machines differ.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"regexp"
	"slices"
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
	run                              *regexp.Regexp

	// The following are for a comparison.
	ab       bool
	old, new string
	set      settings
	pairs    int
	time     time.Duration
}

func parse(args []string, stderr io.Writer) (options, error) {
	o := options{set: settings{}}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.sandbox, "sandbox", "process", "sandbox of the server: process or docker")
	flags.StringVar(&o.store, "store", "", "store of the server, a Redis URL; embedded if empty")
	flags.StringVar(&o.url, "url", "", "measure the server that runs there instead of starting one")
	flags.StringVar(&o.key, "key", key, "API key for -url")
	flags.StringVar(&o.python, "python", "/usr/bin/python3", "Python for the floors and the process sandbox")
	flags.IntVar(&o.n, "n", 100, "samples of each figure; fewer of slow figures, more of fast ones")
	flags.BoolVar(&o.json, "json", false, "print JSON, with every pair of a comparison")
	run := flags.String("run", "", "measure only rows whose name matches the regular `expression`")
	flags.BoolVar(&o.ab, "ab", false, "compare two servers, which take turns")
	flags.StringVar(&o.old, "old", "", "with -ab, the `commit` of the old server; the work tree if empty")
	flags.StringVar(&o.new, "new", "", "with -ab, the `commit` of the new server; the work tree if empty")
	flags.Var(o.set, "set", "with -ab, a setting of the new server alone, `NAME=VALUE` without FERMATA_; repeatable")
	flags.IntVar(&o.pairs, "pairs", 400, "with -ab, most pairs of each row")
	flags.DurationVar(&o.time, "time", 5*time.Minute, "with -ab, how long the measurement may take; the longer, the finer")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	var err error
	if o.run, err = regexp.Compile(*run); err != nil {
		return o, fmt.Errorf("-run: %w", err)
	}
	flags.Visit(func(f *flag.Flag) {
		switch f.Name {
		case "url", "key", "n":
			if o.ab {
				err = fmt.Errorf("-%s is not for -ab, which starts its servers and takes turns until -time is over", f.Name)
			}
		case "old", "new", "set", "pairs", "time":
			if !o.ab {
				err = fmt.Errorf("-%s is for -ab", f.Name)
			}
		}
	})
	switch {
	case err != nil:
		return o, err
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case o.sandbox != "process" && o.sandbox != "docker":
		return o, fmt.Errorf("-sandbox is %q, want process or docker", o.sandbox)
	case o.n < 1:
		return o, fmt.Errorf("-n is %d, want at least 1", o.n)
	case o.pairs < 1:
		return o, fmt.Errorf("-pairs is %d, want at least 1", o.pairs)
	case len(matching(slices.Concat(scenarios, serverToolScenarios, loads), o.run)) == 0:
		return o, fmt.Errorf("-run is %q, which is no part of the name of a row", *run)
	}
	return o, nil
}

// common returns the settings of all servers that are started here.
func (o options) common() settings {
	s := settings{"SANDBOX": o.sandbox, "PYTHON": o.python, "MAX_SANDBOXES": "200", "MAX_RESULT": "16MiB", "QUEUE_TIMEOUT": "60s"}
	if o.store != "" {
		s["REDIS_URL"], s["SECRET"] = o.store, "bench-0f1e2d3c4b5a69788796a5b4c3d2e1f0"
	}
	return s
}

func (o options) storeName() string {
	switch {
	case o.url != "":
		return "of " + o.url
	case o.store != "":
		return "redis"
	}
	return "embedded"
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

	progress := log.New(stderr, "", 0)
	var result interface {
		print(w io.Writer) error
	}
	if o.ab {
		result, err = runComparison(ctx, o, dir, progress)
	} else {
		result, err = runReport(ctx, o, dir, progress)
	}
	if err != nil {
		return err
	}
	if o.json {
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		return e.Encode(result)
	}
	return result.print(stdout)
}

// warmUp is how many samples are taken and not counted before the others.
const warmUp = 3

// runReport measures the floors and the server.
func runReport(ctx context.Context, o options, dir string, progress *log.Logger) (*report, error) {
	r := &report{Machine: machine(), Sandbox: o.sandbox, Store: o.storeName()}
	progress.Print("measuring the floors …")
	floors, missing, err := measureFloors(ctx, o.python, dir, o.n)
	if err != nil {
		return nil, err
	}
	r.Floors = floors
	if missing != "" {
		r.Notes = append(r.Notes, fmt.Sprintf("Not installed for %s, so not in the floor: %s.", o.python, missing))
	}
	if o.url != "" {
		return r, r.measureRunning(ctx, o, progress)
	}
	return r, r.measureOwn(ctx, o, dir, progress)
}

// settleRunning is how long a server that was not started here gets to fill its pool before
// each measurement, since its metrics cannot be asked.
const settleRunning = 500 * time.Millisecond

// measureRunning measures the server at o.url.
func (r *report) measureRunning(ctx context.Context, o options, progress *log.Logger) error {
	s := subject{
		client: newClient(o.url, o.key), n: o.n,
		rest: func(ctx context.Context) error { return wait(ctx, settleRunning) },
	}
	if err := s.client.healthy(ctx); err != nil {
		return err
	}
	r.Notes = append(r.Notes, "The server ran already: its pool is as large as its own settings say, and its memory can only be measured on this machine.")
	list := matching(scenarios, o.run)
	return r.measure(ctx, s, slices.DeleteFunc(list, func(one scenario) bool { return one.empty }), progress)
}

// measureOwn builds the server and measures it without a pool, then with a full pool.
func (r *report) measureOwn(ctx context.Context, o options, dir string, progress *log.Logger) (err error) {
	progress.Print("building the server …")
	b, err := buildTree(ctx, dir)
	if err != nil {
		return err
	}
	e, err := startEndpoint(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.stop()) }()
	common := o.common()
	common["TOOLSETS"] = e.toolsets
	for _, empty := range []bool{true, false} {
		list := slices.DeleteFunc(matching(slices.Concat(scenarios, serverToolScenarios), o.run), func(one scenario) bool { return one.empty != empty })
		srv, err := launch{build: b, dir: dir, common: common}.start(ctx, empty)
		if err != nil {
			return err
		}
		s := srv.subject(o.n, resting(srv))
		s.endpoint = e
		err = r.measure(ctx, s, list, progress)
		if err != nil {
			err = fmt.Errorf("%w\nlog of the server:\n%s", err, srv.log)
		}
		if err := errors.Join(err, srv.stop()); err != nil {
			return err
		}
	}
	return nil
}

// measure adds the rows of each scenario.
func (r *report) measure(ctx context.Context, s subject, list []scenario, progress *log.Logger) error {
	for _, one := range list {
		progress.Printf("measuring %s …", one.figures[0].name)
		samples, err := one.samples(ctx, s)
		if err != nil {
			return fmt.Errorf("%s: %w", one.figures[0].name, err)
		}
		for i, f := range one.figures {
			r.Server = append(r.Server, newRow(f.name, f.unit, samples[i]).compare(f, r.Sandbox, r.Floors))
		}
	}
	return nil
}

// samples takes all samples of each figure. Before each one it waits until the server is at rest.
func (one scenario) samples(ctx context.Context, s subject) ([][]float64, error) {
	all := make([][]float64, len(one.figures))
	first := warmUp
	if one.share == 0 {
		first = 0
	}
	for i := range first + one.count(s.n) {
		if err := s.rest(ctx); err != nil {
			return nil, err
		}
		samples, err := one.measure(ctx, s)
		if err != nil {
			return nil, err
		}
		if i < first {
			continue
		}
		for figure := range all {
			all[figure] = append(all[figure], samples[figure]...)
		}
	}
	return all, nil
}
