package wire

import "net/http"

// RequireLength reports whether a request has a Content-Length. It refuses a chunked request itself, as many gateways do
// that stand before a service. The services accept those.
func RequireLength(w http.ResponseWriter, r *http.Request) bool {
	if r.ContentLength >= 0 {
		return true
	}
	http.Error(w, "Length Required", http.StatusLengthRequired)
	return false
}
