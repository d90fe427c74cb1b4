package docker

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/client"

	"fermata/engine/enginetest"
	"fermata/engine/sandbox"
)

// daemon returns a client of the Docker daemon. It skips the test if there is no daemon,
// except in CI.
func daemon(t testing.TB) *client.Client {
	t.Helper()
	c, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := c.Ping(t.Context()); err != nil {
		if os.Getenv("CI") == "" {
			t.Skipf("no Docker daemon: %v", err)
		}
		t.Fatalf("no Docker daemon: %v", err)
	}
	return c
}

// options returns the options of a provider that shares no containers with other tests.
func options(t testing.TB, change ...func(*Options)) Options {
	o := Options{
		Image:        "fermata-sandbox",
		Installation: "test-" + strings.ReplaceAll(t.Name(), "/", "-") + "-" + time.Now().Format("150405.000000"),
		Server:       enginetest.Server,
		Limits:       sandbox.Limits{Memory: 512 << 20, CPUs: 2, PIDs: 32, Output: 1 << 20, Disk: 32 << 20},
		Orphan:       5 * time.Minute,
		Log:          slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	if image := os.Getenv("FERMATA_DOCKER_IMAGE"); image != "" {
		o.Image = image
	}
	for _, f := range change {
		f(&o)
	}
	return o
}

func open(t testing.TB, change ...func(*Options)) *Provider {
	t.Helper()
	p, err := New(t.Context(), options(t, change...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		left, err := p.List(context.Background())
		if err != nil || len(left) > 0 {
			t.Errorf("List = %v, %v at the end, want none", left, err)
		}
		for _, s := range left {
			if err := p.Destroy(context.Background(), s.Ref); err != nil {
				t.Error(err)
			}
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// eachRuntime runs a test with runc, and with gVisor if the daemon has it.
func eachRuntime(t *testing.T, test func(t *testing.T, runtime string)) {
	info, err := daemon(t).Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, runtime := range []string{"runc", "runsc"} {
		if _, ok := info.Runtimes[runtime]; ok {
			t.Run(runtime, func(t *testing.T) { test(t, runtime) })
		}
	}
}

func withRuntime(runtime string) func(*Options) {
	return func(o *Options) { o.Runtime = runtime }
}

func TestConformance(t *testing.T) {
	eachRuntime(t, func(t *testing.T, runtime string) {
		enginetest.Run(t, func(t *testing.T) sandbox.Provider {
			p, err := New(t.Context(), options(t, withRuntime(runtime)))
			if err != nil {
				t.Fatal(err)
			}
			return p
		})
	})
}

func TestMissingImage(t *testing.T) {
	daemon(t)
	p, err := New(t.Context(), options(t, func(o *Options) { o.Image = "no-such-image:never" }))
	if err == nil {
		t.Fatalf("New = %v, want an error", p)
	}
	if want := "docker build --target sandbox -t no-such-image:never ."; !strings.Contains(err.Error(), want) {
		t.Errorf("New = %v, want %q in it", err, want)
	}
}

func TestMissingRuntime(t *testing.T) {
	daemon(t)
	p, err := New(t.Context(), options(t, withRuntime("no-such-runtime")))
	if err == nil || !strings.Contains(err.Error(), `no runtime "no-such-runtime"`) {
		t.Errorf("New = %v, %v, want an error that names the runtime", p, err)
	}
}
