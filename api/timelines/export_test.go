package timelines

// Send is Made.send.
var Send = (*Made).send
