package schema

import (
	"encoding/json"
	"math/big"
	"strconv"
	"strings"
)

// whole reports whether a number is an integer: 1, 1.0 and 1e3 are.
func whole(n json.Number) bool {
	if plain(n) {
		return true
	}
	mantissa, power := strings.ToLower(strings.TrimPrefix(string(n), "-")), 0
	if before, after, found := strings.Cut(mantissa, "e"); found {
		mantissa = before
		power, _ = strconv.Atoi(after)
	}
	digits, fraction, _ := strings.Cut(mantissa, ".")
	fraction = strings.TrimRight(fraction, "0")
	if fraction != "" {
		return len(fraction) <= power
	}
	significant := strings.TrimRight(digits, "0")
	return significant == "" || len(digits)-len(significant)+power >= 0
}

// plain reports whether a number is written as digits only.
func plain(n json.Number) bool { return !strings.ContainsAny(string(n), ".eE") }

// rational returns the exact value of a number. Its exponent is small, since checkText has checked the input.
func rational(n json.Number) *big.Rat {
	r, ok := new(big.Rat).SetString(string(n))
	if !ok {
		return new(big.Rat)
	}
	return r
}

// sameNumber reports whether two numbers have the same value.
func sameNumber(a, b json.Number) bool {
	if a == b {
		return true
	}
	if plain(a) && plain(b) && a != "-0" && b != "-0" {
		return false
	}
	return rational(a).Cmp(rational(b)) == 0
}
