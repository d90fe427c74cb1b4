package auth

import (
	"fmt"
	"net/url"
	"strings"
)

// Anonymous is the principal of all requests to a server that lets everyone in.
const Anonymous = "anonymous"

// tokenPrefix begins the names of the principals that come from tokens.
const tokenPrefix = "jwt:"

// tokenPrincipal is the principal of a user. The parts are escaped, so that a colon in one
// of them cannot make two users one.
func tokenPrincipal(tenant, user string) Principal {
	return Principal{
		ID:     tokenPrefix + url.QueryEscape(tenant) + ":" + url.QueryEscape(user),
		Tenant: tenant,
		User:   user,
	}
}

// Named returns the principal whose ID is name, and whether there can be such a principal.
func Named(name string) (Principal, bool) {
	escaped, fromToken := strings.CutPrefix(name, tokenPrefix)
	if !fromToken {
		return Principal{ID: name}, name != ""
	}
	tenant, user, _ := strings.Cut(escaped, ":")
	tenant, err := url.QueryUnescape(tenant)
	if err != nil {
		return Principal{}, false
	}
	user, err = url.QueryUnescape(user)
	who := tokenPrincipal(tenant, user)
	// One principal has one spelling.
	return who, err == nil && tenant != "" && user != "" && who.ID == name
}

// CheckKeys returns the mistakes in a list of keys with which it would not be certain who a principal
// is: names that other principals have, and keys or names that are an operator's and a client's at
// the same time. It tells names, and no key.
func CheckKeys(keys []Key) []error {
	var mistakes []error
	byKey, byName := map[string]Key{}, map[string]Key{}
	for _, k := range keys {
		// A name ends at the first colon, so whoever writes jwt:tenant:user:key gets the name jwt.
		if k.Name == Anonymous || k.Name+":" == tokenPrefix || strings.HasPrefix(k.Name, tokenPrefix) {
			mistakes = append(mistakes, fmt.Errorf("no key in FERMATA_API_KEYS or FERMATA_OPERATOR_KEYS may have the name %q: %q is everyone with FERMATA_AUTH=off, "+
				"and names that begin with %q are users of LibreChat", k.Name, Anonymous, tokenPrefix))
			continue
		}
		sameKey, found := byKey[k.Key]
		switch {
		case found && sameKey.Operator != k.Operator:
			mistakes = append(mistakes, fmt.Errorf("FERMATA_API_KEYS and FERMATA_OPERATOR_KEYS have the same key, as that of %s and of %s: "+
				"an operator needs a key of its own", sameKey.Name, k.Name))
		case found && sameKey.Name != k.Name:
			mistakes = append(mistakes, fmt.Errorf("%s and %s have the same key in FERMATA_API_KEYS or FERMATA_OPERATOR_KEYS: each principal needs one of its own", sameKey.Name, k.Name))
		}
		if sameName, found := byName[k.Name]; found && sameName.Operator != k.Operator {
			mistakes = append(mistakes, fmt.Errorf("FERMATA_OPERATOR_KEYS and FERMATA_API_KEYS have the name %s: an operator needs a name of its own", k.Name))
		}
		byKey[k.Key], byName[k.Name] = k, k
	}
	return mistakes
}
