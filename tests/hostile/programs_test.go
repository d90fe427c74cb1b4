//go:build linux

package hostile

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	// hostileTimeout is how long a hostile program may run unless its own line says otherwise.
	hostileTimeout = 2 * time.Second
	// hostileSlack is how much later the answer may come, on a machine that other attacks keep
	// busy.
	hostileSlack = 20 * time.Second
	// hostileRest is how long the server may take until its condition is as before the attack.
	hostileRest = 20 * time.Second
)

// A hostile is one hostile program of the folders here. Its first line says what it tries. Lines
// like "# timeout: 3000" after it set the fields below.
type hostile struct {
	name, lang, code string
	// tool is the tool that the program calls, if it calls one.
	tool string
	// timeout limits the program. pause is how long its first calls wait for their results.
	timeout, pause time.Duration
	// result is the length of the text that each call gets as its result.
	result int
	// sandbox is the only sandbox that the program is for, "process" or "docker", or empty.
	sandbox string
}

// hostileLine matches a line that sets a field.
var hostileLine = regexp.MustCompile(`^# (\w+): (\w+)$`)

// readHostile reads one program.
func readHostile(path string) (hostile, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return hostile{}, err
	}
	extension := filepath.Ext(path)
	lang, ok := map[string]string{".py": "py", ".sh": "bash"}[extension]
	if !ok {
		return hostile{}, fmt.Errorf("%s: neither .py nor .sh", path)
	}
	prelude, err := os.ReadFile("prelude" + extension)
	if err != nil {
		return hostile{}, err
	}
	p := hostile{
		name: filepath.Base(filepath.Dir(path)) + "/" + filepath.Base(path), lang: lang,
		code: string(prelude) + "\n" + string(text), timeout: hostileTimeout,
	}
	lines := strings.Split(string(text), "\n")
	if !strings.HasPrefix(lines[0], "# ") || hostileLine.MatchString(lines[0]) {
		return p, fmt.Errorf("%s: the first line does not say what the program tries", path)
	}
	for _, line := range lines[1:] {
		m := hostileLine.FindStringSubmatch(line)
		if m == nil {
			break
		}
		number, err := strconv.Atoi(m[2])
		switch m[1] {
		case "tools":
			p.tool, err = m[2], nil
		case "sandbox":
			p.sandbox, err = m[2], nil
		case "timeout":
			p.timeout = time.Duration(number) * time.Millisecond
		case "pause":
			p.pause = time.Duration(number) * time.Millisecond
		case "result":
			p.result = number
		default:
			err = errors.New("unknown word")
		}
		if err != nil {
			return p, fmt.Errorf("%s: line %q: %w", path, line, err)
		}
	}
	return p, nil
}

// hostiles returns the programs for processes or for Docker. FERMATA_HOSTILE_ONLY is a regular
// expression that selects some of them by name.
func hostiles(t *testing.T, docker bool) []hostile {
	t.Helper()
	paths, err := filepath.Glob("*/*")
	if err != nil {
		t.Fatal(err)
	}
	only, err := regexp.Compile(os.Getenv("FERMATA_HOSTILE_ONLY"))
	if err != nil {
		t.Fatal(err)
	}
	var programs []hostile
	for _, path := range paths {
		if filepath.Base(filepath.Dir(path)) == "fuzz" {
			continue
		}
		p, err := readHostile(path)
		if err != nil {
			t.Fatal(err)
		}
		if (p.sandbox == "" || (p.sandbox == "docker") == docker) && only.MatchString(p.name) {
			programs = append(programs, p)
		}
	}
	return programs
}

// hostileTime returns for how long the tests repeat their attacks; at 0 they attack once.
func hostileTime(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("FERMATA_HOSTILE_TIME")
	if text == "" || text == "0" {
		return 0
	}
	limit, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("FERMATA_HOSTILE_TIME: %v", err)
	}
	return limit
}

// hostileRounds calls round once, or again and again during FERMATA_HOSTILE_TIME, each time with
// another seed, which it logs. FERMATA_HOSTILE_SEED is the first seed.
func hostileRounds(t *testing.T, round func(t *testing.T, seed uint64)) {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv("FERMATA_HOSTILE_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("FERMATA_HOSTILE_SEED: %v", err)
		}
	}
	for end := time.Now().Add(hostileTime(t)); ; seed = rand.Uint64() {
		t.Logf("FERMATA_HOSTILE_SEED=%d", seed)
		round(t, seed)
		if t.Failed() || !time.Now().Before(end) {
			return
		}
	}
}

// TestHostilePrograms runs every hostile program, in random order. After each one the server must
// answer, another client's paused program must go on, and the condition of the server and of the
// machine must be as before.
func TestHostilePrograms(t *testing.T) {
	overBesieged(t, func(t *testing.T, b besieged) {
		programs := hostiles(t, b.docker)
		a := besiege(t, b)
		hostileRounds(t, func(t *testing.T, seed uint64) {
			order := rand.New(rand.NewPCG(seed, 0))
			order.Shuffle(len(programs), func(i, j int) { programs[i], programs[j] = programs[j], programs[i] })
			for several := range slices.Chunk(programs, b.atOnce) {
				a.attack(t, several)
			}
		})
		a.end(t)
	})
}
