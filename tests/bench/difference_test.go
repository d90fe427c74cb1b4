package main

import (
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
)

// pairsOf returns pairs with these ratios.
func pairsOf(ratios ...float64) (pairs []pair) {
	for i, r := range ratios {
		// The machine becomes slower with each pair, which must not matter.
		before := float64(i + 1)
		pairs = append(pairs, pair{Old: before, New: before * r})
	}
	return pairs
}

func TestDifference(t *testing.T) {
	steps := make([]float64, 20)
	for i := range steps {
		steps[i] = 1 + float64(i-7)/100 // 0.93 … 1.12
	}
	var outliers []float64
	for i := range 30 {
		outliers = append(outliers, 1.1+float64(i%3)/1000)
	}
	outliers[3], outliers[17] = 50, 0.01
	for _, test := range []struct {
		name              string
		unit              unit
		pairs             []pair
		center, low, high float64
		verdict, keeps    string
	}{
		{"the same", milliseconds, pairsOf(1, 1, 1, 1, 1, 1), 0, 0, 0, "no difference", "yes"},
		{"slower", milliseconds, pairsOf(1.2, 1.2, 1.2, 1.2, 1.2, 1.2), 0.2, 0.2, 0.2, "20.0 % slower", "no"},
		{"a little slower", milliseconds, pairsOf(1.03, 1.03, 1.03, 1.03, 1.03, 1.03), 0.03, 0.03, 0.03, "3.0 % slower", "yes"},
		{"faster", milliseconds, pairsOf(0.8, 0.8, 0.8, 0.8, 0.8, 0.8), -0.2, -0.2, -0.2, "20.0 % faster", "yes"},
		{"a higher rate", perSecond, pairsOf(1.2, 1.2, 1.2, 1.2, 1.2, 1.2), 0.2, 0.2, 0.2, "20.0 % faster", "yes"},
		{"a lower rate", perSecond, pairsOf(0.8, 0.8, 0.8, 0.8, 0.8, 0.8), -0.2, -0.2, -0.2, "20.0 % slower", "no"},
		{"more memory", mebibytes, pairsOf(1.2, 1.2, 1.2, 1.2, 1.2, 1.2), 0.2, 0.2, 0.2, "20.0 % more", "no"},
		{"less memory", mebibytes, pairsOf(0.8, 0.8, 0.8, 0.8, 0.8, 0.8), -0.2, -0.2, -0.2, "20.0 % less", "yes"},
		{"both ways", milliseconds, pairsOf(0.9, 1.1, 0.8, 1.2, 0.7, 1.3), -0.005, -0.3, 0.3, "no difference", "cannot tell"},
		// Of twenty values the interval of the sign test goes from the sixth to the fifteenth;
		// according to tables it then has a confidence of 0.9586.
		{"twenty", milliseconds, pairsOf(steps...), 0.025, -0.02, 0.07, "no difference", "cannot tell"},
		{"wild pairs", milliseconds, pairsOf(outliers...), 0.101, 0.1, 0.102, "10.1 % slower", "no"},
		{"too few", milliseconds, pairsOf(2, 2, 2, 2, 2), 1, math.NaN(), math.NaN(), "too few pairs", "cannot tell"},
		{"none", milliseconds, nil, 0, math.NaN(), math.NaN(), "too few pairs", "cannot tell"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := newDifference(figure{name: test.name, unit: test.unit}, test.pairs, 1)
			near := func(what string, got, want float64) {
				if math.Abs(got-want) > 0.0006 {
					t.Errorf("%s = %v, want %v", what, got, want)
				}
			}
			near("difference", d.Center, test.center)
			switch {
			case math.IsNaN(test.low) != (d.Low == nil):
				t.Errorf("interval = %v, %v; want %v, %v", d.Low, d.High, test.low, test.high)
			case d.Low != nil:
				near("low", *d.Low, test.low)
				near("high", *d.High, test.high)
			}
			if d.verdict() != test.verdict || d.keeps() != test.keeps {
				t.Errorf("verdict %q, keeps %q; want %q, %q", d.verdict(), d.keeps(), test.verdict, test.keeps)
			}
		})
	}
}

// TestComparisonPrint checks the table and the remark below it.
func TestComparisonPrint(t *testing.T) {
	c := comparison{Machine: "a machine", Sandbox: "process", Store: "embedded", Old: "abc", New: "def"}
	for i, ratio := range []float64{1, 1.2} {
		c.add(&contest{
			scenario: scenario{figures: []figure{{name: fmt.Sprintf("row %d", i), unit: milliseconds}}},
			pairs:    [][]pair{pairsOf(ratio, ratio, ratio, ratio, ratio, ratio)},
		})
	}
	c.Rows = append(c.Rows, newDifference(figure{name: "row 2"}, nil, 0))
	var text strings.Builder
	if err := c.print(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"old: abc\nnew: def\n", "95 % interval", "no difference", "+20.0 … +20.0 %  20.0 % slower  no",
		"1 of 2 rows with an interval differ. If nothing differed, chance alone would still show about 0.1 such rows.",
		"row 2  0",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("it lacks %q:\n%s", want, text.String())
		}
	}
}

func TestParse(t *testing.T) {
	for args, want := range map[string]string{
		"-ab -old HEAD -set POOL_SIZE=2 -set CPUS=2 -run print -time 1m -pairs 3": "",
		"-n 3":                          "",
		"-ab -n 3":                      "-n is not for -ab",
		"-ab -url http://x":             "-url is not for -ab",
		"-set A=1":                      "-set is for -ab",
		"-old HEAD":                     "-old is for -ab",
		"-ab -set A":                    "want NAME=VALUE",
		"-ab -set FERMATA_A=1":          "want NAME=VALUE",
		"-ab -set POOL_SIZE=1 -pairs 0": "-pairs is 0",
		"-run nothing-like-it":          "no part of the name of a row",
		"-run (":                        "-run: error parsing",
		"-sandbox x":                    "want process or docker",
		"-n 0":                          "want at least 1",
		"x":                             `unexpected argument "x"`,
	} {
		o, err := parse(strings.Fields(args), io.Discard)
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", args, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: error %v, want %q in it", args, err, want)
		case o.ab && want == "" && (len(o.set) != 2 || o.set["POOL_SIZE"] != "2" || o.old != "HEAD" || o.new != ""):
			t.Errorf("%s: got %+v", args, o)
		}
	}
}
