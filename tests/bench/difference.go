package main

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"

	"golang.org/x/perf/benchmath"
)

const (
	// confidence is how often the interval of a difference contains the true difference.
	confidence = 0.95
	// allowed is by how much a row may become worse.
	allowed = 0.05
)

// A difference is one row of a comparison. Differences are ratios of new to old, less 1.
type difference struct {
	Name string  `json:"name"`
	Unit unit    `json:"unit"`
	Old  float64 `json:"old"`
	New  float64 `json:"new"`
	// Center is the median of the pairs' differences. Low and High bound its interval; they are
	// nil if there are too few pairs.
	Center float64  `json:"difference"`
	Low    *float64 `json:"low"`
	High   *float64 `json:"high"`
	// Seconds is how long the scenario of this row took, with all its rows.
	Seconds float64 `json:"seconds"`
	Pairs   []pair  `json:"pairs"`
}

// newDifference summarizes pairs. It assumes nothing about their distribution: the interval is that
// of the sign test, which holds for any distribution and is not moved by a few outliers of a busy
// machine.
func newDifference(f figure, pairs []pair, seconds float64) difference {
	var before, after, logs []float64
	for _, p := range pairs {
		before, after = append(before, p.Old), append(after, p.New)
		logs = append(logs, math.Log(p.New/p.Old))
	}
	center := func(values []float64) benchmath.Summary {
		return benchmath.AssumeNothing.Summary(benchmath.NewSample(values, &benchmath.DefaultThresholds), confidence)
	}
	d := difference{Name: f.name, Unit: f.unit, Seconds: seconds, Pairs: pairs}
	if len(pairs) == 0 {
		return d
	}
	d.Old, d.New = center(before).Center, center(after).Center
	ratio := center(logs)
	d.Center = math.Expm1(ratio.Center)
	if !math.IsInf(ratio.Lo, 0) && !math.IsInf(ratio.Hi, 0) {
		low, high := math.Expm1(ratio.Lo), math.Expm1(ratio.Hi)
		d.Low, d.High = &low, &high
	}
	return d
}

// worse returns the bounds of how much worse the new side is, if there are any. A rate is worse
// when it is lower.
func (d difference) worse() (low, high float64, ok bool) {
	switch {
	case d.Low == nil:
		return 0, 0, false
	case d.Unit == perSecond:
		return 1/(1+*d.High) - 1, 1/(1+*d.Low) - 1, true
	}
	return *d.Low, *d.High, true
}

// verdict puts the interval into words.
func (d difference) verdict() string {
	low, high, ok := d.worse()
	words := map[bool]string{true: "slower", false: "faster"}
	if d.Unit == mebibytes {
		words = map[bool]string{true: "more", false: "less"}
	}
	switch {
	case !ok:
		return "too few pairs"
	case low <= 0 && high >= 0:
		return "no difference"
	}
	return fmt.Sprintf("%.1f %% %s", 100*math.Abs(d.Center), words[low > 0])
}

// keeps answers whether the row keeps within what is allowed: whether it is no worse than that.
func (d difference) keeps() string {
	low, high, ok := d.worse()
	switch {
	case ok && high <= allowed:
		return "yes"
	case ok && low > allowed:
		return "no"
	}
	return "cannot tell"
}

// line returns the cells of the row in a table.
func (d difference) line() string {
	cells := []string{d.Name, strconv.Itoa(len(d.Pairs)), fmt.Sprintf("%.0f s", d.Seconds), "", "", "", "", d.verdict(), d.keeps(), ""}
	if len(d.Pairs) > 0 {
		cells[3], cells[4] = number(d.Old)+" "+string(d.Unit), number(d.New)+" "+string(d.Unit)
		cells[5] = fmt.Sprintf("%+.1f %%", 100*d.Center)
	}
	if d.Low != nil {
		cells[6] = fmt.Sprintf("%+.1f … %+.1f %%", 100**d.Low, 100**d.High)
	}
	return strings.Join(cells, "\t")
}

// A comparison is the result of comparing two servers, and the machine that they ran on.
type comparison struct {
	Machine string       `json:"machine"`
	Sandbox string       `json:"sandbox"`
	Store   string       `json:"store"`
	Old     string       `json:"old"`
	New     string       `json:"new"`
	Rows    []difference `json:"rows"`
}

// add adds the rows of a contest.
func (c *comparison) add(from *contest) {
	for i, f := range from.figures {
		c.Rows = append(c.Rows, newDifference(f, from.pairs[i], from.took.Seconds()))
	}
}

// print writes the comparison for people.
func (c *comparison) print(w io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%s; sandbox %s, store %s\nold: %s\nnew: %s\n\n", c.Machine, c.Sandbox, c.Store, c.Old, c.New)
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	lines := []string{fmt.Sprintf("row\tpairs\ttook\told\tnew\tdifference\t%.0f %% interval\tverdict\tworse by ≤ %.0f %%\t", 100*confidence, 100*allowed)}
	judged, differ := 0, 0
	for _, d := range c.Rows {
		lines = append(lines, d.line())
		low, high, ok := d.worse()
		if ok {
			judged++
		}
		if ok && (low > 0 || high < 0) {
			differ++
		}
	}
	if _, err := io.WriteString(table, strings.Join(lines, "\n")+"\n"); err != nil {
		return err
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(&text, `
%d of %d rows with an interval differ. Of so many that are the same on both sides about %.1f differ by chance.
"No difference" says that none was seen: the interval tells how large one may yet be, and a longer -time narrows it.
`, differ, judged, (1-confidence)*float64(judged))
	_, err := io.WriteString(w, text.String())
	return err
}
