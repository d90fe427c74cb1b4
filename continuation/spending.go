package continuation

import "context"

// A Spending is the cost of one call, in credits. It counts against what its principal may spend on a day.
type Spending struct {
	// ID names the call. No other Spending has it.
	ID        string
	Day       Day
	Principal string
	Cost      int64
}

// Spendings are the sums of what principals have spent on a day. A Store keeps them until a day after the end of
// that day. They are safe for concurrent use, also by servers that share the store, and return the errors of a
// Store.
type Spendings interface {
	// Spend adds a cost to the sum of its principal and day, if the new sum is not more than most. ok says
	// whether it did, and before is the sum before. After an error the cost may have been added or not.
	Spend(ctx context.Context, s Spending, most int64) (before int64, ok bool, err error)

	// Refund takes back what Spend has added. After an error this may have happened or not, but it never happens
	// twice.
	Refund(ctx context.Context, s Spending) error
}
