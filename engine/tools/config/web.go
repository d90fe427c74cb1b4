package config

import (
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// headerName is the name of a header.
var headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$")

// ownHeaders are the headers that the server writes itself. Other values could change where a request ends,
// to which server it goes, or how its answer must be read.
var ownHeaders = []string{
	"accept-encoding", "connection", "content-encoding", "content-length", "expect", "host", "idempotency-key", "keep-alive",
	"last-event-id", "mcp-method", "mcp-name", "mcp-protocol-version", "mcp-session-id", "proxy-authenticate", "proxy-authorization",
	"proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
}

// headers reads headers, whose values may contain ${}.
func (v value) headers(secrets *vault) map[string]string {
	headers, seen := map[string]string{}, map[string]bool{}
	for _, e := range v.entries(maxNames) {
		name := strings.ToLower(e.name)
		switch {
		case !headerName.MatchString(e.name):
			e.place.wrong("is not the name of a header; it may have letters, digits and hyphens")
			continue
		case slices.Contains(ownHeaders, name):
			e.place.wrong("the server writes this header itself; leave it out")
			continue
		case seen[name]:
			e.place.wrong("is already there with other capitals; leave one of them out")
			continue
		}
		seen[name] = true
		text, ok := e.place.secretText()
		if !ok {
			continue
		}
		expanded, literal, ok := e.place.expand(text, secrets, asItIs)
		if !ok || literal && !secrets.addLiteral(e.place, e.name, expanded) {
			continue
		}
		if scheme, credentials, found := strings.Cut(expanded, " "); found && name == "authorization" && strings.EqualFold(scheme, "Basic") {
			secrets.addPassword(strings.TrimSpace(credentials))
		}
		if strings.ContainsFunc(expanded, func(r rune) bool { return r > unicode.MaxASCII || unicode.IsControl(r) }) {
			e.place.wrong("must be one line of ASCII, also after ${} is replaced")
			continue
		}
		headers[e.name] = expanded
	}
	return headers
}

// environment reads environment variables, whose values may contain ${}.
func (v value) environment(secrets *vault) map[string]string {
	environment := map[string]string{}
	for _, e := range v.entries(maxNames) {
		if !variable.MatchString(e.name) {
			e.place.wrong("is not the name of an environment variable; it may have letters, digits and underscores")
			continue
		}
		text, ok := e.place.secretText()
		if !ok {
			continue
		}
		expanded, literal, ok := e.place.expand(text, secrets, asItIs)
		if !ok || literal && !secrets.addLiteral(e.place, e.name, expanded) {
			continue
		}
		if strings.ContainsRune(expanded, 0) {
			e.place.wrong("must not contain NUL, also after ${} is replaced")
			continue
		}
		environment[e.name] = expanded
	}
	return environment
}

// secretText returns a text that may be secret, so that mistakes must not quote it. A number is taken as a
// text.
func (v value) secretText() (string, bool) {
	if kind := v.kind(); kind == "a number" || kind == "true or false" {
		return v.node.Value, true
	}
	return v.prose(maxText)
}

// url reads the URL of a source, which may contain ${}. It may have a query.
func (v value) url(secrets *vault) string {
	text, ok := v.text(maxText)
	if !ok {
		return ""
	}
	// A secret in the query is escaped, so that it cannot end the value of its parameter.
	before, query, found := strings.Cut(text, "?")
	expanded, _, ok := v.expand(before, secrets, asItIs)
	if !ok {
		return ""
	}
	if found {
		query, _, ok = v.expand(query, secrets, url.QueryEscape)
		if !ok {
			return ""
		}
		expanded += "?" + query
	}
	if problem := urlProblem(expanded, "http", "https"); problem != "" {
		v.wrong("%s", problem)
		return ""
	}
	return expanded
}

// proxy reads the URL of a proxy.
func (v value) proxy() string {
	text, ok := v.text(maxText)
	if !ok {
		return ""
	}
	if insecure(text) {
		v.wrong("${} is only replaced in headers, env, url and base_url")
		return ""
	}
	if problem := urlProblem(text, "http", "https", "socks5"); problem != "" {
		v.wrong("%s", problem)
		return ""
	}
	return text
}

// urlProblem says what is wrong with a URL, without quoting it. It returns "" if nothing is wrong.
func urlProblem(text string, schemes ...string) string {
	u, err := url.Parse(text)
	if err != nil || strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) || r == '\\' }) {
		return "is not a URL; it looks like https://api.example.com/v1"
	}
	port, portErr := strconv.Atoi(u.Port())
	segments := strings.Split(strings.ToLower(u.EscapedPath()), "/")
	switch {
	case !slices.Contains(schemes, u.Scheme) || u.Opaque != "" || u.Hostname() == "":
		return "must begin with " + orList(schemes) + ", :// and a host"
	case u.User != nil:
		return "must not contain a user or password; write them as a header"
	case u.Port() != "" && (portErr != nil || port < 1 || port > 65535):
		return "has a port that is not from 1 to 65535"
	case u.Fragment != "" || strings.HasSuffix(text, "#"):
		return "must not have a fragment (#)"
	case slices.ContainsFunc(segments, dotted):
		return "must not contain the path segments . and .."
	}
	return ""
}

// dotted reports whether a segment of a path is . or .., or becomes one of them when it is decoded.
func dotted(segment string) bool {
	segment = strings.ReplaceAll(strings.ToLower(segment), "%2e", ".")
	return segment == "." || segment == ".."
}
