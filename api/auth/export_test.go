package auth

// Verify is verify, for the fuzzer.
func Verify(v *JWT, token string) (Principal, error) { return v.verify(token) }
