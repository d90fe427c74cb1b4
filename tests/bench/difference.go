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
	// allowed is by how much a change may make a row worse.
	allowed = 0.05
)

// A difference is one row of a comparison. A difference of 0.1 says that the new side's figure
// is 1.1 times that of the old side.
type difference struct {
	Name string  `json:"name"`
	Unit unit    `json:"unit"`
	Old  float64 `json:"old"`
	New  float64 `json:"new"`
	// Center is the median of the differences of all pairs, and Low to High its interval. They
	// are nil if there are too few pairs.
	Center float64  `json:"difference"`
	Low    *float64 `json:"low"`
	High   *float64 `json:"high"`
	// Seconds is how long the measurement of the row's scenario took, of which other rows may
	// come as well.
	Seconds float64 `json:"seconds"`
	Pairs   []pair  `json:"pairs"`
}

// newDifference sums up pairs. Its interval is that of the sign test, which assumes nothing
// about the distribution: it reaches from the ratio of one pair to the ratio of another. A few
// wild pairs of a busy machine do not move it.
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

// worse returns the bounds of how much worse the new side is; a rate is worse if it is lower.
// It is false if the row has no interval.
func (d difference) worse() (low, high float64, ok bool) {
	switch {
	case d.Low == nil:
		return 0, 0, false
	case d.Unit == perSecond:
		return 1/(1+*d.High) - 1, 1/(1+*d.Low) - 1, true
	}
	return *d.Low, *d.High, true
}

// verdict returns the interval in words.
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

// keeps reports whether the row is worse by no more than allowed.
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

// line returns the row's line of the table, its cells separated by tabs.
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

// A comparison is the result of comparing two servers.
type comparison struct {
	Machine string       `json:"machine"`
	Sandbox string       `json:"sandbox"`
	Store   string       `json:"store"`
	Old     string       `json:"old"`
	New     string       `json:"new"`
	Rows    []difference `json:"rows"`
}

// add adds the rows of a contest to the comparison.
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
%d of %d rows with an interval differ. If nothing differed, chance alone would still show about %.1f such rows.
"No difference" says that none was seen. The interval tells how large it may be; a longer -time makes it narrower.
`, differ, judged, (1-confidence)*float64(judged))
	_, err := io.WriteString(w, text.String())
	return err
}
