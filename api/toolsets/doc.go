// Package toolsets is the contract of the tools that the server runs: which there are, what models and
// programs are told of them, calls without a program, and what principals have used.
package toolsets
