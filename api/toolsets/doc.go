// Package toolsets has the routes about the tools that the server runs. They list the toolsets, return their
// documentation and stubs, make calls without a program, and report the usage of principals.
package toolsets
