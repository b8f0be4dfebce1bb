package guard_test

import (
	"errors"
	"testing"

	"oneclaw/internal/guard"
)

func TestReservedHeadersAreRefused(t *testing.T) {
	for name, want := range map[string]bool{
		"Host": true, "host": true, "HOST": true, "te": true, "content-length": true, "Transfer-encoding": true,
		"proxy-authorization": true, "accept-encoding": true, "connection": true, "Upgrade": true,
		"Authorization": false, "Content-Type": false, "X-Host": false, "User-Agent": false, "": false,
	} {
		_, err := guard.NewRequest(t.Context(), "GET", "http://example.org", "", map[string]string{name: "x"})
		if got := errors.Is(err, guard.ErrRequest); got != want || !want && err != nil {
			t.Errorf("%q: got %v, want refused: %t", name, err, want)
		}
	}
}
