package abi

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the numbers of package unix into the files")

var (
	line   = regexp.MustCompile(`(?m)^\t([A-Z]\w*)\s+= (\S+)$`)
	number = regexp.MustCompile(`(?m)^\s+([A-Z]\w*)\s+= (?:syscall\.(?:Errno|Signal)\()?(0x[0-9a-fA-F]+|\d+)\)?$`)
)

// TestNumbers compares all numbers with those of package unix, also those of the other architecture.
func TestNumbers(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "golang.org/x/sys").Output()
	if err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(strings.TrimSpace(string(out)), "unix")
	for name, architectures := range map[string][]string{
		"zabi.go": {"amd64", "arm64"}, "zabi_amd64.go": {"amd64"}, "zabi_arm64.go": {"arm64"},
	} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, architecture := range architectures {
			want := numbers(t, source, architecture)
			mended := line.ReplaceAllStringFunc(string(text), func(l string) string {
				m := line.FindStringSubmatch(l)
				got, err := strconv.ParseUint(m[2], 0, 64)
				if right, known := want[m[1]]; !known || err != nil || got != right {
					t.Errorf("%s: %s = %s, package unix for %s has %#x", name, m[1], m[2], architecture, right)
					return fmt.Sprintf("\t%s = %#x", m[1], right)
				}
				return l
			})
			if *update {
				if err := os.WriteFile(name, []byte(mended), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// numbers returns the constants that package unix has on an architecture.
func numbers(t *testing.T, source, architecture string) map[string]uint64 {
	t.Helper()
	all := map[string]uint64{}
	for _, name := range []string{"zerrors_linux.go", "ztypes_linux.go", "zerrors_linux_%s.go", "ztypes_linux_%s.go", "zsysnum_linux_%s.go"} {
		text, err := os.ReadFile(filepath.Join(source, strings.ReplaceAll(name, "%s", architecture)))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range number.FindAllStringSubmatch(string(text), -1) {
			n, err := strconv.ParseUint(m[2], 0, 64)
			if err != nil {
				t.Fatal(err)
			}
			all[m[1]] = n
		}
	}
	return all
}
