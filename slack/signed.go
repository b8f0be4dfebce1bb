package slack

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/slack-go/slack"
	"golang.org/x/time/rate"
)

// maxRequest bounds the body of a request from Slack.
const maxRequest = 1 << 20

// refusedInterval is the interval at which rejected requests are logged.
const refusedInterval = time.Minute

// requestVerifier accepts only requests that Slack has signed.
type requestVerifier struct {
	secret string
	log    *slog.Logger
	// refused counts the rejected requests that are not logged yet.
	refused  atomic.Int64
	logLimit rate.Sometimes
}

// newRequestVerifier returns a verifier with a secret. Without a secret it accepts no request.
func newRequestVerifier(secret string, log *slog.Logger) *requestVerifier {
	return &requestVerifier{secret: secret, log: log, logLimit: rate.Sometimes{Interval: refusedInterval}}
}

// enabled reports whether there is a signing secret.
func (s *requestVerifier) enabled() bool { return s.secret != "" }

// readBody returns the body of a signed request. It rejects any other request.
func (s *requestVerifier) readBody(w http.ResponseWriter, req *http.Request) ([]byte, bool) {
	verifier, err := s.newVerifier(req.Header)
	if err != nil {
		s.reject(w, err) // rejected before its body is read
		return nil, false
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxRequest))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		http.Error(w, "request too large", http.StatusRequestEntityTooLarge)
		return nil, false
	case err != nil:
		http.Error(w, "request broken", http.StatusBadRequest)
		return nil, false
	}
	if _, err = verifier.Write(body); err == nil {
		err = verifier.Ensure()
	}
	if err != nil {
		s.reject(w, err)
		return nil, false
	}
	return body, true
}

// newVerifier returns the library's verifier for a request that has a signature and a time.
func (s *requestVerifier) newVerifier(header http.Header) (slack.SecretsVerifier, error) {
	if s.secret == "" {
		return slack.SecretsVerifier{}, errors.New("no signing secret is set") // an empty secret would accept any sender
	}
	return slack.NewSecretsVerifier(header, s.secret)
}

// reject rejects a request that is not signed by Slack.
func (s *requestVerifier) reject(w http.ResponseWriter, err error) {
	s.refused.Add(1)
	s.logLimit.Do(func() {
		s.log.Warn("requests refused: they are not signed by slack", "count", s.refused.Swap(0), "err", err)
	})
	http.Error(w, "not signed", http.StatusUnauthorized)
}
