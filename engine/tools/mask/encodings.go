package mask

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strings"
	"unicode/utf16"
)

// encodings returns the encoded forms of a secret that are masked.
func encodings(secret string) []string {
	forms := []string{secret, html.EscapeString(secret)}
	forms = append(forms, base64Forms(secret)...)
	forms = append(forms, urlForms(secret)...)
	return append(forms, jsonForms(secret)...)
}

// base64Forms returns the secret in base64, alone and at each place of a longer text. Three bytes
// become four characters, so there are three alignments. The characters that also depend on the
// bytes before and after the secret are left out.
func base64Forms(secret string) []string {
	var forms []string
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		raw := encoding.WithPadding(base64.NoPadding)
		forms = append(forms, encoding.EncodeToString([]byte(secret)), raw.EncodeToString([]byte(secret)))
		for before := range 3 {
			bits := 8 * (before + len(secret))
			text := raw.EncodeToString(append(make([]byte, before), secret...))
			forms = append(forms, text[(8*before+5)/6:bits/6])
		}
	}
	return forms
}

// urlForms returns the secret as in a path or a query.
func urlForms(secret string) []string {
	unreserved := func(c byte) bool {
		return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || strings.IndexByte("-._~", c) >= 0
	}
	all := percent(secret, func(byte) bool { return false })
	strict := percent(secret, unreserved)
	forms := []string{url.PathEscape(secret), url.QueryEscape(secret), strict, strings.ReplaceAll(strict, "%20", "+"), all}
	for _, form := range forms {
		forms = append(forms, lowerEscapes(form))
	}
	return forms
}

// percent escapes the bytes of a text that are not kept.
func percent(text string, keep func(byte) bool) string {
	var b strings.Builder
	for i := range len(text) {
		if keep(text[i]) {
			b.WriteByte(text[i])
		} else {
			fmt.Fprintf(&b, "%%%02X", text[i])
		}
	}
	return b.String()
}

// lowerEscapes writes %2F as %2f.
func lowerEscapes(text string) string {
	b := []byte(text)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:i+3], strings.ToLower(string(b[i+1:i+3])))
			i += 2
		}
	}
	return string(b)
}

// jsonForms returns the secret as within a JSON text.
func jsonForms(secret string) []string {
	quoted, _ := json.Marshal(secret) // Every string can be encoded.
	htmlSafe := string(quoted[1 : len(quoted)-1])
	plain := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(htmlSafe)
	forms := []string{htmlSafe, plain, strings.ReplaceAll(htmlSafe, "/", `\/`), strings.ReplaceAll(plain, "/", `\/`)}
	for _, format := range []string{`\u%04x`, `\u%04X`} {
		var ascii, all strings.Builder
		for _, r := range plain {
			escapeRune(&ascii, format, r, r > 126)
		}
		for _, r := range secret {
			escapeRune(&all, format, r, true)
		}
		forms = append(forms, ascii.String(), all.String())
	}
	return forms
}

// escapeRune writes a character, or its escapes.
func escapeRune(b *strings.Builder, format string, r rune, escape bool) {
	if !escape {
		b.WriteRune(r)
		return
	}
	for _, unit := range utf16.AppendRune(nil, r) {
		fmt.Fprintf(b, format, unit)
	}
}
