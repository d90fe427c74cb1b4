package mcptool

import "testing"

func TestOrderOfAServer(t *testing.T) {
	const declared = `{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}},"required":["path","content"]}`
	first, err := read([]byte(`{"name": "write_file", "inputSchema": ` + declared + `}`))
	if err != nil || string(first.tool.Input) != declared {
		t.Errorf("the schema became %s, %v; want its members as the server declares them", first.tool.Input, err)
	}
	// The same definition in another order is no other tool.
	second, err := read([]byte(`{"inputSchema": {"required":["path","content"],"properties":{"content":{"type":"string"},"path":{"type":"string"}},"type":"object"}, "name": "write_file"}`))
	if err != nil || first.digest != second.digest {
		t.Errorf("another order of members made another tool: %v", err)
	}
	third, err := read([]byte(`{"name": "write_file", "inputSchema": {"type":"object","properties":{"path":{"type":"string"}}}}`))
	if err != nil || first.digest == third.digest {
		t.Errorf("another schema has the same digest: %v", err)
	}
}
