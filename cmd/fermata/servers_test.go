package main

import (
	"fmt"
	"testing"
)

// TestRedisAddresses shows to which addresses no toolset connects because Redis is there.
func TestRedisAddresses(t *testing.T) {
	for url, want := range map[string]string{
		"":                              "[]",
		"unix:///run/redis.sock":        "[]",
		"redis://user:word@127.0.0.1/3": "[127.0.0.1:6379]",
		"rediss://[::1]:7000":           "[[::1]:7000]",
		"redis://127.0.0.1:1?cluster=true&addr=127.0.0.2:2&addr=127.0.0.3:3": "[127.0.0.2:2 127.0.0.3:3 127.0.0.1:1]",
	} {
		s := serverSettings{RedisURL: secret{url}}
		if got := fmt.Sprint(s.redisAddresses(t.Context())); got != want {
			t.Errorf("%s: %s, want %s", url, got, want)
		}
	}
}
