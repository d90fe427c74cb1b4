// Package outputs implements the contract of outputs: which files a program must produce, what has become
// of each of them, and the report about them for an agent runtime. It has no side effects, and depends on
// neither sandboxes nor stores nor HTTP.
package outputs

// A Contract lists the files that the program of a start must produce.
type Contract struct {
	// Outputs are the files, in the order of the request; no two of them have the same File.
	Outputs []Output `json:"outputs"`
	// Turn is the id of the turn. Physical paths begin with it.
	Turn string `json:"turn"`
	// Lenient means that missing files do not change the status of the execution.
	Lenient bool `json:"lenient,omitempty"`
	// Log adds the end of what the program has printed to the report.
	Log bool `json:"log,omitempty"`
}

// An Output is a file that a program must produce, or may.
type Output struct {
	// Path is the path as the request has it. File is the same path after normalising, relative to the
	// workspace. Name is the logical name: File without the directory of the turn. No two outputs of a
	// contract have the same Name.
	Path string `json:"path"`
	File string `json:"file"`
	Name string `json:"name"`
	// Description is a text for people. Type is the media type that the request declares. Both may be empty.
	Description string `json:"description,omitempty"`
	Type        string `json:"mime,omitempty"`
	// Required makes the execution fail if the program does not produce the file.
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
	// TooSmall: as Produced, but the file is smaller than MinBytes. The report warns of it.
	TooSmall State = "too_small"
	// Missing: there is no such file, or it is an input file that the program has not changed.
	Missing State = "missing"
	// Empty: the file has no bytes.
	Empty State = "empty"
	// TooLarge: the file is larger than a stored file may be.
	TooLarge State = "too_large"
	// NotRegular: the path is that of a directory, a link, a pipe or a device.
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
	// ID is the id of the stored file in the session of the execution, or empty. Size is in bytes. Type is
	// the media type: the declared one if the request declares it, otherwise that of the stored file.
	ID   string `json:"id,omitempty"`
	Size int64  `json:"size,omitzero"`
	Type string `json:"mime,omitempty"`
	// Error says why the file was not stored, or what is wrong with it.
	Error string `json:"error,omitempty"`
}

// Stored reports whether the file was stored.
func (j Judged) Stored() bool { return j.State == Produced || j.State == TooSmall }

// An End describes how an execution has ended, according to its journal.
type End struct {
	// Status and Reason are those of the event execution.ended. Error is the text of the error in answers.
	Status, Reason, Error string
	// Stdout and Stderr are what the program has printed.
	Stdout, Stderr string
}
