package files

import (
	"context"
	"sync"
	"time"
)

const (
	// leastCharge is what a file of fewer bytes counts in the quota. Without it, a client
	// could store any number of tiny files.
	leastCharge = 4 << 10
	// usageLife is how long the usage of an account is remembered after its last upload.
	// After that it is counted anew, because other servers may have changed it.
	usageLife = 10 * time.Second
)

// quotas enforces the limits on the files of each account (see Owner.account) and session.
// Servers that share a bucket do not see each other's uploads before they are complete, so
// that together they may exceed a limit by what they receive at the same moment.
type quotas struct {
	bucket   *bucket
	life     time.Duration
	maxBytes int64 // of an account
	maxFiles int   // of a session

	mu    sync.Mutex
	known map[string]*usage // by account
}

// usage is what an account has in the bucket and is uploading through this server.
type usage struct {
	// uploads is the number of uploads, and idleSince the end of the last one. The mutex of
	// quotas guards both.
	uploads   int
	idleSince time.Time

	mu      sync.Mutex
	counted bool // what follows has been counted in the bucket
	bytes   int64
	files   map[string]int // by session
}

// charge returns what a file of the size counts in the quota.
func charge(size int64) int64 { return max(size, leastCharge) }

// A reservation is the room of one file while it is uploaded.
type reservation struct {
	quotas  *quotas
	usage   *usage
	session string
	charged int64
}

// reserve reserves room for one more file in a session. It returns ErrFull or ErrQuota if there
// is none. The caller ends the reservation.
func (q *quotas) reserve(ctx context.Context, owner Owner, session string) (*reservation, error) {
	account := owner.account()
	u := q.use(account)
	if err := q.admit(ctx, u, account, session); err != nil {
		q.release(u)
		return nil, err
	}
	return &reservation{quotas: q, usage: u, session: session, charged: leastCharge}, nil
}

// admit counts one more file, or returns ErrFull or ErrQuota.
func (q *quotas) admit(ctx context.Context, u *usage, account, session string) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.counted {
		if err := q.count(ctx, u, account); err != nil {
			return err
		}
	}
	if u.files[session] >= q.maxFiles {
		return ErrFull
	}
	if u.bytes+leastCharge > q.maxBytes {
		return ErrQuota
	}
	u.files[session]++
	u.bytes += leastCharge
	return nil
}

// count counts what an account has in the bucket. The caller holds u.mu.
func (q *quotas) count(ctx context.Context, u *usage, account string) error {
	u.bytes, u.files = 0, map[string]int{}
	err := q.bucket.walk(ctx, contentsPrefix+account+"/", func(o object) {
		if session, _, ok := idsOf(o.key); ok && time.Since(o.written) < q.life {
			u.bytes += charge(o.size)
			u.files[session]++
		}
	})
	u.counted = err == nil
	return err
}

// use returns the usage of an account for an upload, after which release is called.
func (q *quotas) use(account string) *usage {
	q.mu.Lock()
	defer q.mu.Unlock()
	for other, u := range q.known {
		if u.uploads == 0 && time.Since(u.idleSince) > usageLife {
			delete(q.known, other)
		}
	}
	u := q.known[account]
	if u == nil {
		u = &usage{}
		q.known[account] = u
	}
	u.uploads++
	return u
}

func (q *quotas) release(u *usage) {
	q.mu.Lock()
	defer q.mu.Unlock()
	u.uploads--
	u.idleSince = time.Now()
}

// deleted subtracts a file that was deleted from the bucket.
func (q *quotas) deleted(f File) {
	q.mu.Lock()
	u := q.known[f.Owner.account()]
	q.mu.Unlock()
	if u != nil {
		u.subtract(f.Session, charge(f.Size))
	}
}

func (u *usage) subtract(session string, charged int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.counted {
		return
	}
	u.bytes -= charged
	if u.files[session]--; u.files[session] <= 0 {
		delete(u.files, session)
	}
}

// grow extends the reservation to a file of at least size bytes, and reports whether the quota
// allows it.
func (r *reservation) grow(size int64) bool {
	more := charge(size) - r.charged
	if more <= 0 {
		return true
	}
	r.usage.mu.Lock()
	defer r.usage.mu.Unlock()
	if r.usage.bytes+more > r.quotas.maxBytes {
		return false
	}
	r.usage.bytes += more
	r.charged += more
	return true
}

// end ends the reservation: the file was stored, or its room becomes free again.
func (r *reservation) end(stored bool) {
	if !stored {
		r.usage.subtract(r.session, r.charged)
	}
	r.quotas.release(r.usage)
}
