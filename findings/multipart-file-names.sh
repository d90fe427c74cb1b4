#!/usr/bin/env bash
# Go's multipart writer makes parts that Go's multipart reader refuses.
#
# Expected: multipart.Writer.CreateFormFile escapes what cannot stand in a header, so that multipart.Reader returns the
# same file name, or else the writer returns an error.
# What really happens: the writer escapes CR, LF, quotes and backslashes only. It writes other control characters, such as
# BEL or DEL, as they are and without an error. The reader refuses such a part: "malformed MIME header line". A tab is fine,
# and a line break comes back as %0A.
# Versions: Go 1.26.8, mime/multipart of the standard library.
# Why it matters: the names of files that programs or models make are any text. A host that sends them on as form data gets
# no error where it writes them; the whole upload, with all files of the form, fails at the receiver. Check names before.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >go.mod <<'GO'
module names

go 1.26
GO
cat >main.go <<'GO'
package main

import (
	"bytes"
	"fmt"
	"mime/multipart"
)

func main() {
	for _, name := range []string{"plain.txt", "tab\t.txt", "line\n.txt", "bell\a.txt", "delete\x7f.txt"} {
		var form bytes.Buffer
		w := multipart.NewWriter(&form)
		_, errWrite := w.CreateFormFile("file", name)
		_ = w.Close()
		part, errRead := multipart.NewReader(&form, w.Boundary()).NextPart()
		if errRead != nil {
			fmt.Printf("%q: written with error %v, refused: %.26s\n", name, errWrite, errRead)
			continue
		}
		fmt.Printf("%q: written with error %v, read as %q\n", name, errWrite, part.FileName())
	}
}
GO
GOTOOLCHAIN=local go run . | tee seen
diff seen - <<'SEEN'
"plain.txt": written with error <nil>, read as "plain.txt"
"tab\t.txt": written with error <nil>, read as "tab\t.txt"
"line\n.txt": written with error <nil>, read as "line%0A.txt"
"bell\a.txt": written with error <nil>, refused: malformed MIME header line
"delete\x7f.txt": written with error <nil>, refused: malformed MIME header line
SEEN
echo "as stated"
