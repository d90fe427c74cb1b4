package main

import (
	"time"

	"fermata/api"
)

// A timeout must be longer than everything that happens within it, so writeTimeout is
// computed from the timeouts of the steps of a request.
const (
	maxBudget       = api.MaxTimeout   // the longest run budget that a client may ask for
	maxQueueTimeout = 60 * time.Second // the longest wait for a sandbox
	writeTimeout    = api.BodyTimeout + maxQueueTimeout + maxBudget + api.AnswerTimeout
	closeTimeout    = 12 * time.Second // for closing the parts after the last answer

	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 64 << 10
)
