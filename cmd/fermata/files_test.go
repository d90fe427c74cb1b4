package main

import (
	"slices"
	"testing"
)

func TestWhereFilesAre(t *testing.T) {
	for _, c := range []struct {
		url, opened string
		hidden      []string
	}{
		{"", "file:///var/lib/a%20b/files", []string{"/var/lib/a b", "/var/lib/a b/files"}},
		{"file:///usr/share/files/", "file:///usr/share/files/", []string{"/var/lib/a b", "/usr/share/files"}},
		{"s3://bucket?region=x", "s3://bucket?region=x", []string{"/var/lib/a b"}},
	} {
		s, err := parse(t, "--api-keys=k", "--files-url="+c.url)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Files.url("/var/lib/a b"); got != c.opened {
			t.Errorf("%q: opens %s, want %s", c.url, got, c.opened)
		}
		if got := s.Files.hidden("/var/lib/a b"); !slices.Equal(got, c.hidden) {
			t.Errorf("%q: hides %q, want %q", c.url, got, c.hidden)
		}
	}
}

func TestInputSize(t *testing.T) {
	for _, c := range []struct {
		memory, disk string
		want         int64
	}{
		{"512MiB", "256MiB", 256 << 20},
		{"1GiB", "256MiB", 256 << 20},
		{"100MiB", "256MiB", 50 << 20},
	} {
		s, err := parse(t, "--api-keys=k", "--memory="+c.memory, "--disk="+c.disk)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Sandbox.inputSize(); got != c.want {
			t.Errorf("with %s of memory and %s of disk: %d, want %d", c.memory, c.disk, got, c.want)
		}
	}
}
