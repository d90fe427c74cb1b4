package policy_test

import (
	"strconv"
	"testing"

	"fermata/engine/tools/config"
	"fermata/engine/tools/policy"
)

// TestRollout checks that a percentage of the principals may use toolsets, always the same ones, and that they
// stay in when the percentage grows.
func TestRollout(t *testing.T) {
	allowed := func(percent int, salt string) map[string]bool {
		p, _, err := policy.New(policy.Settings{Rollout: &percent, Salt: salt}, &config.File{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		in := map[string]bool{}
		for i := range 1000 {
			if who := "user-" + strconv.Itoa(i); p.Rights(who).Tool(policy.Name{Toolset: "a", Tool: "b"}) == nil {
				in[who] = true
			}
		}
		return in
	}
	if none, all := allowed(0, ""), allowed(100, ""); len(none) != 0 || len(all) != 1000 {
		t.Errorf("0 percent are %d and 100 percent are %d of 1000", len(none), len(all))
	}
	few, more, others := allowed(10, ""), allowed(20, ""), allowed(10, "another")
	if len(few) < 60 || len(few) > 140 || len(more) < 150 || len(more) > 250 {
		t.Errorf("10 percent are %d and 20 percent are %d of 1000", len(few), len(more))
	}
	same := 0
	for who := range few {
		if !more[who] {
			t.Errorf("%s is among 10 percent, and not among 20", who)
		}
		if others[who] {
			same++
		}
	}
	if same > len(few)/2 {
		t.Errorf("with another salt %d of %d principals are the same", same, len(few))
	}
}
