package outgoing

import (
	"context"
	"net/http"
	"strconv"
)

// DepthHeader is the header with the number of toolsets through which a request has come. If the endpoint is
// a Fermata server, it refuses a request that has come through too many toolsets, since a toolset may lead
// back to its own server.
const DepthHeader = "Fermata-Depth"

type depthKey struct{}

// WithDepth returns a context in which each request has the header DepthHeader with this number.
func WithDepth(ctx context.Context, depth int) context.Context {
	return context.WithValue(ctx, depthKey{}, depth)
}

// marked returns the header of a request, to which it adds the depth of the context if there is one.
func marked(ctx context.Context, header http.Header) http.Header {
	depth, ok := ctx.Value(depthKey{}).(int)
	if !ok {
		return header
	}
	header = header.Clone()
	if header == nil {
		header = http.Header{}
	}
	header.Set(DepthHeader, strconv.Itoa(depth))
	return header
}
