package app

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"oneclaw/internal/config"
)

// The port has no password: it says what is wrong, and of no chat and no person.
func TestReadinessNamesNoChat(t *testing.T) {
	t.Parallel()
	for _, platform := range config.PlatformNames() {
		handler := healthHandler(func() error {
			return fmt.Errorf("%[1]s: accept message 5 in %[1]s:-100123:7: write job/open/%[1]s:C012AB/1.5/text: no space left on device", platform)
		})
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil))
		body := w.Body.String()
		if w.Code != http.StatusServiceUnavailable || !strings.Contains(body, "no space left on device") || strings.Contains(body, "100123") || strings.Contains(body, "C012AB") {
			t.Errorf("status %d, %q", w.Code, body)
		}
	}
}
