package config

import (
	"encoding/base64"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A vault collects the secrets of one toolset.
type vault struct {
	unmasked bool
	secrets  []string
}

// add adds a secret. A short secret is a mistake, unless the toolset is unmasked; then it is not added,
// since a short text that is masked can be guessed.
func (s *vault) add(v value, what, secret string) bool {
	switch {
	case len(secret) > MaxSecret:
		v.wrong("%s has %d bytes; a secret has at most %d", what, len(secret), MaxSecret)
		return false
	case len(secret) < MinSecret && !s.unmasked:
		v.wrong("%s has %d bytes, and a secret below %d can be guessed; use a longer one, or set unmasked: true on the toolset, which then does not hide it", what, len(secret), MinSecret)
		return false
	case len(secret) < MinSecret || slices.Contains(s.secrets, secret):
		return true
	case len(s.secrets) == MaxSecrets:
		v.wrong("the toolset has more than %d secrets", MaxSecrets)
		return false
	}
	s.secrets = append(s.secrets, secret)
	return true
}

// secretName matches the name of a header or variable whose value is a secret. Its last word decides:
// X-Api-Key, authToken and DB_PASSWORD match, and TOKEN_LIMIT, API_KEY_ID and MONKEY do not.
var secretName = regexp.MustCompile(`(?i)((^|[-_])(authorization|cookie|key)|apikey|token|secret|password)$`)

// addLiteral adds the value of a header or variable that is written in the file, if the name of the header
// or variable says that the value is a secret. It adds the password in the value, too, if there is one.
func (s *vault) addLiteral(v value, name, text string) bool {
	if !secretName.MatchString(name) {
		return true
	}
	secret := text
	scheme, credentials, found := strings.Cut(text, " ")
	if found && strings.EqualFold(name, "Authorization") {
		secret = strings.TrimSpace(credentials)
	}
	ok := s.add(v, "the secret", secret)
	if strings.EqualFold(scheme, "Basic") && found {
		s.addPassword(secret)
	}
	return ok
}

// addPassword adds the pair of user and password that a Basic header contains, and the password. Their
// lengths are not checked, since the length of the whole header was checked.
func (s *vault) addPassword(credentials string) {
	pair, err := base64.StdEncoding.DecodeString(credentials)
	if err != nil {
		return
	}
	_, password, _ := strings.Cut(string(pair), ":")
	for _, secret := range []string{string(pair), password} {
		if len(secret) >= MinSecret && len(s.secrets) < MaxSecrets && !slices.Contains(s.secrets, secret) {
			s.secrets = append(s.secrets, secret)
		}
	}
}

// variable is the name of an environment variable.
var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// expand replaces ${NAME} and ${file:/path} in a text by the values that they name, encoded by encode, and $$
// by a dollar sign. The values are not expanded again. literal is true if the text had no ${}.
func (v value) expand(text string, s *vault, encode func(string) string) (expanded string, literal, ok bool) {
	var b strings.Builder
	literal = true
	for {
		before, after, found := strings.Cut(text, "$")
		b.WriteString(before)
		if !found {
			return b.String(), literal, true
		}
		switch {
		case strings.HasPrefix(after, "$"):
			b.WriteByte('$')
			text = after[1:]
		case strings.HasPrefix(after, "{"):
			name, rest, closed := strings.Cut(after[1:], "}")
			if !closed {
				v.wrong("a ${ is not closed; write ${NAME}, or $$ for a dollar sign")
				return "", false, false
			}
			secret, ok := v.lookUp(name, s)
			if !ok {
				return "", false, false
			}
			b.WriteString(encode(secret))
			text, literal = rest, false
		case after != "" && (after[0] == '_' || unicode.IsLetter(rune(after[0]))):
			v.wrong("a dollar sign stands before a name; write ${NAME} for an environment variable, or $$ for a dollar sign")
			return "", false, false
		default:
			b.WriteByte('$')
			text = after
		}
	}
}

// asItIs returns a secret unchanged. It is an encode function for expand.
func asItIs(secret string) string { return secret }

// lookUp returns the value that a name between ${ and } names.
func (v value) lookUp(name string, s *vault) (string, bool) {
	what, secret := "", ""
	if path, file := strings.CutPrefix(name, "file:"); file {
		if !filepath.IsAbs(path) || filepath.Clean(path) != path {
			v.wrong("${file:…} needs an absolute path without . and .., such as ${file:/run/secrets/name}")
			return "", false
		}
		if slices.ContainsFunc([]string{"/proc/", "/sys/", "/dev/"}, func(dir string) bool { return strings.HasPrefix(path, dir) }) {
			v.wrong("${file:…} cannot be a file of /proc, /sys or /dev")
			return "", false
		}
		// The limit leaves some room for the white space that is removed.
		text, problem := v.r.open(path, MaxSecret+maxTitle)
		if problem != "" {
			v.wrong("the secret's file %s: %s", quote(path), problem)
			return "", false
		}
		what, secret = "the secret in "+quote(path), string(text)
	} else {
		if !variable.MatchString(name) {
			v.wrong("${…} takes the name of an environment variable or file:/path, and nothing else")
			return "", false
		}
		if strings.HasPrefix(strings.ToUpper(name), "FERMATA_") {
			v.wrong("${%s} is not allowed: the settings of the server never leave it", name)
			return "", false
		}
		text, found := v.r.env(name)
		if !found {
			v.wrong("the environment variable %s is not set; set it where the server is started", name)
			return "", false
		}
		what, secret = "the environment variable "+name, text
	}
	secret = strings.TrimSpace(secret)
	switch {
	case secret == "":
		v.wrong("%s is empty", what)
		return "", false
	case !utf8.ValidString(secret):
		v.wrong("%s is not UTF-8", what)
		return "", false
	}
	return secret, s.add(v, what, secret)
}

// insecure reports whether a text in which ${} is not replaced has one. It would be sent as it is.
func insecure(text string) bool { return strings.Contains(text, "${") }
