package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"fermata/continuation"
	"fermata/engine/core"
	"fermata/engine/tools/host"
)

// spendingTimeout is how long the store may take to count the cost of a call.
const spendingTimeout = 5 * time.Second

// A SpentError refuses a call that would cost more than its principal may spend on a day.
type SpentError struct {
	// Cost is what the call costs, Most is what the principal may spend on the day, and Spent is what is
	// spent or reserved, all in credits.
	Cost, Most, Spent int64
	// Rule is the setting, or the member of a policy, that sets the limit.
	Rule string
	// Until is the end of the day.
	Until time.Time
}

func (e *SpentError) Error() string {
	return fmt.Sprintf("the call costs %d and is not made: %s lets the principal spend %d on each day of UTC, and %d are spent or reserved until %s",
		e.Cost, e.Rule, e.Most, e.Spent, e.Until.Format(time.RFC3339))
}

// errUnspent is why a call is not made whose cost the store has not reserved. Clients and programs are told.
var errUnspent = errors.New(core.TextStoreAway)

// spend reserves the cost of a call from what its principal may spend today, if that is limited. The caller
// gives the cost back by refund, unless the call has taken effect or may have. An error means that the call
// must not be made, and says why: it is a *SpentError or errUnspent.
func (o *Options) spend(ctx context.Context, principal string, grant *host.Grant, cost int64) (refund func(), err error) {
	most, rule, bounded := grant.DayCost()
	if !bounded || cost == 0 {
		return func() {}, nil
	}
	day := continuation.DayOf(time.Now())
	s := continuation.Spending{ID: uuid.NewString(), Day: day, Principal: principal, Cost: cost}
	ctx, cancel := context.WithTimeout(ctx, spendingTimeout)
	defer cancel()
	spent, ok, err := o.Store.Spend(ctx, s, most)
	switch {
	case errors.Is(err, context.Canceled):
		return nil, errUnspent // Nobody waits for the call any more.
	case err != nil:
		o.Log.Warn("cannot reserve the cost of a call, so it is not made", "principal", principal, "cost", cost, "err", err)
		return nil, errUnspent
	case !ok:
		return nil, &SpentError{Cost: cost, Most: most, Spent: spent, Rule: rule, Until: day.End()}
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), spendingTimeout)
		defer cancel()
		if err := o.Store.Refund(ctx, s); err != nil {
			o.Log.Warn("cannot give back the cost of a call that has failed, so it stays spent", "principal", principal, "cost", cost, "err", err)
		}
	}, nil
}
