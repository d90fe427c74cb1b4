// Package outputs is the contract of outputs: which files a program must produce, what has become of
// each of them, and the report that tells it to an agent runtime. It is pure: it knows neither
// sandboxes nor stores nor HTTP.
package outputs

// A Contract is what a start says of the files that its program must produce.
type Contract struct {
	// Outputs are the files, in the order of the request; no two of them have the same File.
	Outputs []Output `json:"outputs"`
	// Turn is the id of the turn, the first part of physical paths.
	Turn string `json:"turn"`
	// Lenient leaves the status of a program that has not produced everything as it would be without a
	// contract.
	Lenient bool `json:"lenient,omitempty"`
	// Log adds the end of what the program has printed to the report.
	Log bool `json:"log,omitempty"`
}

// An Output is a file that a program must produce, or may.
type Output struct {
	// Path is the path as the request has it, File the same path in the workspace after normalising, and
	// Name the logical name: File without the directory of the turn. Names of two outputs of a contract differ.
	Path string `json:"path"`
	File string `json:"file"`
	Name string `json:"name"`
	// Description is for people, and Type is the media type that the request declares, or empty.
	Description string `json:"description,omitempty"`
	Type        string `json:"mime,omitempty"`
	// Required makes the program fail that does not produce the file.
	Required bool `json:"required"`
	// MinBytes is the size in bytes below which a file is too small; 0 allows an empty file. The default
	// is 1.
	MinBytes int64 `json:"min_bytes"`
	// Internal says that the file is not meant for the end user.
	Internal bool `json:"internal,omitempty"`
}

// A State is what has become of an output.
type State string

// The states. Their texts are stored and on the wire, and must not change.
const (
	// Produced: the program has made the file, or changed the one that it was given.
	Produced State = "produced"
	// TooSmall: as Produced, and the file is smaller than MinBytes. That is a warning.
	TooSmall State = "too_small"
	// Missing: there is no such file, or only the one that was given, unchanged.
	Missing State = "missing"
	// Empty: the file has no bytes.
	Empty State = "empty"
	// TooLarge: the file is larger than files that are kept may be.
	TooLarge State = "too_large"
	// NotRegular: what has this name is a directory, a link, a pipe or a device.
	NotRegular State = "not_regular"
	// Unreadable: the file cannot be read.
	Unreadable State = "unreadable"
	// Undelivered: the file could not be stored.
	Undelivered State = "undelivered"
)

// A Judged is an output with what has become of it. Its JSON form is in journals and in kept answers.
type Judged struct {
	Path  string `json:"path"`
	State State  `json:"state"`
	// ID names the stored file, if there is one, in the session of the execution; Size is in bytes, and
	// Type is its media type, the declared one first.
	ID   string `json:"id,omitempty"`
	Size int64  `json:"size,omitzero"`
	Type string `json:"mime,omitempty"`
	// Error says in words why the file is not there, or what is wrong with it.
	Error string `json:"error,omitempty"`
}

// Stored reports whether the file is there.
func (j Judged) Stored() bool { return j.State == Produced || j.State == TooSmall }

// An End is how an execution has ended, as its journal tells it.
type End struct {
	// Status and Reason are those of the event execution.ended, and Error is the text that answers tell.
	Status, Reason, Error string
	// Stdout and Stderr are what the program has printed.
	Stdout, Stderr string
}
