package files_test

import (
	"runtime"
	"runtime/metrics"
	"testing"
	"time"
)

// watchHeap measures the size of the heap until peak is called. peak returns by how many bytes
// the heap had grown at its largest.
func watchHeap(t *testing.T) (peak func() uint64) {
	t.Helper()
	heap := func() uint64 {
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	runtime.GC()
	before, most := heap(), uint64(0)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(5 * time.Millisecond)
		defer ticker.Stop()
		for {
			most = max(most, heap())
			select {
			case <-ticker.C:
			case <-stop:
				return
			}
		}
	}()
	return func() uint64 {
		close(stop)
		<-stopped
		return most - min(most, before)
	}
}
