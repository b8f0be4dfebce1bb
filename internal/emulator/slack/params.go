package slack

import (
	"net/http"

	"oneclaw/internal/emulator/wire"
)

// readParams reads the whole request.
func readParams(w http.ResponseWriter, r *http.Request) (*wire.Params, *apiError) {
	p, err := wire.ReadParams(w, r, maxUpload+1<<20)
	switch {
	case err == nil:
		return p, nil
	case wire.IsJSON(r):
		return nil, refuse("invalid_json") // its page
	}
	return nil, refuse("invalid_form_data") // its page
}
