package slack

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
	"github.com/slack-go/slack"

	"oneclaw/bridge/chats"
	"oneclaw/internal/retry"
	"oneclaw/slack/shared"
)

// maxAnswer bounds the body of a response, well above the largest legitimate one.
const maxAnswer = 64 << 20

// tokenPattern matches texts that look like a token or the ticket of a socket.
var tokenPattern = regexp.MustCompile(`x(?:ox[a-z]|app)-[\w.%-]+|ticket=[^&\s"]+`)

// client calls the Web API. No other type knows the tokens.
type client struct {
	*retry.Caller
	botToken, appToken string
	base               *url.URL
	timeout            time.Duration
	secrets            []string
	pacer              *retry.Pacer
	clock              shared.Clock
	dialer             websocket.Dialer
}

func newClient(bot, app, signing string, base *url.URL, given *http.Client, timeout time.Duration) *client {
	c := &client{botToken: bot, appToken: app, base: base, timeout: timeout, pacer: retry.NewPacer(maxHold), secrets: []string{bot, app, signing}}
	c.Caller = retry.NewCaller(given, c.redact)
	c.dialer = websocket.Dialer{Proxy: http.ProxyFromEnvironment, HandshakeTimeout: timeout}
	if given != nil {
		// Sockets use the same proxy and TLS settings as calls.
		if t, ok := given.Transport.(*http.Transport); ok {
			c.dialer.Proxy, c.dialer.TLSClientConfig = t.Proxy, t.TLSClientConfig.Clone()
		}
	}
	if c.dialer.TLSClientConfig != nil {
		c.dialer.TLSClientConfig.NextProtos = nil // a socket begins with HTTP/1.1
	}
	return c
}

// callError describes why a call failed. It contains no secrets.
type callError struct {
	method string
	// code is Slack's error code, or empty if there is no response of Slack's. A call that the pacer holds
	// back has the code ratelimited.
	code string
	// missingScope is the scope that the app lacks, if that is the reason.
	missingScope string
	// status is the HTTP status, if it is not 200.
	status     int
	retryAfter time.Duration
	// requestBegun is set if a part of the request may have reached the server.
	requestBegun bool
	err          error
}

// Error returns the text for the log.
func (e *callError) Error() string {
	switch {
	case e.missingScope != "":
		return fmt.Sprintf("slack: %s: %s: the app needs the scope %s", e.method, e.code, e.missingScope)
	case e.code != "":
		return fmt.Sprintf("slack: %s: %s", e.method, e.code)
	case e.status != 0:
		return fmt.Sprintf("slack: %s: http status %d", e.method, e.status)
	}
	return fmt.Sprintf("slack: %s: %v", e.method, e.err)
}

// isRateLimited reports whether the call was rate-limited.
func (e *callError) isRateLimited() bool {
	return e.status == http.StatusTooManyRequests || e.code == "ratelimited" || e.code == "rate_limited"
}

// Unwrap returns the cause, unless it contains secrets.
func (e *callError) Unwrap() error { return e.err }

// hasErrorCode reports whether Slack refused the call with one of these codes.
func hasErrorCode(err error, codes ...string) bool {
	var ce *callError
	return errors.As(err, &ce) && slices.Contains(codes, ce.code)
}

// errorCode returns Slack's error code of a failed call, or an empty string for other errors.
func errorCode(err error) string {
	if ce, ok := errors.AsType[*callError](err); ok {
		return ce.code
	}
	return ""
}

// isTokenError reports whether Slack refuses the token.
func isTokenError(err error) bool {
	return hasErrorCode(err, "invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired", "not_allowed_token_type")
}

type apiCall struct {
	method string
	// channel is the channel of the call, if Slack limits the rate by channel.
	channel string
	// contentLength is the length of the request's body if the library does not know it, and otherwise 0.
	contentLength int64
	timeout       time.Duration // replaces the usual one if it is longer
}

func (r apiCall) key() string { return r.method + " " + r.channel }

// call calls a method through the library.
func (c *client) call(ctx context.Context, method string, with func(context.Context, *slack.Client) error) error {
	return c.do(ctx, apiCall{method: method}, with)
}

