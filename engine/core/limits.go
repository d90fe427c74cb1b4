package core

import "time"

// The limits of calls, and the errors of calls that exceed them or that are refused otherwise.

const (
	// maxApproved is the maximum size, in bytes, of the input of a call that can be approved. It is small
	// because a person reads it.
	maxApproved = 16 << 10
	// MaxAsked is how many calls of one execution may wait for approval at the same time. Approval of
	// further calls is requested later.
	MaxAsked = 100
	// MaxAskedOfAll is how many calls of all executions of one principal may wait for approval at the same
	// time on this server. Further calls fail.
	MaxAskedOfAll = 1000
	// minWake is after which time a program is woken for a timer of its own at the soonest, and minWakeByte
	// how much later for each byte of its calls, since it makes all of them again then.
	minWake     = 5 * time.Millisecond
	minWakeByte = 100 * time.Nanosecond
	// MaxWaiting is how many calls of one execution may wait until they can begin or their approval can be
	// requested. It is limited because the program makes all of them again each time it comes to rest.
	MaxWaiting = 1000
)

// The errors of calls that the dispatcher refuses.
const (
	TextNoApprovals = "this tool needs approval and the client cannot ask for it"
	textLargeAsk    = "this tool needs approval, and an input of %d bytes is too large to be approved: at most %d are allowed"
	TextManyAsk     = "this tool needs approval, and %d calls of this principal wait for approval already"
	TextManyWait    = "the call is not made: %d calls of the program wait already; let it make fewer at the same time"
	TextTooCostly   = "the call costs %d and is not made: the execution may spend %d in all, and %d are spent or reserved"
	TextRestarted   = "the server was restarted while this call ran; whether it took effect is unknown"
	TextStoreAway   = "the call is not made: the server cannot record it, because its store is not available"
	textRefused     = "refused"
)
