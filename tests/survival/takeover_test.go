package survival

import (
	"math/rand/v2"
	"testing"
	"time"

	"fermata/tests/harness"
)

// dockerReplicas returns three servers that share a Redis and a Docker daemon.
func dockerReplicas(t *testing.T) []*harness.Server {
	t.Helper()
	harness.NeedDocker(t)
	redis := harness.RedisAlone(t)
	if err := redis.Start(); err != nil {
		t.Fatal(err)
	}
	bucket := harness.Bucket(t)
	var servers []*harness.Server
	for range 3 {
		all := harness.With(harness.Common, harness.DockerSettings, harness.Settings{
			"ADDR": harness.FreeAddr(t), "REDIS_URL": redis.URL(), "FILES_URL": bucket, "POOL_SIZE": "1",
			"SECRET": harness.Secret + t.Name(), // servers with the same secret share containers
		})
		servers = append(servers, harness.LaunchAlone(t, harness.Setup{Name: "docker", Settings: all}))
	}
	return servers
}

// TestReplicaTakesOver kills the server of a paused and of a running program. Another server on the
// same Docker daemon takes both over.
func TestReplicaTakesOver(t *testing.T) {
	t.Parallel()
	servers := dockerReplicas(t)
	c := harness.Alices(servers)
	waits := c[0].Pause(t, harness.Program{Code: "x = [1]\nx.append(await ask(n=1))\nprint(x)\nprint(await ask(n=2))", Tools: harness.Tools("ask")})
	begun := harness.NewMark()
	runs := c[0].Pause(t, harness.Program{Code: "import time\ncount = await ask(n=0)\n" + begun.Line() + "time.sleep(2)\nprint(count, await ask(n=1))", Tools: harness.Tools("ask")})
	lost := make(chan error, 1)
	go func() {
		_, err := c[0].Send(t.Context(), runs.Continue(harness.Value("7")))
		lost <- err
	}()
	begun.Await(t, 1)
	if err := servers[0].Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-lost; err == nil {
		t.Error("a request to a server that was killed had an answer")
	}
	// The request waits until the lease of the dead server ends.
	next := c[1].Post(t, waits.Continue(harness.Echo))
	if next.Status != "tool_call_required" {
		t.Fatalf("got %v from another server, want the next pause", next)
	}
	seen := tells(t, c[1], nil, next)
	end := c[2].Post(t, next.Continue(harness.Echo))
	end.Completes(t, "[1, {'n': 1}]\n{'n': 2}\n")
	tells(t, c[1], seen, end)
	next = c[2].Post(t, runs.Continue(harness.Value("7")))
	if next.Status != "tool_call_required" {
		t.Fatalf("got %v from another server, want the answer that the dead one owed", next)
	}
	if again := c[1].Post(t, runs.Continue(harness.Value("7"))); again.Raw != next.Raw {
		t.Errorf(harness.AskedAgain, again, next)
	}
	seen = tells(t, c[1], nil, next)
	end = c[1].Post(t, next.Continue(harness.Value("8")))
	end.Completes(t, "7 8\n")
	tells(t, c[2], seen, end)
	if err := servers[0].Start(); err != nil {
		t.Fatal(err)
	}
}

// TestReplicasTakeOverInTurn kills one server after the other while programs run, and starts each
// again only after its lease has ended.
func TestReplicasTakeOverInTurn(t *testing.T) {
	if testing.Short() {
		t.Skip("kills servers for a while")
	}
	t.Parallel()
	servers := dockerReplicas(t)
	stop := walkers(t, harness.Client{URL: balance(t, servers), Key: "key-a"})
	for n := range 3 {
		time.Sleep(rand.N(2 * time.Second))
		if err := servers[n].Kill(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(8 * time.Second)
		if err := servers[n].Start(); err != nil {
			t.Fatal(err)
		}
	}
	stop()
}
