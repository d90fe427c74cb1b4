package sandbox

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

// line returns those who wait: kind, principal and rank.
func (q *queue) line() []string {
	var line []string
	for _, t := range q.turns {
		line = append(line, fmt.Sprint(t.kind[:1], " ", t.principal, t.rank))
	}
	return line
}

// Principals that wait are served in turns, and each of them in the order in which it came.
func TestTurns(t *testing.T) {
	var q queue
	for _, principal := range []string{"ada", "ada", "ada", "bob", "ada", "cyd", "bob"} {
		q.join(Plain, principal)
	}
	var order []string
	serve := func() {
		order = append(order, q.line()[0])
		q.serve(Plain, &Conn{})
	}
	serve()
	serve()
	q.join(Plain, "dan") // After cyd, who came before.
	for len(q.turns) > 0 {
		serve()
	}
	if want := []string{"p ada1", "p bob1", "p cyd1", "p ada2", "p bob2", "p dan2", "p ada3", "p ada4"}; !slices.Equal(order, want) {
		t.Errorf("served %v, want %v", order, want)
	}
}

// A sandbox goes to the first who waits for its kind. Who is overtaken that way keeps the
// place, and those who come later stand behind.
func TestTurnsOfKinds(t *testing.T) {
	var q queue
	q.join(Scientific, "ada")
	for range 3 {
		q.join(Plain, "bob")
	}
	place := q.join(Scientific, "cyd")
	if lack, want := q.lack(map[Kind]int{Plain: 2}), []Kind{Scientific, Scientific, Plain}; !slices.Equal(lack, want) {
		t.Errorf("beside two plain ones that are being made, %v are missing, want %v", lack, want)
	}
	if q.serve("unheard of", nil) || !q.serve(Plain, nil) || !q.serve(Plain, nil) {
		t.Error("not whoever waits for a kind is served")
	}
	q.join(Plain, "dan")
	if want := []string{"s ada1", "s cyd1", "p dan1", "p bob3"}; !slices.Equal(q.line(), want) {
		t.Errorf("the line is %v, want %v", q.line(), want)
	}
	if !q.leave(place) || q.leave(place) {
		t.Error("a place is not left once")
	}
	q.refuse(errors.New("no"), Scientific)
	if want := []string{"p dan1", "p bob3"}; !slices.Equal(q.line(), want) || q.waiting(Plain) != 2 || q.waiting(Scientific) != 0 {
		t.Errorf("the line is %v, want %v", q.line(), want)
	}
}
