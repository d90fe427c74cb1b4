package docker

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/docker/docker/client"

	"fermata/engine"
)

// Check reports which of the things that New and its sandboxes need the Docker daemon has.
func Check(ctx context.Context, o Options) []engine.Finding {
	missing := func(what string, err error, remedy string) engine.Finding {
		return engine.Finding{What: what, State: engine.Missing, Detail: err.Error(), Remedy: remedy}
	}
	docker, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		return []engine.Finding{missing("Docker", err, "correct DOCKER_HOST")}
	}
	defer docker.Close() //nolint:errcheck // no request is under way
	info, err := docker.Info(ctx)
	if err != nil {
		return []engine.Finding{missing("Docker", err, "start the daemon, set DOCKER_HOST to its address, and let the server's user use its socket")}
	}
	findings := []engine.Finding{{
		What: "Docker", State: engine.OK,
		Detail: fmt.Sprintf("%s at %s, Linux %s, cgroup version %s", info.ServerVersion, docker.DaemonHost(), info.KernelVersion, cmp.Or(info.CgroupVersion, "1")),
	}}
	for _, n := range needs(info) {
		findings = append(findings, engine.Found(n.what, n.have, engine.Missing, "", wayToLimits))
	}
	options := strings.Join(info.SecurityOptions, " ")
	apart := strings.Contains(options, "name=rootless") || strings.Contains(options, "name=userns")
	findings = append(findings,
		engine.Found("limit on swap", info.SwapLimit, engine.Weaker, "", "boot with swapaccount=1, or do without swap: programs may use it beyond their memory limit"),
		engine.Found("users", apart, engine.Weaker, options,
			"set \"userns-remap\" in the daemon's daemon.json, or use a rootless daemon: otherwise the users of containers are users of the daemon's machine"),
		engine.Found("runtime", hasRuntime(info, o.Runtime), engine.Missing, cmp.Or(o.Runtime, info.DefaultRuntime),
			"name it under \"runtimes\" in the daemon's daemon.json"))
	image, err := docker.ImageInspect(ctx, o.Image)
	if err != nil {
		return append(findings, missing("image", err, fmt.Sprintf("build it in Fermata's source directory: `docker build --target sandbox -t %s .`", o.Image)))
	}
	return append(findings, engine.Finding{What: "image", State: engine.OK, Detail: fmt.Sprintf("%s, %s/%s, of %s", o.Image, image.Os, image.Architecture, image.Created)})
}
