package main

import "testing"

func TestPlaceHasNoCredentials(t *testing.T) {
	for address, want := range map[string]string{
		"redis://ada:secret@redis:6379/2?password=secret&addr=other:6379": "redis://redis:6379/2",
		"rediss://:secret@redis":                 "rediss://redis",
		"unix://ada:secret@/run/redis.sock?db=1": "unix:///run/redis.sock",
		"s3://bucket?secret=secret#secret":       "s3://bucket",
		"file:///var/lib/fermata/files":          "file:///var/lib/fermata/files",
	} {
		if got := place(address); got != want {
			t.Errorf("place(%q) = %q, want %q", address, got, want)
		}
	}
}
