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
const maxAnswer = 16 << 20

// tokenPattern matches what looks like a token or the ticket of a socket.
var tokenPattern = regexp.MustCompile(`x(?:ox[a-z]|app)-[\w.%-]+|ticket=[^&\s"]+`)

// client calls the Web API. Only it knows the tokens.
type client struct {
	*retry.Caller
	bot, app string
	base     *url.URL
	timeout  time.Duration
	secrets  []string
	paces    *retry.Pacer
	clock    shared.Clock
	sockets  websocket.Dialer
}

func newClient(bot, app, signing string, base *url.URL, given *http.Client, timeout time.Duration) *client {
	c := &client{bot: bot, app: app, base: base, timeout: timeout, paces: retry.NewPacer(maxHold), secrets: []string{bot, app, signing}}
	c.Caller = retry.NewCaller(given, c.redact)
	c.sockets = websocket.Dialer{Proxy: http.ProxyFromEnvironment, HandshakeTimeout: timeout}
	if given != nil {
		// Sockets use the same proxy and TLS settings as calls.
		if t, ok := given.Transport.(*http.Transport); ok {
			c.sockets.Proxy, c.sockets.TLSClientConfig = t.Proxy, t.TLSClientConfig.Clone()
		}
	}
	if c.sockets.TLSClientConfig != nil {
		c.sockets.TLSClientConfig.NextProtos = nil // a socket begins with HTTP/1.1
	}
	return c
}

// callError says why a call failed. It holds no secrets.
type callError struct {
	method string
	// code is Slack's error code; empty if the response is not Slack's.
	code string
	// needed is the missing scope, if that is the reason.
	needed string
	// status is the HTTP status, if it is not 200.
	status     int
	retryAfter time.Duration
	// begun says that a part of the request may have reached the server.
	begun bool
	err   error
}

// Error returns the text for the log.
func (e *callError) Error() string {
	switch {
	case e.needed != "":
		return fmt.Sprintf("slack: %s: %s: the app needs the scope %s", e.method, e.code, e.needed)
	case e.code != "":
		return fmt.Sprintf("slack: %s: %s", e.method, e.code)
	case e.status != 0:
		return fmt.Sprintf("slack: %s: http status %d", e.method, e.status)
	}
	return fmt.Sprintf("slack: %s: %v", e.method, e.err)
}

// limited reports whether the call was rate-limited.
func (e *callError) limited() bool {
	return e.status == http.StatusTooManyRequests || e.code == "ratelimited" || e.code == "rate_limited"
}

// Unwrap returns the cause, if it holds no secrets.
func (e *callError) Unwrap() error { return e.err }

// refused reports whether Slack refused the call with one of these codes.
func refused(err error, codes ...string) bool {
	var ce *callError
	return errors.As(err, &ce) && slices.Contains(codes, ce.code)
}

// codeOf returns Slack's error code of a call; empty for other errors.
func codeOf(err error) string {
	if ce, ok := errors.AsType[*callError](err); ok {
		return ce.code
	}
	return ""
}

// wrongToken reports whether Slack no longer accepts the token.
func wrongToken(err error) bool {
	return refused(err, "invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired", "not_allowed_token_type")
}

type request struct {
	method string
	// place is the channel, if Slack limits the calls for each channel.
	place string
	// length, if not 0, is the length of a request that the library does not know.
	length  int64
	timeout time.Duration // at least the usual
}

func (r request) key() string { return r.method + " " + r.place }

// call calls a method through the library.
func (c *client) call(ctx context.Context, method string, with func(context.Context, *slack.Client) error) error {
	return c.do(ctx, request{method: method}, with)
}

// ask is call for a method with a result.
func ask[T any](ctx context.Context, c *client, method string, with func(context.Context, *slack.Client) (T, error)) (answer T, err error) {
	err = c.call(ctx, method, func(ctx context.Context, api *slack.Client) (err error) {
		answer, err = with(ctx, api)
		return err
	})
	return answer, err
}

// do makes a call, within the rate limits.
func (c *client) do(ctx context.Context, r request, with func(context.Context, *slack.Client) error) error {
	fault := &callError{method: r.method}
	if wait := c.paces.Wait(ctx, r.key()); wait > 0 {
		fault.code, fault.status, fault.retryAfter = "ratelimited", http.StatusTooManyRequests, wait
		return fault
	}
	ctx, cancel := context.WithTimeout(ctx, max(c.timeout, r.timeout))
	defer cancel()
	var begun atomic.Bool
	api := slack.New(c.bot, slack.OptionAPIURL(c.base.String()), slack.OptionAppLevelToken(c.app),
		slack.OptionHTTPClient(retry.Func(func(req *http.Request) (*http.Response, error) {
			chats.WatchBody(req, &begun)
			if at := req.URL.String(); req.Header.Get("Authorization") == "" && strings.HasPrefix(at, c.base.String()) {
				// For some methods the library sends the token only in the form, which a proxy may
				// drop.
				req.Header.Set("Authorization", "Bearer "+c.bot)
			}
			if r.length > 0 {
				// The library writes the end of its form twice.
				req.ContentLength, req.Body = r.length, retry.Bounded(req.Body, r.length)
			}
			resp, err := c.Do(req)
			if err == nil {
				c.clock.Hear(resp.Header)
				resp.Body = retry.Bounded(resp.Body, maxAnswer)
			}
			return resp, err
		})))
	err := with(ctx, api)
	fault.begun = begun.Load()
	if err == nil {
		c.paces.Passed(r.key())
		return nil
	}
	c.explain(fault, err)
	if fault.limited() {
		// Begin with the rate that Slack guarantees, and adapt to what it accepts.
		gap := gapOf(r.method)
		c.paces.Refused(r.key(), max(fault.retryAfter, gap), gap, gap)
	}
	return fault
}

// explain fills a callError from an error of the library.
func (c *client) explain(fault *callError, err error) {
	var refusal slack.SlackErrorResponse
	var limited *slack.RateLimitedError
	var status slack.StatusCodeError
	switch {
	case errors.As(err, &refusal):
		fault.code, fault.needed = c.redact(refusal.Err), c.redact(refusal.Needed)
	case errors.As(err, &limited):
		fault.code, fault.status, fault.retryAfter = "ratelimited", http.StatusTooManyRequests, limited.RetryAfter
	case errors.As(err, &status):
		fault.status = status.Code
	default:
		fault.err = c.Clean(err)
	}
}

// redact removes the tokens from a text, and what looks like one.
func (c *client) redact(text string) string {
	for _, secret := range c.secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "<token>")
		}
	}
	return tokenPattern.ReplaceAllString(text, "<token>")
}

// mayHaveToken reports whether an address is Slack's, so that it may get the token.
func (c *client) mayHaveToken(u *url.URL) bool {
	host := strings.ToLower(u.Hostname())
	slacks := host == "slack.com" || strings.HasSuffix(host, ".slack.com") ||
		host == "slack-gov.com" || strings.HasSuffix(host, ".slack-gov.com")
	return u.User == nil && (u.Scheme == "https" && slacks || u.Scheme == c.base.Scheme && strings.EqualFold(u.Host, c.base.Host))
}

// stamp returns the time of a ts.
func stamp(ts string) time.Time {
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
