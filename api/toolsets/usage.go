package toolsets

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"fermata/api"
	"fermata/continuation"
)

const (
	// usageTimeout is how long the store may take to answer.
	usageTimeout = 5 * time.Second
	// defaultUsages is the size of a page of sums, and maxUsages the largest one.
	defaultUsages = 50
	maxUsages     = 200
)

// Sums are what principals have used of toolsets; *usage.Counter implements it.
type Sums interface {
	// List returns up to q.Limit sums.
	List(ctx context.Context, q continuation.UsageQuery) ([]continuation.Usage, error)
}

// RegisterUsage registers the routes that report the usage of principals.
func RegisterUsage(r *api.Router, sums Sums) {
	list := func(c echo.Context) error { return listUsage(c, sums) }
	for _, prefix := range []string{"", "/v1"} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			r.Handle(method, prefix+"/usage", list, r.Needs(api.See), r.Assembled.Around(api.PageBytes), api.Private)
		}
	}
}

// A usage is what a principal has used of a toolset on a day. Only operators see the principal.
type usage struct {
	Toolset   string           `json:"toolset"`
	Day       continuation.Day `json:"day"`
	Calls     int64            `json:"calls"`
	Cost      int64            `json:"cost"`
	Principal string           `json:"principal,omitempty"`
}

// A usagePage is a page of sums. Next is the cursor of the next one, or null.
type usagePage struct {
	Data []usage `json:"data"`
	Next *string `json:"next"`
}

// listUsage answers with the sums of the principal who asks. Operators get those of one principal or of all.
func listUsage(c echo.Context, sums Sums) error {
	who := api.PrincipalOf(c)
	q, err := queryOf(c).usage(who.ID, who.Operator)
	if err != nil {
		return err
	}
	limit := q.Limit
	q.Limit++ // One more than the page holds, to know whether there is a next page.
	ctx, cancel := context.WithTimeout(c.Request().Context(), usageTimeout)
	defer cancel()
	list, err := sums.List(ctx, q)
	if err != nil {
		return err
	}
	page := usagePage{Data: []usage{}}
	if len(list) > limit {
		list = list[:limit]
		next, err := cursorOf(list[limit-1])
		if err != nil {
			return err
		}
		page.Next = &next
	}
	for _, u := range list {
		shown := usage{u.Toolset, u.Day, u.Calls, u.Cost, u.Principal}
		if !who.Operator {
			shown.Principal = ""
		}
		page.Data = append(page.Data, shown)
	}
	body, err := json.Marshal(page)
	if err != nil {
		return err
	}
	return api.AnswerBytes(c, http.StatusOK, body)
}
