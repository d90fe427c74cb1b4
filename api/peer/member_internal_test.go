package peer

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"fermata/continuation"
)

func (r texts) Describe(_ context.Context, server, text string, _ time.Duration) error {
	if r.said != nil {
		r.said[server] = text
	}
	return nil
}

func (r texts) Descriptions(context.Context) (map[string]string, error) { return r.said, nil }

func (r texts) Withdraw(_ context.Context, server string) error {
	delete(r.by, server)
	delete(r.said, server)
	return nil
}

// A server joins only those with which it has a secret and its files in common.
func TestJoining(t *testing.T) {
	const old, fresh = firstSecret, secondSecret
	for name, c := range map[string]struct {
		first, second             []string
		firstBucket, secondBucket bool
		server, want              string
	}{
		"the same":                 {[]string{old}, []string{old}, true, true, "b.2", ""},
		"rotation, the new one":    {[]string{old}, []string{fresh, old}, true, true, "b.2", ""},
		"rotation, the old one":    {[]string{fresh, old}, []string{old}, true, true, "b.2", ""},
		"another secret":           {[]string{old}, []string{fresh}, true, true, "b.2", "FERMATA_SECRET"},
		"no bucket":                {[]string{old}, []string{old}, true, false, "b.2", "set FERMATA_FILES_URL"},
		"the other has no bucket":  {[]string{old}, []string{old}, false, true, "b.2", "start that server again"},
		"an earlier self":          {[]string{old}, []string{fresh}, false, false, "a.2", ""},
		"neither secret nor files": {[]string{old}, []string{fresh}, false, false, "b.2", "http://first"},
	} {
		inner := texts{by: map[string]string{}, said: map[string]string{"old version": "not JSON"}}
		first := NewRegistry(inner, peerKey(t, c.first...), c.firstBucket, slog.New(slog.DiscardHandler))
		if err := first.Announce(t.Context(), "a.1", "http://first", time.Minute); err != nil {
			t.Fatalf("%s: the first server: %v", name, err)
		}
		second := NewRegistry(inner, peerKey(t, c.second...), c.secondBucket, slog.New(slog.DiscardHandler))
		err := second.Announce(t.Context(), c.server, "http://second", time.Minute)
		_, stays := inner.by[c.server]
		switch {
		case c.want == "" && (err != nil || !stays):
			t.Errorf("%s: Announce = %v, announced: %t, want nil, true", name, err, stays)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, continuation.ErrUnavailable) || stays):
			t.Errorf("%s: Announce = %v, announced: %t, want an error with %q, false", name, err, stays, c.want)
		}
		// Nobody can take one who is there for a newcomer.
		if err := first.Announce(t.Context(), "a.1", "http://first", time.Minute); err != nil {
			t.Errorf("%s: the first server, again: %v", name, err)
		}
		for server, text := range inner.said {
			if strings.Contains(text, old) || strings.Contains(text, fresh) {
				t.Errorf("%s: %s tells its secret: %s", name, server, text)
			}
		}
	}
}
