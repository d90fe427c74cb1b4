package outgoing

import (
	"context"
	"net/http"
	"strconv"
)

// DepthHeader tells an endpoint through how many toolsets a request has come. If the endpoint is a
// server of this kind, it refuses requests that have come through too many: a toolset may lead back
// to the server that it belongs to.
const DepthHeader = "Fermata-Depth"

type depthKey struct{}

// WithDepth returns a context in which each request has the header DepthHeader with this number.
func WithDepth(ctx context.Context, depth int) context.Context {
	return context.WithValue(ctx, depthKey{}, depth)
}

// marked returns the header of a request with the depth of its context, if it has one.
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
