package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"oneclaw/bridge/chats"
	"oneclaw/internal/retry"
)

// maxAnswer bounds the body of an answer, well above the largest honest one.
const maxAnswer = 32 << 20

// minSecret is below any real secret's length, and above that of a word of prose.
const minSecret = 10

// client makes calls of the Bot API. It is the only place that knows the token.
type client struct {
	*retry.Caller
	token    string
	endpoint string // with %s for token and method, as the library wants it
	files    string
	hosted   bool // by Telegram, not by the operator
	timeout  time.Duration
}

func newClient(token, base string, given *http.Client, timeout time.Duration) *client {
	c := &client{
		token:    token,
		endpoint: strings.ReplaceAll(base, "%", "%%") + "/bot%s/%s",
		files:    base + "/file/bot" + token + "/",
		hosted:   base == DefaultAPIURL,
		timeout:  timeout,
	}
	c.Caller = retry.NewCaller(given, c.redact)
	return c
}

// callError says why a call came to nothing. It holds no secrets.
type callError struct {
	method string
	// code is Telegram's error code where answered, else the HTTP status, or 0 where
	// there was no answer at all.
	code int
	// answered is true where Telegram itself refused the call, in its own words.
	answered   bool
	text       string
	retryAfter time.Duration
	movedTo    int64
	// begun is true where a part of the request may have reached the server.
	begun bool
	err   error
}

// Error returns the text for the log.
func (e *callError) Error() string {
	switch {
	case e.answered:
		return fmt.Sprintf("telegram: %s: %d %s", e.method, e.code, e.text)
	case e.code != 0:
		return fmt.Sprintf("telegram: %s: http status %d: %s", e.method, e.code, e.text)
	}
	return fmt.Sprintf("telegram: %s: %s", e.method, e.text)
}

// Unwrap returns the cause, where keeping it is safe.
func (e *callError) Unwrap() error { return e.err }

// refused reports whether Telegram refused the call as a bad request, with these words.
func refused(err error, words string) bool {
	var ce *callError
	return errors.As(err, &ce) && ce.answered && ce.code == http.StatusBadRequest && strings.Contains(strings.ToLower(ce.text), words)
}

// call calls a method with the usual timeout and decodes the result.
func (c *client) call(ctx context.Context, method string, params tgbotapi.Params, into any) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	return c.do(ctx, method, params, into)
}

func (c *client) do(ctx context.Context, method string, params tgbotapi.Params, into any) error {
	return c.request(ctx, method, into, 0, func(bot *tgbotapi.BotAPI) (*tgbotapi.APIResponse, error) {
		return bot.MakeRequest(method, params)
	})
}

// request has the library make a request and decodes the result. Length, if not 0, is that
// of a request whose length the library does not know.
func (c *client) request(ctx context.Context, method string, into any, length int64, with func(*tgbotapi.BotAPI) (*tgbotapi.APIResponse, error)) error {
	var status int
	var header http.Header
	var begun atomic.Bool
	bot := &tgbotapi.BotAPI{Token: c.token, Client: retry.Func(func(req *http.Request) (*http.Response, error) {
		req = req.WithContext(ctx)
		chats.WatchBody(req, &begun)
		if length > 0 {
			req.ContentLength = length
		}
		resp, err := c.Do(req)
		if err == nil {
			status, header = resp.StatusCode, resp.Header
			resp.Body = retry.Bounded(resp.Body, maxAnswer)
		}
		return resp, err
	})}
	bot.SetAPIEndpoint(c.endpoint)
	resp, err := with(bot)
	fault := &callError{method: method, code: status, begun: begun.Load()}
	if err == nil && into != nil {
		err = json.Unmarshal(resp.Result, into)
	}
	if err == nil {
		return nil
	}
	c.explain(fault, err, header)
	return fault
}

// explain takes an error of the library apart.
func (c *client) explain(fault *callError, err error, header http.Header) {
	if refusal, ok := errors.AsType[*tgbotapi.Error](err); ok {
		// With an upload the library drops the code, which is that of HTTP as well.
		fault.answered = refusal.Code != 0 || fault.code >= http.StatusBadRequest && refusal.Message != ""
		if refusal.Code != 0 {
			fault.code = refusal.Code
		}
		fault.text = c.redact(refusal.Message)
		fault.retryAfter = time.Duration(refusal.RetryAfter) * time.Second
		fault.movedTo = refusal.MigrateToChatID
	} else {
		fault.err = c.Clean(err)
		fault.text = fault.err.Error()
	}
	if fault.retryAfter <= 0 && header != nil {
		if n, err := strconv.Atoi(header.Get("Retry-After")); err == nil && n > 0 {
			fault.retryAfter = time.Duration(min(n, 24*60*60)) * time.Second
		}
	}
}

// redact takes the token out of a text, also where it was escaped for an address.
func (c *client) redact(text string) string {
	text = strings.ReplaceAll(text, c.token, "<token>")
	// The colon may have been escaped on the way.
	if _, secret, _ := strings.Cut(c.token, ":"); len(secret) >= minSecret {
		text = strings.ReplaceAll(text, secret, "<token>")
	}
	return text
}
