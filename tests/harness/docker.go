package harness

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	dockerapi "github.com/docker/docker/client"
)

const (
	// fullImage is the sandbox image, which has the libraries.
	fullImage = "fermata-sandbox"
	// BareImage is an image without libraries, whose containers start three times as fast.
	BareImage = "fermata-tests-plain"
	// dockerTimeout is how long the Docker daemon may take to answer a question.
	dockerTimeout = 10 * time.Second
)

// bareDockerfile is what the README tells users to write for an image of their own.
const bareDockerfile = `FROM python:3.11-slim
COPY --from=fermata-sandbox /opt/fermata /opt/fermata
USER 1000:1000
`

// DockerSettings choose Docker. Requests may have to wait long for a container, since the daemon
// makes one after the other.
var DockerSettings = Settings{"SANDBOX": "docker", "DOCKER_IMAGE": BareImage, "QUEUE_TIMEOUT": "60s"}

// HasDocker reports whether the machine has a Docker daemon with the sandbox image.
var HasDocker = sync.OnceValue(func() bool {
	ctx, cancel := context.WithTimeout(context.Background(), dockerTimeout)
	defer cancel()
	return InCI || exec.CommandContext(ctx, "docker", "image", "inspect", fullImage).Run() == nil
})

// HasGVisor reports whether the Docker daemon can run containers with gVisor.
var HasGVisor = sync.OnceValue(func() bool {
	if InCI {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), dockerTimeout)
	defer cancel()
	runtimes, err := exec.CommandContext(ctx, "docker", "info", "--format", "{{range $name, $_ := .Runtimes}}{{$name}} {{end}}").Output()
	return err == nil && slices.Contains(strings.Fields(string(runtimes)), "runsc")
})

// NeedDocker skips a test if the machine has no Docker daemon.
func NeedDocker(t *testing.T) {
	t.Helper()
	if !HasDocker() {
		t.Skipf("no Docker daemon has the image %s", fullImage)
	}
}

// BuildBareImage builds BareImage, once.
var BuildBareImage = sync.OnceValue(func() error {
	build := exec.Command("docker", "build", "--quiet", "--tag", BareImage, "-")
	build.Stdin = strings.NewReader(bareDockerfile)
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the image %s: %w\n%s", BareImage, err, out)
	}
	return nil
})

// Libraries returns the settings of a server whose programs have pandas, jq and the like.
func (s Setup) Libraries() Settings {
	if s.Docker() {
		return Settings{"DOCKER_IMAGE": fullImage}
	}
	return Settings{"PYTHON": Python()}
}

// Docker reports whether the sandboxes are containers.
func (s Setup) Docker() bool { return s.Settings["SANDBOX"] == "docker" }

// DockerClient returns a client of the Docker daemon that DOCKER_HOST names.
var DockerClient = sync.OnceValues(func() (*dockerapi.Client, error) {
	c, err := dockerapi.NewClientWithOpts(dockerapi.FromEnv, dockerapi.WithAPIVersionNegotiation())
	if err != nil {
		return nil, err
	}
	// Otherwise the first requests negotiate, which is a data race if they come at the same time.
	ctx, cancel := context.WithTimeout(context.Background(), dockerTimeout)
	defer cancel()
	c.NegotiateAPIVersion(ctx)
	return c, nil
})

// Containers returns the containers that the server has made, or an earlier server with the same
// state directory.
func (s *Server) Containers(ctx context.Context) ([]container.Summary, error) {
	if s.Settings["SANDBOX"] != "docker" {
		return nil, nil
	}
	home, err := os.ReadFile(filepath.Join(s.Settings["STATE_DIR"], "home"))
	if err != nil || len(home) == 0 {
		return nil, nil // The server has not got as far as making any.
	}
	c, err := DockerClient()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, dockerTimeout)
	defer cancel()
	all, err := c.ContainerList(ctx, container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", "fermata.server"))})
	if err != nil {
		return nil, err
	}
	var own []container.Summary
	for _, one := range all {
		if strings.HasPrefix(one.Labels["fermata.server"], string(home)+".") {
			own = append(own, one)
		}
	}
	return own, nil
}

// contained returns the first process of each of the server's containers.
func (s *Server) contained() []Process {
	ctx := context.Background()
	list, err := s.Containers(ctx)
	if err != nil || len(list) == 0 {
		return nil
	}
	c, err := DockerClient()
	if err != nil {
		return nil
	}
	var first []Process
	for _, one := range list {
		if found, err := c.ContainerInspect(ctx, one.ID); err == nil && found.State.Pid != 0 {
			first = append(first, Process{PID: found.State.Pid})
		}
	}
	return first
}
