package telegram

import (
	"errors"
	"net/http"

	"oneclaw/internal/emulator/wire"
)

// readParams reads the whole request. The service takes arguments in every form.
func readParams(w http.ResponseWriter, r *http.Request) (*wire.Params, *apiError) {
	p, err := wire.ReadParams(w, r, maxUpload+1<<20)
	if err == nil {
		return p, nil
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, errorf(413, "Request Entity Too Large") // HttpReader.cpp
	}
	return nil, badRequest("can't parse request body") // assumed
}