// callWithResult calls a method that has a result; see [client.call].
func callWithResult[T any](ctx context.Context, c *client, method string, with func(context.Context, *slack.Client) (T, error)) (answer T, err error) {
	err = c.call(ctx, method, func(ctx context.Context, api *slack.Client) (err error) {
		answer, err = with(ctx, api)
		return err
	})
	return answer, err
}

// do makes a call through the library; see [client.run].
func (c *client) do(ctx context.Context, r apiCall, with func(context.Context, *slack.Client) error) error {
	return c.run(ctx, r, func(ctx context.Context, send retry.ClientFunc) error {
		return with(ctx, slack.New(c.botToken, slack.OptionAPIURL(c.base.String()), slack.OptionAppLevelToken(c.appToken), slack.OptionHTTPClient(send)))
	})
}

// run makes a call as soon as the rate limits allow it. If that takes too long, it sends nothing and
// returns a [callError] for which isRateLimited is true.
func (c *client) run(ctx context.Context, r apiCall, with func(context.Context, retry.ClientFunc) error) error {
	fault := &callError{method: r.method}
	if wait := c.pacer.Wait(ctx, r.key()); wait > 0 {
		fault.code, fault.status, fault.retryAfter = "ratelimited", http.StatusTooManyRequests, wait
		return fault
	}
	ctx, cancel := context.WithTimeout(ctx, max(c.timeout, r.timeout))
	defer cancel()
	var begun atomic.Bool
	err := with(ctx, func(req *http.Request) (*http.Response, error) {
		chats.WatchBody(req, &begun)
		if at := req.URL.String(); req.Header.Get("Authorization") == "" && strings.HasPrefix(at, c.base.String()) {
			// For some methods the library sends the token only in the form, which a proxy may
			// drop.
			req.Header.Set("Authorization", "Bearer "+c.botToken)
		}
		if r.contentLength > 0 {
			// The library writes the end of its form twice.
			req.ContentLength, req.Body = r.contentLength, retry.LimitBody(req.Body, r.contentLength)
		}
		resp, err := c.Do(req)
		if err == nil {
			c.clock.Update(resp.Header)
			resp.Body = retry.LimitBody(resp.Body, maxAnswer)
		}
		return resp, err
	})
	fault.requestBegun = begun.Load()
	if err == nil {
		c.pacer.RecordSuccess(r.key())
		return nil
	}
	c.fillError(fault, err)
	if fault.isRateLimited() {
		// Begin with the rate that Slack guarantees, and adapt it to the rate that it accepts.
		gap := callInterval(r.method)
		c.pacer.RecordRefusal(r.key(), max(fault.retryAfter, gap), gap, gap)
	}
	return fault
}

// fillError fills a callError from an error of the library.
func (c *client) fillError(fault *callError, err error) {
	var refusal slack.SlackErrorResponse
	var limited *slack.RateLimitedError
	var status slack.StatusCodeError
	switch {
	case errors.As(err, &refusal):
		fault.code, fault.missingScope = c.redact(refusal.Err), c.redact(refusal.Needed)
	case errors.As(err, &limited):
		fault.code, fault.status, fault.retryAfter = "ratelimited", http.StatusTooManyRequests, limited.RetryAfter
	case errors.As(err, &status):
		fault.status = status.Code
	default:
		fault.err = c.CleanError(err)
	}
}

// redact removes the tokens, and texts that look like one.
func (c *client) redact(text string) string {
	for _, secret := range c.secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "<token>")
		}
	}
	return tokenPattern.ReplaceAllString(text, "<token>")
}

// mayHaveToken reports whether an address belongs to Slack, so that the token may be sent to it.
func (c *client) mayHaveToken(u *url.URL) bool {
	host := strings.ToLower(u.Hostname())
	slacks := host == "slack.com" || strings.HasSuffix(host, ".slack.com") ||
		host == "slack-gov.com" || strings.HasSuffix(host, ".slack-gov.com")
	return u.User == nil && (u.Scheme == "https" && slacks || u.Scheme == c.base.Scheme && strings.EqualFold(u.Host, c.base.Host))
}

// parseTS returns the time of a ts; zero if it is invalid.
func parseTS(ts string) time.Time {
	seconds, micros, _ := strings.Cut(ts, ".")
	s, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return time.Time{}
	}
	us, err := strconv.ParseInt(micros, 10, 64)
	if err != nil || us < 0 || us >= 1e6 {
		us = 0
	}
	return time.Unix(s, us*1000).UTC()
}
