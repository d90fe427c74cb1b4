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
	// hostileTimeout is how long a hostile program may run if it does not say so.
	hostileTimeout = 2 * time.Second
	// hostileSlack is how much later than that an answer may come, on a machine that
	// others keep busy with their attacks.
	hostileSlack = 20 * time.Second
	// hostileRest is how long the server may take to be as it was before a program.
	hostileRest = 20 * time.Second
)

// A hostile is one program of the corpus in tests/hostile. Its first line says what it
// tries. Lines like "# timeout: 3000" behind it are for the driver.
type hostile struct {
	name, lang, code string
	// tool is the tool that it calls, if it is one that calls tools.
	tool string
	// timeout is its own, pause is how long its first calls wait for their answers.
	timeout, pause time.Duration
	// result is how many bytes of text each call is answered with.
	result int
	// sandbox is the only kind that it runs in, if there is one.
	sandbox string
}

// hostileLine is a line for the driver.
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

// hostiles returns the programs for a kind of sandbox. FERMATA_HOSTILE_ONLY is a pattern
// of the names of some of them.
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

// hostileTime is how long the tests of hostile programs go on; at 0 each does its work once.
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

// hostileRounds calls round once, or again and again for as long as FERMATA_HOSTILE_TIME
// says, with a fresh seed each time, which it prints. FERMATA_HOSTILE_SEED is the first one.
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

// TestHostilePrograms runs every program of tests/hostile, in an order of chance. After each one
// the server answers, another client's paused program goes on, nothing is left and
// nothing has changed.
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
