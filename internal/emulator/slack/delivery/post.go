package delivery

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// signatureHeaders returns the headers of a request with the given body that is sent at a given time.
func (l *Line) signatureHeaders(body []byte, at time.Time) http.Header {
	stamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(l.cfg.Secret))
	_, _ = fmt.Fprintf(mac, "v0:%s:%s", stamp, body) // a hash never fails
	h := http.Header{}
	h.Set("X-Slack-Request-Timestamp", stamp)
	h.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
	return h
}

// postEnvelope posts an envelope to EventsURL, with the lock held. It does not wait for the response.
func (l *Line) postEnvelope(e *envelope) {
	body, kind := []byte(e.payload), "application/json"
	if e.kind != KindEvent {
		kind = "application/x-www-form-urlencoded"
		body = []byte(encodeForm(e))
	}
	header := l.signatureHeaders(body, l.cfg.Now())
	header.Set("Content-Type", kind)
	if e.deliveries > 1 {
		header.Set("X-Slack-Retry-Num", strconv.Itoa(e.deliveries-1))
		header.Set("X-Slack-Retry-Reason", "http_error")
	}
	l.cfg.Life.Go(func() {
		reply, err := l.send(body, header)
		l.cfg.Mu.Lock()
		defer l.cfg.Mu.Unlock()
		switch {
		case l.cfg.Life.Closed():
		case err == nil:
			l.handleAck(e.id, reply)
		case e.state == Delivered:
			l.cfg.Log.Debug("app did not accept event", "err", err)
			l.handleFailure(e)
		}
	})
}

// encodeForm returns the form that is posted for a command or a button press.
func encodeForm(e *envelope) string {
	if e.kind == KindInteractive {
		return url.Values{"payload": {string(e.payload)}}.Encode()
	}
	var fields map[string]string
	values := url.Values{}
	if json.Unmarshal(e.payload, &fields) == nil {
		for key, v := range fields {
			values.Set(key, v)
		}
	}
	return values.Encode()
}

func (l *Line) send(body []byte, header http.Header) (reply []byte, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stop := make(chan struct{})
	defer close(stop)
	l.cfg.Life.Go(func() {
		select {
		case <-l.cfg.Life.Done():
			cancel()
		case <-stop:
		}
	})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.cfg.EventsURL, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("slack emulator: post event: %w", err)
	}
	req.Header = header
	resp, err := l.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("slack emulator: post event: %w", err)
	}
	reply, err = io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return nil, fmt.Errorf("slack emulator: read answer to event: %w", err)
	}
	if resp.StatusCode/100 != 2 {
		return nil, fmt.Errorf("slack emulator: event answered with %s", resp.Status)
	}
	return reply, nil
}
