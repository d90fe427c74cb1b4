package docker

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/docker/docker/client"

	"fermata/engine/sandbox"
)

// Check reports which of the things that New and its sandboxes need the Docker daemon has.
func Check(ctx context.Context, o Options) []sandbox.Finding {
	missing := func(what string, err error, remedy string) sandbox.Finding {
		return sandbox.Finding{What: what, State: sandbox.Missing, Detail: err.Error(), Remedy: remedy}
	}
	docker, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		return []sandbox.Finding{missing("Docker", err, "correct DOCKER_HOST")}
	}
	defer docker.Close() //nolint:errcheck // no request is under way
	info, err := docker.Info(ctx)
	if err != nil {
		return []sandbox.Finding{missing("Docker", err, "start the daemon, set DOCKER_HOST to its address, and let the server's user use its socket")}
	}
	findings := []sandbox.Finding{{
		What: "Docker", State: sandbox.OK,
		Detail: fmt.Sprintf("%s at %s, Linux %s, cgroup version %s", info.ServerVersion, docker.DaemonHost(), info.KernelVersion, cmp.Or(info.CgroupVersion, "1")),
	}}
	for _, n := range needs(info) {
		findings = append(findings, sandbox.Found(n.what, n.have, sandbox.Missing, "", wayToLimits))
	}
	options := strings.Join(info.SecurityOptions, " ")
	apart := strings.Contains(options, "name=rootless") || strings.Contains(options, "name=userns")
	findings = append(findings,
		sandbox.Found("limit on swap", info.SwapLimit, sandbox.Weaker, "", "boot with swapaccount=1, or do without swap: programs may use it beyond their memory limit"),
		sandbox.Found("users", apart, sandbox.Weaker, options,
			"set \"userns-remap\" in the daemon's daemon.json, or use a rootless daemon: otherwise the users of containers are users of the daemon's machine"),
		sandbox.Found("runtime", hasRuntime(info, o.Runtime), sandbox.Missing, cmp.Or(o.Runtime, info.DefaultRuntime),
			"name it under \"runtimes\" in the daemon's daemon.json"))
	image, err := docker.ImageInspect(ctx, o.Image)
	if err != nil {
		return append(findings, missing("image", err, fmt.Sprintf("build it in Fermata's source directory: `docker build --target sandbox -t %s .`", o.Image)))
	}
	return append(findings, sandbox.Finding{What: "image", State: sandbox.OK, Detail: fmt.Sprintf("%s, %s/%s, of %s", o.Image, image.Os, image.Architecture, image.Created)})
}
