// Package abi has those numbers of Linux's interface to programs that seccomp filters are made of. Package
// unix has them as well, but only when it is built for Linux, and a server on macOS makes filters for the
// Linux of its containers. A test compares them with package unix. To have one more, write its name into
// zabi.go or the file of its architecture, with any value, and run go test with -update.
package abi
