package api

import (
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// Preferred returns the one of some media types that the client of a request wants most, by the
// quality values of its Accept header, and "" if it wants none of them. Of equals the first one
// counts. Without the header, the client takes whatever it gets.
func Preferred(header http.Header, offers ...string) string {
	accept := strings.Join(header.Values("Accept"), ",")
	if strings.TrimSpace(accept) == "" {
		return offers[0]
	}
	best, most := "", 0.0
	for _, offer := range offers {
		if q := quality(accept, offer); q > most {
			best, most = offer, q
		}
	}
	return best
}

// quality returns the quality value that an Accept header gives a media type. Of the ranges that
// match, the most exact one counts. Ranges that are malformed count for nothing.
func quality(accept, offer string) float64 {
	kind, _, _ := strings.Cut(offer, "/")
	exactness := map[string]int{"*/*": 1, kind + "/*": 2, offer: 3}
	best, found := 0.0, 0
	for part := range strings.SplitSeq(accept, ",") {
		name, params, err := mime.ParseMediaType(part)
		if err != nil || exactness[name] <= found {
			continue
		}
		q := 1.0
		if text, given := params["q"]; given {
			if q, err = strconv.ParseFloat(text, 64); err != nil || !(q >= 0 && q <= 1) {
				continue
			}
		}
		best, found = q, exactness[name]
	}
	return best
}
