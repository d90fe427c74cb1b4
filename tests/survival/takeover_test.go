package tests

import (
	"math/rand/v2"
	"testing"
	"time"
)

// dockerReplicas returns servers that share a Redis and a Docker engine.
func dockerReplicas(t *testing.T) []*server {
	t.Helper()
	needDocker(t)
	redis := redisAlone(t)
	if err := redis.start(); err != nil {
		t.Fatal(err)
	}
	var servers []*server
	for range 3 {
		all := with(with(common, dockerSettings), settings{
			"ADDR": freeAddr(t), "REDIS_URL": redis.url(), "POOL_SIZE": "1",
			"SECRET": secret + t.Name(), // which the containers are shared by
		})
		servers = append(servers, launchAlone(t, setup{"docker", all}))
	}
	return servers
}

// TestReplicaTakesOver kills the server of paused and of running programs for good:
// another one, on the same Docker engine, goes on with them.
func TestReplicaTakesOver(t *testing.T) {
	t.Parallel()
	servers := dockerReplicas(t)
	c := alices(servers)
	waits := c[0].pause(t, program{Code: "x = [1]\nx.append(await ask(n=1))\nprint(x)\nprint(await ask(n=2))", Tools: tools("ask")})
	runs := c[0].pause(t, program{Code: "import time\ncount = await ask(n=0)\ntime.sleep(2)\nprint(count, await ask(n=1))", Tools: tools("ask")})
	lost := make(chan error, 1)
	go func() {
		_, err := c[0].send(t.Context(), runs.answers(value("7")))
		lost <- err
	}()
	time.Sleep(500 * time.Millisecond) // No answer tells that a program has begun.
	if err := servers[0].kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-lost; err == nil {
		t.Error("a request to a server that was killed had an answer")
	}
	// It takes as long as the dead one's lease; the request waits.
	next := c[1].post(t, waits.answers(echo))
	if next.Status != "tool_call_required" {
		t.Fatalf("got %v from another server, want the next pause", next)
	}
	c[2].post(t, next.answers(echo)).completes(t, "[1, {'n': 1}]\n{'n': 2}\n")
	next = c[2].post(t, runs.answers(value("7")))
	if next.Status != "tool_call_required" {
		t.Fatalf("got %v from another server, want the answer that the dead one owed", next)
	}
	if again := c[1].post(t, runs.answers(value("7"))); again.raw != next.raw {
		t.Errorf(askedAgain, again, next)
	}
	c[1].post(t, next.answers(value("8"))).completes(t, "7 8\n")
	if err := servers[0].start(); err != nil {
		t.Fatal(err)
	}
}

// TestReplicasTakeOverInTurn kills one server after the other while programs run, and
// leaves each away for longer than its lease.
func TestReplicasTakeOverInTurn(t *testing.T) {
	if testing.Short() {
		t.Skip("kills servers for a while")
	}
	t.Parallel()
	servers := dockerReplicas(t)
	stop := walkers(t, client{balance(t, servers), "key-a"})
	for n := range 3 {
		time.Sleep(rand.N(2 * time.Second))
		if err := servers[n].kill(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(8 * time.Second)
		if err := servers[n].start(); err != nil {
			t.Fatal(err)
		}
	}
	stop()
}
