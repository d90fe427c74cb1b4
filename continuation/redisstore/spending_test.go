//go:build linux

package redisstore_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"fermata/continuation"
)

// The client repeats a change whose reply was lost, but Redis makes the change only once. Servers that share a
// Redis have one sum.
func TestSpendingLostReply(t *testing.T) {
	server := startServer(t)
	proxy := startProxy(t, server.socket)
	s, other := open(t, "unix://"+proxy.socket), open(t, server.url())
	spending := func() continuation.Spending {
		return continuation.Spending{ID: uuid.NewString(), Day: continuation.DayOf(time.Now()), Principal: "ada", Cost: 3}
	}
	const most = 30
	for i := range int64(10) {
		sp := spending()
		for _, refund := range []bool{true, false} {
			proxy.loseReply.Store(i%2 == 1)
			if before, ok, err := s.Spend(t.Context(), sp, most); err != nil || !ok || before != 3*i {
				t.Fatalf("Spend number %d = %d, %t, %v; want %d before", i, before, ok, err, 3*i)
			}
			if !refund {
				break
			}
			proxy.loseReply.Store(i%2 == 1)
			if err := s.Refund(t.Context(), sp); err != nil {
				t.Fatalf("Refund = %v, want success", err)
			}
			sp = spending()
		}
	}
	if before, ok, err := other.Spend(t.Context(), spending(), most); err != nil || ok || before != most {
		t.Errorf("Spend of another server = %d, %t, %v; want %d before, and a refusal", before, ok, err, most)
	}
}
