package files

import (
	"context"
	"path"
	"strings"
	"sync"
	"time"

	"gocloud.dev/blob"
)

const (
	// leastCharge is what a small file counts for in the quota: many are not free.
	leastCharge = 4 << 10
	// accountLife is how long an account that nobody uses is believed. Other servers
	// may have changed what there is.
	accountLife = 10 * time.Second
)

// accounts know what their owners have, as long as they transfer files.
type accounts struct {
	mu    sync.Mutex
	known map[string]*account
}

// An account is what its owners have in the bucket and are putting there through this
// server. Servers that share a bucket do not know what the others are receiving.
type account struct {
	// users is the number of transfers, idle since when there are none. accounts.mu
	// guards them.
	users int
	idle  time.Time

	mu     sync.Mutex
	listed bool
	bytes  int64
	files  map[string]int // by session
}

func charge(size int64) int64 { return max(size, leastCharge) }

// A transfer is one file of an account on its way in.
type transfer struct {
	accounts *accounts
	account  *account
	owner    Owner
	session  string
	quota    int64
	charged  int64
}

// begin opens the owner's account for one more file in a session. It returns ErrFull
// or ErrQuota if there is no place for it. Who gets a transfer ends it.
func (s *Store) begin(ctx context.Context, owner Owner, session string) (*transfer, error) {
	a := s.accounts.open(owner.account())
	t := &transfer{accounts: &s.accounts, account: a, owner: owner, session: session, quota: s.options.Quota, charged: leastCharge}
	err := t.enter(ctx, s)
	if err != nil {
		s.accounts.release(a)
		return nil, err
	}
	return t, nil
}

func (t *transfer) enter(ctx context.Context, s *Store) error {
	a := t.account
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.listed {
		if err := s.list(ctx, t.owner.account(), a); err != nil {
			return err
		}
		a.listed = true
	}
	if a.files[t.session] >= s.options.MaxFiles {
		return ErrFull
	}
	if a.bytes+t.charged > t.quota {
		return ErrQuota
	}
	a.files[t.session]++
	a.bytes += t.charged
	return nil
}

// list counts what is in an account. Its lock is held.
func (s *Store) list(ctx context.Context, name string, a *account) error {
	a.bytes, a.files = 0, map[string]int{}
	return s.walk(ctx, contents+name+"/", func(o *blob.ListObject) {
		session, id, _ := strings.Cut(path.Base(o.Key), ".")
		// What is being written to a directory has a longer name.
		if ValidID(id) && s.alive(o.ModTime) {
			a.bytes += charge(o.Size)
			a.files[session]++
		}
	})
}

// grow charges the account for a file of at least size, and reports whether the quota
// allows it.
func (t *transfer) grow(size int64) bool {
	more := charge(size) - t.charged
	if more <= 0 {
		return true
	}
	t.account.mu.Lock()
	defer t.account.mu.Unlock()
	if t.account.bytes+more > t.quota {
		return false
	}
	t.account.bytes += more
	t.charged += more
	return true
}

// end closes the account for this file, and takes it back if it was not kept.
func (t *transfer) end(kept bool) {
	if !kept {
		t.account.remove(t.session, t.charged)
	}
	t.accounts.release(t.account)
}

func (a *account) remove(session string, charged int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.listed {
		return
	}
	a.bytes -= charged
	if a.files[session]--; a.files[session] <= 0 {
		delete(a.files, session)
	}
}

func (l *accounts) open(name string) *account {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n, a := range l.known {
		if a.users == 0 && time.Since(a.idle) > accountLife {
			delete(l.known, n)
		}
	}
	a := l.known[name]
	if a == nil {
		a = &account{}
		l.known[name] = a
	}
	a.users++
	return a
}

func (l *accounts) release(a *account) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a.users--
	a.idle = time.Now()
}

// forget takes a file that was deleted off its account.
func (l *accounts) forget(name, session string, size int64) {
	l.mu.Lock()
	a := l.known[name]
	l.mu.Unlock()
	if a != nil {
		a.remove(session, charge(size))
	}
}
