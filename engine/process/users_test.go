//go:build linux

package process

import (
	"os"
	"path/filepath"
	"testing"
)

// TestSubordinates checks which range of a file is a user's.
func TestSubordinates(t *testing.T) {
	path := filepath.Join(t.TempDir(), "subuid")
	text := "ada:100000:65536\n1000:300000:70000\n\n# ada:1:999999\nada:x:99999999\neve:500000:90000\nada:200000:1000\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, id string
		want     span
	}{
		{"ada", "1001", span{100_000, 65_536}},
		{"ada", "1000", span{300_000, 70_000}},
		{"eve", "1002", span{500_000, 90_000}},
		{"bob", "1003", span{}},
	} {
		got, err := subordinates(path, c.name, c.id)
		if err != nil || got != c.want {
			t.Errorf("%s, %s: got %v, %v, want %v", c.name, c.id, got, err, c.want)
		}
	}
	if got, err := subordinates(path+"-not", "ada", "1001"); err != nil || got.count != 0 {
		t.Errorf("without a file: got %v, %v, want none", got, err)
	}
}

// TestUsers checks that no two sandboxes have one user, those of an earlier server included.
func TestUsers(t *testing.T) {
	u := newUsers(3)
	u.keep("left" + userSeparator + "2")
	given := map[uint32]bool{2: true}
	for range 2 {
		n, err := u.take()
		if err != nil || n < 1 || n > 3 || given[n] {
			t.Fatalf("take() = %d, %v, want a user that nobody has", n, err)
		}
		given[n] = true
	}
	if n, err := u.take(); err == nil {
		t.Errorf("take() = %d, want an error: all are taken", n)
	}
	u.free("left" + userSeparator + "2")
	if n, err := u.take(); n != 2 || err != nil {
		t.Errorf("take() = %d, %v, want 2, which is free", n, err)
	}
	if n, err := newUsers(0).take(); n != 0 || err != nil {
		t.Errorf("take() = %d, %v, want 0: there are no users", n, err)
	}
}
