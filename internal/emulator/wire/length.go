package wire

import "net/http"

// Sized reports whether a request says how long its body is. One that does not, because it
// comes in chunks, gets its answer from Sized: many a gateway takes none.
func Sized(w http.ResponseWriter, r *http.Request) bool {
	if r.ContentLength >= 0 {
		return true
	}
	http.Error(w, "Length Required", http.StatusLengthRequired)
	return false
}
