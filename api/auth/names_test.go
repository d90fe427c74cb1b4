package auth_test

import (
	"strings"
	"testing"

	"fermata/api/auth"
)

// Whoever is named by its ID is the principal that had it.
func TestNamed(t *testing.T) {
	for name, want := range map[string]auth.Principal{
		"ada":               {ID: "ada"},
		"jwt":               {ID: "jwt"},
		"jwt:acme:ada":      {ID: "jwt:acme:ada", Tenant: "acme", User: "ada"},
		"jwt:a%3Ab:c+d%25":  {ID: "jwt:a%3Ab:c+d%25", Tenant: "a:b", User: "c d%"},
		"jwt:%C3%BC:%2Fada": {ID: "jwt:%C3%BC:%2Fada", Tenant: "ü", User: "/ada"},
	} {
		if got, ok := auth.Named(name); !ok || got != want {
			t.Errorf("Named(%q) = %+v, %v, want %+v", name, got, ok, want)
		}
	}
	for _, name := range []string{"", "jwt:", "jwt:a", "jwt:a:", "jwt::b", "jwt:a:b:c", "jwt:a:%", "jwt:a:b%2fc", "jwt:a:b c", "jwt:%61:b"} {
		if got, ok := auth.Named(name); ok {
			t.Errorf("Named(%q) = %+v, want none", name, got)
		}
	}
}

// A list of keys says of every key who its principal is.
func TestCheckKeys(t *testing.T) {
	client := func(name, key string) auth.Key { return auth.Key{Name: name, Key: key} }
	operator := func(name, key string) auth.Key { return auth.Key{Name: name, Key: key, Operator: true} }
	for _, c := range []struct {
		name string
		keys []auth.Key
		want string
	}{
		{"good", []auth.Key{client("ada", "secret-1"), client("ada", "secret-2"), operator("ops", "secret-3"), operator("ops", "secret-4")}, ""},
		{"the same twice", []auth.Key{client("ada", "secret-1"), client("ada", "secret-1")}, ""},
		{"one key, two clients", []auth.Key{client("ada", "secret-1"), client("bob", "secret-1")}, "ada and bob have the same key"},
		{"one key in both lists", []auth.Key{client("ada", "secret-1"), operator("ops", "secret-1")}, "same key, as that of ada and of ops"},
		{"one key and name in both lists", []auth.Key{client("ada", "secret-1"), operator("ada", "secret-1")}, "same key, as that of ada and of ada"},
		{"one name in both lists", []auth.Key{client("ada", "secret-1"), operator("ada", "secret-2")}, "have the name ada"},
		{"a user of LibreChat", []auth.Key{client("jwt:a:b", "secret-1")}, `may have the name "jwt:a:b"`},
		{"a user of LibreChat, cut at the colon", []auth.Key{client("jwt", "a:b:secret-1")}, `may have the name "jwt"`},
		{"an operator like a user", []auth.Key{operator("jwt:a:b", "secret-1")}, `may have the name "jwt:a:b"`},
		{"everyone", []auth.Key{client("anonymous", "secret-1")}, `may have the name "anonymous"`},
		{"an operator like everyone", []auth.Key{operator("anonymous", "secret-1")}, `may have the name "anonymous"`},
	} {
		var texts []string
		for _, err := range auth.CheckKeys(c.keys) {
			texts = append(texts, err.Error())
		}
		got := strings.Join(texts, "; ")
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) || strings.Contains(got, "secret") {
			t.Errorf("%s: got %q, want %q in it, and no key", c.name, got, c.want)
		}
	}
}
