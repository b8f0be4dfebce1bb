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

// maxAnswer bounds the body of a response, well above the largest legitimate one.
const maxAnswer = 32 << 20

// minSecret is the length from which the part of a token after the colon is masked even without the rest.
// That part is longer in a real token; a shorter one may be an ordinary word.
const minSecret = 10

// client calls the Bot API. No other type knows the token.
type client struct {
	*retry.Caller
	token    string
	endpoint string // with %s for token and method, as the library wants it
	fileURL  string
	official bool                 // whether Telegram runs the server, not the operator
	isLocal  atomic.Pointer[bool] // whether the server runs with --local; nil if that is not known
	timeout  time.Duration
}

func newClient(token, base string, given *http.Client, timeout time.Duration) *client {
	c := &client{
		token:    token,
		endpoint: strings.ReplaceAll(base, "%", "%%") + "/bot%s/%s",
		fileURL:  base + "/file/bot" + token + "/",
		official: base == defaultAPIURL,
		timeout:  timeout,
	}
	c.Caller = retry.NewCaller(given, c.redact)
	return c
}

// callError describes why a call failed. It contains no secrets.
type callError struct {
	method string
	// code is Telegram's error code if fromTelegram is set, else the HTTP status; 0 without a response.
	code int
	// fromTelegram is set if Telegram itself refused the call.
	fromTelegram bool
	description  string
	retryAfter   time.Duration
	movedTo      int64
	// requestBegun is set if a part of the request may have reached the server.
	requestBegun bool
	err          error
}

// Error returns the text for the log.
func (e *callError) Error() string {
	switch {
	case e.fromTelegram:
		return fmt.Sprintf("telegram: %s: %d %s", e.method, e.code, e.description)
	case e.code != 0:
		return fmt.Sprintf("telegram: %s: http status %d: %s", e.method, e.code, e.description)
	}
	return fmt.Sprintf("telegram: %s: %s", e.method, e.description)
}

// Unwrap returns the cause, unless it contains secrets.
func (e *callError) Unwrap() error { return e.err }

// isBadRequest reports whether Telegram refused the call as a bad request, with these words.
func isBadRequest(err error, words string) bool {
	var ce *callError
	return errors.As(err, &ce) && ce.fromTelegram && ce.code == http.StatusBadRequest && strings.Contains(strings.ToLower(ce.description), words)
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

// request makes a request through the library and decodes the result. length is the length of the
// request's body if the library does not know it, and otherwise 0.
func (c *client) request(ctx context.Context, method string, into any, length int64, with func(*tgbotapi.BotAPI) (*tgbotapi.APIResponse, error)) error {
	var status int
	var header http.Header
	var begun atomic.Bool
	bot := &tgbotapi.BotAPI{Token: c.token, Client: retry.ClientFunc(func(req *http.Request) (*http.Response, error) {
		req = req.WithContext(ctx)
		chats.WatchBody(req, &begun)
		if length > 0 {
			req.ContentLength = length
		}
		resp, err := c.Do(req)
		if err == nil {
			status, header = resp.StatusCode, resp.Header
			resp.Body = retry.LimitBody(resp.Body, maxAnswer)
		}
		return resp, err
	})}
	bot.SetAPIEndpoint(c.endpoint)
	resp, err := with(bot)
	fault := &callError{method: method, code: status, requestBegun: begun.Load()}
	if err == nil && into != nil {
		err = json.Unmarshal(resp.Result, into)
	}
	if err == nil {
		return nil
	}
	c.fillError(fault, err, header)
	return fault
}

// fillError fills a callError from an error of the library.
func (c *client) fillError(fault *callError, err error, header http.Header) {
	if refusal, ok := errors.AsType[*tgbotapi.Error](err); ok {
		// For an upload the library drops the code, which equals the HTTP status.
		fault.fromTelegram = refusal.Code != 0 || fault.code >= http.StatusBadRequest && refusal.Message != ""
		if refusal.Code != 0 {
			fault.code = refusal.Code
		}
		fault.description = c.redact(refusal.Message)
		fault.retryAfter = time.Duration(refusal.RetryAfter) * time.Second
		fault.movedTo = refusal.MigrateToChatID
	} else {
		fault.err = c.CleanError(err)
		fault.description = fault.err.Error()
	}
	if fault.retryAfter <= 0 && header != nil {
		if n, err := strconv.Atoi(header.Get("Retry-After")); err == nil && n > 0 {
			fault.retryAfter = time.Duration(min(n, 24*60*60)) * time.Second
		}
	}
}

// botID returns the bot's user id, with which its token begins.
func (c *client) botID() string {
	id, _, _ := strings.Cut(c.token, ":")
	return id
}

// redact removes the token from a text, even if it was URL-escaped.
func (c *client) redact(text string) string {
	text = strings.ReplaceAll(text, c.token, "<token>")
	// The colon may have been escaped.
	if _, secret, _ := strings.Cut(c.token, ":"); len(secret) >= minSecret {
		text = strings.ReplaceAll(text, secret, "<token>")
	}
	return text
}
