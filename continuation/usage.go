package continuation

import (
	"context"
	"time"
)

// A Usage is the sum of what a principal has used of a toolset on a day: the successful calls of
// tools that the server has run, and their cost.
type Usage struct {
	Day       Day
	Principal string
	Toolset   string
	Calls     int64
	Cost      int64
}

// A Day is a day of UTC, written as 2006-01-02. Later days are greater.
type Day string

// DayOf returns the day of a moment.
func DayOf(t time.Time) Day { return Day(t.UTC().Format(time.DateOnly)) }

// ParseDay returns the day that a text names, and reports whether it names one.
func ParseDay(text string) (Day, bool) {
	_, err := time.Parse(time.DateOnly, text)
	return Day(text), err == nil
}

// Add returns the day that is n days later.
func (d Day) Add(n int) Day { return DayOf(d.begin().AddDate(0, 0, n)) }

// End returns the moment when the day is over.
func (d Day) End() time.Time { return d.begin().AddDate(0, 0, 1) }

// begin returns the moment when the day begins, or the zero time if d is not a day.
func (d Day) begin() time.Time {
	t, err := time.Parse(time.DateOnly, string(d))
	if err != nil {
		return time.Time{}
	}
	return t
}

// A UsageQuery says which sums are asked for.
type UsageQuery struct {
	// Principal is the principal whose sums are asked for, unless Everyone is true.
	Principal string
	Everyone  bool
	// Since and Until are the first and the last day.
	Since, Until Day
	// After is the last sum of the page before. Its numbers do not matter. The zero value asks for the first
	// page.
	After Usage
	// Limit is the most sums to return.
	Limit int
}

// Usages are the sums that a Store keeps. They are safe for concurrent use and return the errors of a
// Store.
type Usages interface {
	// AddUsage adds to the sums, and removes the sums of days that ended more than life ago. After an error
	// each usage may have been added or not, but none was added twice.
	AddUsage(ctx context.Context, add []Usage, life time.Duration) error

	// Usage returns sums, those of the newest day first. The sums of one principal and day come together, in the
	// order of their toolsets. The order of principals depends on the store. If there are fewer than q.Limit
	// sums, they are the last ones.
	Usage(ctx context.Context, q UsageQuery) ([]Usage, error)
}
