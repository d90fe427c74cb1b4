// Package toolsets is the contract of what there is to see of the tools that the server runs.
package toolsets
