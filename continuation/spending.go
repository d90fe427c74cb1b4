package continuation

import "context"

// A Spending is what one call costs, in credits, of what its principal may spend on a day.
type Spending struct {
	// ID names the call. No other Spending has it.
	ID        string
	Day       Day
	Principal string
	Cost      int64
}

// Spendings are the sums of what principals have spent on a day, which a Store keeps until a day after
// its end. They are safe for concurrent use, also by servers that share the store, and return the
// errors of a Store.
type Spendings interface {
	// Spend adds a cost to the sum of its principal and day if the sum is at most most then, and reports
	// whether it did. before is what the sum was. After an error the cost may be spent or not.
	Spend(ctx context.Context, s Spending, most int64) (before int64, ok bool, err error)

	// Refund takes back what Spend has added. After an error that may have happened or not, but it
	// never happens twice.
	Refund(ctx context.Context, s Spending) error
}
