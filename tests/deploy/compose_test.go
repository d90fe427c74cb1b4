package deploy

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"fermata/tests/harness"
)

// TestCompose runs compose.yaml: a paused program survives when the server is killed, and nothing
// is left in the end. It needs the images and a Docker daemon that no other server uses.
func TestCompose(t *testing.T) {
	socket, local := strings.CutPrefix(os.Getenv("DOCKER_HOST"), "unix://")
	if !local {
		socket = "/var/run/docker.sock"
	}
	var status syscall.Stat_t
	if err := syscall.Stat(socket, &status); err != nil {
		t.Fatal(err)
	}
	project := fmt.Sprintf("fermata-tests-%d", os.Getpid())
	port := freePort(t)
	environment := append(os.Environ(), "DOCKER_SOCKET="+socket, fmt.Sprintf("DOCKER_GID=%d", status.Gid),
		"FERMATA_PORT="+port, "FERMATA_API_KEYS=alice:a-key-of-alice", "FERMATA_SECRET="+harness.Secret)
	compose := func(arguments ...string) string {
		t.Helper()
		words := append(composeCommand(), "--file", "../../compose.yaml", "--project-name", project)
		words = append(words, arguments...)
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Env = environment
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, out)
		}
		return string(out)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(compose("logs"))
		}
		compose("down", "--volumes")
		err := harness.Within(harness.ClearTimeout, func() error {
			out, err := exec.Command("docker", "ps", "--all", "--quiet", "--filter", "label=fermata.server").Output()
			if err == nil && len(out) > 0 {
				err = fmt.Errorf("containers are left: %q", out)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})

	alice := harness.Client{URL: "http://127.0.0.1:" + port, Key: "a-key-of-alice"}
	up := func() {
		t.Helper()
		compose("up", "--detach", "--wait")
		if t.Failed() {
			t.FailNow()
		}
		err := harness.Within(harness.StartTimeout, func() error {
			a, err := alice.Request(t.Context(), http.MethodGet, "/ready", nil, nil)
			if err == nil && a.HTTPStatus != http.StatusOK {
				err = fmt.Errorf("GET /ready: %v", a)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	up()
	paused := alice.Pause(t, harness.Program{Code: "print(await lookup(n=1))", Tools: harness.Tools("lookup")})
	compose("kill", "server")
	up()
	if a := alice.Post(t, paused.Continue(harness.Value("7"))); a.Status != "completed" || a.Stdout != "7\n" {
		t.Errorf("after a killed server the program gets %v, want it completed", a)
	}
}

// composeCommand returns the command of Compose: Docker's plugin, or else the separate program.
func composeCommand() []string {
	if exec.Command("docker", "compose", "version").Run() == nil {
		return []string{"docker", "compose"}
	}
	return []string{"docker-compose"}
}

// freePort returns a port that nobody listened on a moment ago.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err := errors.Join(err, l.Close()); err != nil {
		t.Fatal(err)
	}
	return port
}
