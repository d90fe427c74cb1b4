package tests

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
	// fullImage is the sandbox image with all libraries.
	fullImage = "fermata-sandbox"
	// plainImage is one without, whose containers start three times as fast.
	plainImage = "fermata-tests-plain"
	// dockerTimeout bounds a question to the Docker engine.
	dockerTimeout = 10 * time.Second
)

// plainDockerfile is what the README has users write for images of their own.
const plainDockerfile = `FROM python:3.11-slim
COPY --from=fermata-sandbox /opt/fermata /opt/fermata
USER 1000:1000
`

// dockerSettings choose Docker. Where one container after the other is made requests
// may have to wait for theirs.
var dockerSettings = settings{"SANDBOX": "docker", "DOCKER_IMAGE": plainImage, "QUEUE_TIMEOUT": "60s"}

// hasDocker reports whether there are a Docker engine and the sandbox image.
var hasDocker = sync.OnceValue(func() bool {
	ctx, cancel := context.WithTimeout(context.Background(), dockerTimeout)
	defer cancel()
	return inCI || exec.CommandContext(ctx, "docker", "image", "inspect", fullImage).Run() == nil
})

// hasGVisor reports whether the Docker engine can run containers with gVisor.
var hasGVisor = sync.OnceValue(func() bool {
	if inCI {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), dockerTimeout)
	defer cancel()
	runtimes, err := exec.CommandContext(ctx, "docker", "info", "--format", "{{range $name, $_ := .Runtimes}}{{$name}} {{end}}").Output()
	return err == nil && slices.Contains(strings.Fields(string(runtimes)), "runsc")
})

// needDocker skips a test where there is no Docker engine.
func needDocker(t *testing.T) {
	t.Helper()
	if !hasDocker() {
		t.Skipf("no Docker engine has the image %s", fullImage)
	}
}

// buildPlainImage makes the plain image, once.
var buildPlainImage = sync.OnceValue(func() error {
	build := exec.Command("docker", "build", "--quiet", "--tag", plainImage, "-")
	build.Stdin = strings.NewReader(plainDockerfile)
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the image %s: %w\n%s", plainImage, err, out)
	}
	return nil
})

// libraries are the settings of a server whose programs have pandas, jq and the like.
func (s setup) libraries() settings {
	if s.docker() {
		return settings{"DOCKER_IMAGE": fullImage}
	}
	return nil
}

func (s setup) docker() bool { return s.settings["SANDBOX"] == "docker" }

// dockerClient talks to the Docker engine that DOCKER_HOST names.
var dockerClient = sync.OnceValues(func() (*dockerapi.Client, error) {
	return dockerapi.NewClientWithOpts(dockerapi.FromEnv, dockerapi.WithAPIVersionNegotiation())
})

// containers returns the containers that a server has made, or one that lived in its
// state directory before it.
func (s *server) containers(ctx context.Context) ([]container.Summary, error) {
	if s.settings["SANDBOX"] != "docker" {
		return nil, nil
	}
	home, err := os.ReadFile(filepath.Join(s.settings["STATE_DIR"], "home"))
	if err != nil || len(home) == 0 {
		return nil, nil // It has not come as far as to make any.
	}
	c, err := dockerClient()
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

// contained returns the first processes of the server's containers.
func (s *server) contained() []process {
	ctx := context.Background()
	list, err := s.containers(ctx)
	if err != nil || len(list) == 0 {
		return nil
	}
	c, err := dockerClient()
	if err != nil {
		return nil
	}
	var first []process
	for _, one := range list {
		if found, err := c.ContainerInspect(ctx, one.ID); err == nil && found.State.Pid != 0 {
			first = append(first, process{pid: found.State.Pid})
		}
	}
	return first
}
