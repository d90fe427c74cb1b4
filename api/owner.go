package api

import (
	"fermata/api/auth"
	"fermata/engine/files"
)

// OwnerOf returns the owner of a principal's own files: the user of its tenant, if the principal comes
// from a token. Everyone with a key is a tenant with one user.
func OwnerOf(who auth.Principal) files.Owner {
	// The prefixes distinguish a key from a token's tenant of the same name.
	if who.User == "" {
		return files.Owner{Tenant: "key:" + who.ID, Kind: files.KindUser, ID: who.ID}
	}
	return files.Owner{Tenant: "token:" + who.Tenant, Kind: files.KindUser, ID: who.User}
}
