package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// A unit is the unit of a row's figures.
type unit string

const (
	milliseconds unit = "ms"
	mebibytes    unit = "MiB"
	perSecond    unit = "/s"
)

func inMilliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// A goal is a limit of the median.
type goal struct {
	Limit float64 `json:"limit"`
	// Least says that the limit is the least value and not the greatest.
	Least bool `json:"least,omitempty"`
}

func atMost(limit float64) goal  { return goal{Limit: limit} }
func atLeast(limit float64) goal { return goal{Limit: limit, Least: true} }

func (g goal) met(value float64) bool {
	if g.Least {
		return value >= g.Limit
	}
	return value <= g.Limit
}

// A row is one line of the report.
type row struct {
	Name string  `json:"name"`
	Unit unit    `json:"unit"`
	N    int     `json:"n"`
	P50  float64 `json:"p50"`
	P95  float64 `json:"p95,omitempty"`
	// Floor is the sum of the floors that the figure contains, in milliseconds, and Ratio the
	// figure divided by it. It may be below 1, since a server does several things at once.
	Floor float64 `json:"floor_ms,omitempty"`
	Ratio float64 `json:"ratio,omitempty"`
	Goal  *goal   `json:"goal,omitempty"`
	Met   *bool   `json:"met,omitempty"`
}

func newRow(name string, u unit, samples []float64) row {
	sorted := slices.Sorted(slices.Values(samples))
	r := row{Name: name, Unit: u, N: len(sorted), P50: quantile(sorted, 0.5)}
	if len(sorted) > 1 {
		r.P95 = quantile(sorted, 0.95)
	}
	return r
}

// quantile returns the smallest sample that at least the share q of all samples do not exceed.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

// compare returns the row with the floors and the goal of its figure.
func (r row) compare(f figure, sandbox string, floors []row) row {
	for _, floor := range floors {
		r.Floor += float64(f.contains[floor.Name]) * floor.P50
	}
	if r.Floor > 0 {
		r.Ratio = r.P50 / r.Floor
		if r.Unit == perSecond {
			r.Ratio = 1000 / r.P50 / r.Floor
		}
	}
	if g, ok := f.goals[sandbox]; ok {
		met := g.met(r.P50)
		r.Goal, r.Met = &g, &met
	}
	return r
}

// A report is the result of measuring one server.
type report struct {
	Machine string `json:"machine"`
	Sandbox string `json:"sandbox"`
	Store   string `json:"store"`
	Floors  []row  `json:"floors"`
	Server  []row  `json:"server"`
	// Notes are what a reader has to know to compare this report with another one.
	Notes []string `json:"notes,omitempty"`
}

// machine describes the machine that this runs on.
func machine() string {
	kernel, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		kernel = []byte("unknown")
	}
	return fmt.Sprintf("%d CPUs, %s, %s/%s %s", runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH,
		strings.TrimSpace(string(kernel)))
}

// print writes the report for people.
func (r *report) print(w io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%s; sandbox %s, store %s\n\n", r.Machine, r.Sandbox, r.Store)
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	lines := []string{"floor\tn\tp50\tp95\t\t\t\t"}
	for _, one := range r.Floors {
		lines = append(lines, one.line())
	}
	lines = append(lines, "\t\t\t\t\t\t\t", "server\tn\tp50\tp95\tfloors\tratio\tgoal\t")
	for _, one := range r.Server {
		lines = append(lines, one.line())
	}
	if _, err := io.WriteString(table, strings.Join(lines, "\n")+"\n"); err != nil {
		return err
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, note := range r.Notes {
		fmt.Fprintf(&text, "\n%s\n", note)
	}
	_, err := io.WriteString(w, text.String())
	return err
}

func (r row) line() string {
	cells := []string{r.Name, strconv.Itoa(r.N), number(r.P50) + " " + string(r.Unit), "", "", "", "", ""}
	if r.P95 > 0 {
		cells[3] = number(r.P95) + " " + string(r.Unit)
	}
	if r.Ratio > 0 {
		cells[4] = number(r.Floor) + " " + string(milliseconds)
		cells[5] = fmt.Sprintf("%.1f×", r.Ratio)
	}
	if r.Goal != nil {
		sign, verdict := "≤", "miss"
		if r.Goal.Least {
			sign = "≥"
		}
		if *r.Met {
			verdict = "ok"
		}
		cells[6] = fmt.Sprintf("%s %g %s", sign, r.Goal.Limit, r.Unit)
		cells[7] = verdict
	}
	return strings.Join(cells, "\t")
}

// number returns a number with about three digits.
func number(v float64) string {
	switch {
	case v < 1:
		return fmt.Sprintf("%.3f", v)
	case v < 10:
		return fmt.Sprintf("%.2f", v)
	case v < 100:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}
