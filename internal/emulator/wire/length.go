package wire

import "net/http"

// Sized reports whether a request has a Content-Length. It refuses a chunked one itself: many
// gateways do not accept these.
func Sized(w http.ResponseWriter, r *http.Request) bool {
	if r.ContentLength >= 0 {
		return true
	}
	http.Error(w, "Length Required", http.StatusLengthRequired)
	return false
}
