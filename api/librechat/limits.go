package librechat

// Limits bound what one request may contain. All of them must be set.
type Limits struct {
	// Body is the size of a body in bytes.
	Body int64
	// Tools is the number of tool definitions.
	Tools int
	// Results is the number of tool results.
	Results int
	// ResultBytes is the size of one result.
	ResultBytes int
}

// MaxFiles is the number of files that a request may refer to.
const MaxFiles = 300

// The limits of what a client says about its execution.
const (
	maxTitle  = 200
	maxLabels = 16
	maxLabel  = 256
)

// The limits of a program's arguments. The kernel bounds one argument to maxArg bytes and the NUL
// after it.
const (
	maxArgs     = 1000
	maxArg      = 128<<10 - 1
	maxArgBytes = 1 << 20
)

// maxTimeline bounds the member timeline of a start, in bytes.
const maxTimeline = 64 << 10

// The limits of an upload.
const (
	// maxUploads is the number of files in one request.
	maxUploads = 200
	// maxFields and maxField bound the fields beside the files.
	maxFields = 32
	maxField  = 1 << 10
	// maxStray is the size of a field that has no meaning.
	maxStray = 64 << 10
	// maxPartHeader bounds the header of a file or field; the reader of the form would take
	// 10 MiB into memory. Some of the contents may be read along with the header.
	maxPartHeader = 64 << 10
)
