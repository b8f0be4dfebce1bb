package guard_test

import (
	"testing"

	"oneclaw/internal/guard"
)

func TestReservedHeader(t *testing.T) {
	for name, want := range map[string]bool{
		"Host": true, "host": true, "HOST": true, "te": true, "content-length": true, "Transfer-encoding": true,
		"proxy-authorization": true, "accept-encoding": true, "connection": true, "Upgrade": true,
		"Authorization": false, "Content-Type": false, "X-Host": false, "User-Agent": false, "": false,
	} {
		if got := guard.ReservedHeader(name); got != want {
			t.Errorf("%q: got %v, want %v", name, got, want)
		}
	}
}
