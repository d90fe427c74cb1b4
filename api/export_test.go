package api

import "fermata/engine/files"

// Verify is verify, for the fuzzer.
func Verify(v *JWT, token string) (Principal, error) { return v.verify(token) }

// OwnerOf is scope.owner.
func OwnerOf(who Principal, kind, id, version string) (files.Owner, error) {
	return scope{kind, id, version}.owner(who)
}
