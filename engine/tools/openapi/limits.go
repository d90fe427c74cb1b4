package openapi

import "fmt"

// The limits of a document.
const (
	MaxDocument    = 16 << 20 // bytes
	MaxOperations  = 500      // that become tools
	MaxDescription = 4 << 10  // bytes

	maxDepth  = 200       // levels
	maxValues = 2_000_000 // of all levels
)

// A count counts the values of a document.
type count struct {
	values int
}

// add counts a value at a depth.
func (c *count) add(depth int) error {
	if c.values++; c.values > maxValues {
		return fmt.Errorf("the document has more than %d values", maxValues)
	}
	if depth > maxDepth {
		return fmt.Errorf("the document has more than %d levels", maxDepth)
	}
	return nil
}
