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

func TestTwoHeadersOfOneNameAreRefused(t *testing.T) {
	for other, want := range map[string]bool{"x-dry-run": true, "X-DRY-RUN": true, "X-Dry": false} {
		_, err := guard.NewRequest(t.Context(), "POST", "http://example.org", "", map[string]string{"X-Dry-Run": "true", other: "false"})
		if got := errors.Is(err, guard.ErrRequest); got != want || !want && err != nil {
			t.Errorf("with %q: %v, want refused: %t", other, err, want)
		}
	}
}
