package lanes

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// TestLanes lets calls through a lane one at a time, in the order of their arrival.
func TestLanes(t *testing.T) {
	var l Lanes
	leave, err := l.enter(t.Context(), Lane{"ada", "orders"})
	if err != nil {
		t.Fatal(err)
	}
	other, err := l.enter(t.Context(), Lane{"bob", "orders"})
	if err != nil {
		t.Fatal(err)
	}
	other()
	order := make(chan int, 3)
	for i := range 3 {
		entered := l.length(Lane{"ada", "orders"})
		go func() {
			leave, err := l.enter(t.Context(), Lane{"ada", "orders"})
			if err != nil {
				t.Error(err)
				return
			}
			order <- i
			leave()
		}()
		for l.length(Lane{"ada", "orders"}) == entered {
		}
	}
	leave()
	for i := range 3 {
		if got := <-order; got != i {
			t.Errorf("call %d was let in as number %d", got, i)
		}
	}
}

// length returns how many calls wait in a lane.
func (l *Lanes) length(lane Lane) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting[lane])
}

// TestLaneLimits fills a lane, and waits for it longer than a call may.
func TestLaneLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Lanes
		lane := Lane{"ada", "orders"}
		leave, err := l.enter(t.Context(), lane)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, Most)
		for range Most - 1 {
			go func() {
				_, err := l.Enter(ctx, time.Hour, lane)
				ended <- err
			}()
		}
		go func() {
			_, err := l.Enter(t.Context(), time.Minute, lane)
			ended <- err
		}()
		synctest.Wait()
		if _, err := l.Enter(t.Context(), time.Hour, lane); err == nil || err.Error() != fmt.Sprintf(textFull, Most, "orders") {
			t.Errorf("one more: %v", err)
		}
		if _, err := l.Enter(t.Context(), time.Hour, Lane{"bob", "orders"}); err != nil {
			t.Errorf("another principal's: %v", err)
		}
		if err := <-ended; err == nil || err.Error() != fmt.Sprintf(textBusy, "orders") {
			t.Errorf("a call whose time is over: %v", err)
		}
		cancel()
		for range Most - 1 {
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("a call whose program has ended: %v", err)
			}
		}
		leave()
		if leave, err = l.enter(t.Context(), lane); err != nil {
			t.Errorf("the lane is not free again: %v", err)
		}
		leave()
	})
}
