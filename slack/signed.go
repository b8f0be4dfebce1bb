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

// refusedInterval is the interval at which unsigned requests are logged.
const refusedInterval = time.Minute

// signatures accepts only requests that Slack has signed.
type signatures struct {
	secret string
	log    *slog.Logger
	// refused counts the requests that are not logged yet.
	refused atomic.Int64
	told    rate.Sometimes
}

// newSignatures returns signatures for a secret: without one, no request is accepted.
func newSignatures(secret string, log *slog.Logger) *signatures {
	return &signatures{secret: secret, log: log, told: rate.Sometimes{Interval: refusedInterval}}
}

// Wanted reports whether there is a secret to sign with.
func (s *signatures) Wanted() bool { return s.secret != "" }

// Body returns the body of a signed request; it rejects any other.
func (s *signatures) Body(w http.ResponseWriter, req *http.Request) ([]byte, bool) {
	verifier, err := s.verifier(req.Header)
	if err != nil {
		s.refuse(w, err) // rejected before its body is read
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
		s.refuse(w, err)
		return nil, false
	}
	return body, true
}

// verifier checks that a request has a signature and a time.
func (s *signatures) verifier(header http.Header) (slack.SecretsVerifier, error) {
	if s.secret == "" {
		return slack.SecretsVerifier{}, errors.New("no signing secret is set") // an empty secret would accept any sender
	}
	return slack.NewSecretsVerifier(header, s.secret)
}

// refuse rejects a request that is not signed by Slack.
func (s *signatures) refuse(w http.ResponseWriter, err error) {
	s.refused.Add(1)
	s.told.Do(func() {
		s.log.Warn("requests refused: they are not signed by slack", "count", s.refused.Swap(0), "err", err)
	})
	http.Error(w, "not signed", http.StatusUnauthorized)
}
