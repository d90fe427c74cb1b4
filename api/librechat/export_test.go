package librechat

import (
	"fermata/api/auth"
	"fermata/engine/files"
)

// OwnerOf is scope.owner.
func OwnerOf(who auth.Principal, kind, id, version string) (files.Owner, error) {
	return scope{kind, id, version}.owner(who)
}
