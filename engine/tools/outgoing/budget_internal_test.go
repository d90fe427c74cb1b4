package outgoing

import "testing"

// TestSharesOfTheBudget shows that a principal leaves half of the budget to others, who get a quarter each, and that the budget bounds all of them.
func TestSharesOfTheBudget(t *testing.T) {
	b := NewBudget(400)
	if !b.take("mallory", 200) || b.take("mallory", 1) {
		t.Error("a principal has more or less than half")
	}
	for _, principal := range []string{"alice", "bob"} {
		if !b.take(principal, 100) {
			t.Errorf("%s does not get a share", principal)
		}
	}
	if b.take("dave", 1) {
		t.Error("there is more than the budget")
	}
	b.give("mallory", 100)
	if !b.take("dave", 1) || b.taken["mallory"] != 100 || len(b.taken) != 4 {
		t.Errorf("what was given back is not there: %v", b.taken)
	}
}
