package librechat

import (
	"fermata/api/auth"
	"fermata/engine/workspace"
)

// OwnerOf is scope.owner.
func OwnerOf(who auth.Principal, kind, id, version string) (workspace.Owner, error) {
	return scope{kind, id, version}.owner(who)
}
