package journal

// placeholder until the runner's branch brings it
type Decoder struct{ held []byte }

func (d *Decoder) Write(b []byte) string { return string(b) }
func (d *Decoder) Close() string         { return "" }
func (d *Decoder) Held() int             { return 0 }

// Decode returns all of data as text.
func Decode(data []byte) string {
	var d Decoder
	return d.Write(data) + d.Close()
}
