package engine

import (
	"log/slog"
	"path/filepath"
	"testing"

	"fermata/continuation"
	"fermata/continuation/boltstore"
	"fermata/engine/cluster"
	"fermata/engine/core"
)

// A client that has the answer of an ended execution can start the next one at once.
func TestEndIsCountedBeforeItIsTold(t *testing.T) {
	store, err := boltstore.Open(filepath.Join(t.TempDir(), "store"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	m := &common{
		o: Options{Store: store, Log: slog.New(slog.DiscardHandler)}, members: &cluster.Member{}, quota: newQuota(Options{MaxRunning: 1}),
	}
	counted, err := m.quota.Admit("ada")
	if err != nil {
		t.Fatal(err)
	}
	record := continuation.Record{ID: "x", State: string(core.Running)}
	c := newConversation(m.newLedger(record, m.newChronicle(Start{}, record, &mandate{})))
	c.segment = newSegment(0, "", 0)
	if err := open(c.ledger, Start{}); err != nil {
		t.Fatal(err)
	}
	m.newLife(newExecution(c, nil), counted, &mandate{}).settle(core.Ending{State: core.Completed})
	if _, err := m.quota.Admit("ada"); err != nil {
		t.Errorf("admit = %v, want nil: the program has ended", err)
	}
}
