package sandbox

import "cmp"

// Limits bound one sandbox, whoever provides it. All sizes are in bytes.
type Limits struct {
	// Memory bounds what the processes of a program use together. On a machine without memory
	// cgroups the process provider can only apply it to each of them.
	Memory int64
	// CPUs bounds processor time: 1.5 is one and a half processors.
	CPUs float64
	// PIDs bounds the processes and threads of a program.
	PIDs int
	// Output bounds stdout and stderr, each; 0 stands for 1 MiB.
	Output int64
	// Disk bounds /mnt/data, /tmp and /dev/shm, each, and any one file.
	Disk int64
	// OutputFiles is how many of the files that a program leaves are kept, besides its
	// inputs, and OutputFileSize how large each of them may be.
	OutputFiles    int
	OutputFileSize int64
}

// MaxInputs bounds the inputs of all calls of one pause, in bytes of JSON.
const MaxInputs = 16 << 20

// The largest payloads of the frames of a sandbox, in bytes.
const (
	// maxFrame bounds a frame that a supervisor passes on without reading it.
	maxFrame = 32 << 20
	// maxCallsFrame leaves room for what stands around the inputs of one pause.
	maxCallsFrame = MaxInputs + 1<<20
	// maxHeadFrame bounds a hello, the report of a worker, and what comes before the
	// output of a program.
	maxHeadFrame = 64 << 10
	// maxOutputFrame bounds a piece of output.
	maxOutputFrame = outputHead + 16<<10
	// maxContentFrame bounds a piece of a file.
	maxContentFrame = 1 << 20
	// maxListedName bounds one name in a listing and what stands around it.
	maxListedName = 4 << 10
	// maxListedInputs is more than the input files that an execution is given.
	maxListedInputs = 512
	// defaultOutput is the limit of output where Limits name none.
	defaultOutput = 1 << 20
)

// output returns the limit of stdout, and of stderr.
func (l Limits) output() int64 { return cmp.Or(l.Output, defaultOutput) }

// largest returns the size of the largest payload that a sandbox may send in a frame of a
// kind. It reports false for a kind that no sandbox sends.
func (l Limits) largest(kind frameKind) (size int64, known bool) {
	switch kind {
	case frameCalls:
		return maxCallsFrame, true
	case frameHello, frameDone, frameStopped, frameRan, framePlaced:
		return maxHeadFrame, true
	case frameExit:
		return 2*l.output() + maxHeadFrame, true
	case frameListing:
		return int64(maxListedInputs+l.OutputFiles) * maxListedName, true
	case frameContent:
		return maxContentFrame, true
	case frameOutput:
		return maxOutputFrame, true
	case frameLost:
		return 0, true
	default:
		return 0, false
	}
}
