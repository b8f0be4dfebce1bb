package telegram

import (
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"
	"golang.org/x/time/rate"

	"oneclaw/internal/retry"
)

const (
	// hookPath is the path under the public address to which updates are posted.
	hookPath = "/telegram/updates"
	// secretHeader carries the secret that authenticates Telegram.
	secretHeader = "X-Telegram-Bot-Api-Secret-Token" //nolint:gosec // the name of a header
	// secretPurpose is the purpose that the secret is derived for.
	secretPurpose = "oneclaw telegram webhook v1" //nolint:gosec // no secret
	// hookConnections is how many updates Telegram may post at the same time. It posts those of one
	// chat one after another in any case (WebhookActor.cpp of its server).
	hookConnections = 40
	// hookInterval is the interval at which the webhook is checked.
	hookInterval = time.Minute
	// maxUpdate bounds a posted update, well above the largest legitimate one.
	maxUpdate = 1 << 20
	// acceptTimeout bounds the acceptance of an update. After it, Telegram posts the update again, after
	// retryDelay.
	acceptTimeout = 20 * time.Second
	retryDelay    = time.Second
	// refusedInterval is the interval at which rejected requests are logged.
	refusedInterval = time.Minute
)

// hook is the webhook of a bot.
type hook struct {
	address string // empty if the bot polls
	secret  string

	mu       sync.Mutex
	receiver *receiver // the active Run, if any
	requests map[*http.Request]context.CancelFunc
	running  sync.WaitGroup

	// refused counts the rejected requests that are not logged yet.
	refused  atomic.Int64
	logLimit rate.Sometimes
}

// configure prepares the webhook. Its secret is derived from the token, so that all processes of a bot
// have the same one. The secret does not reveal the token.
func (h *hook) configure(token, public string) error {
	key, err := hkdf.Key(sha256.New, []byte(token), nil, secretPurpose, 32)
	if err != nil {
		return fmt.Errorf("telegram: secret of the webhook: %w", err)
	}
	h.address, h.secret = public+hookPath, base64.RawURLEncoding.EncodeToString(key)
	h.requests = map[*http.Request]context.CancelFunc{}
	h.logLimit.Interval = refusedInterval
	return nil
}

// serveWebhook receives posted updates until ctx ends. The webhook stays set: other processes may
// receive, and Telegram keeps undelivered updates for a day.
func (r *receiver) serveWebhook(ctx context.Context) {
	r.hook.begin(r)
	defer r.hook.end()
	pauses := retry.New(minBackOff, maxBackOff)
	set := false
	var lastError int64
	for ctx.Err() == nil {
		info, err := r.ensureWebhook(ctx, set)
		r.health.recordPoll(err)
		wait := hookInterval
		switch {
		case ctx.Err() != nil:
		case err != nil:
			wait = pauses.Next(retryAfter(err))
			r.log.Warn("cannot check or set the webhook", "err", err, "wait", wait)
			r.api.RenewConnections()
		default:
			set = true
			pauses.Reset()
			if why := info.postError(); why != "" && info.ErrorDate != lastError {
				r.log.Error("telegram could not post updates: look at what stands in front of the bot", "address", r.hook.address, "reason", why, "waiting", info.Pending)
			}
			lastError = info.ErrorDate
		}
		_ = retry.Wait(ctx, wait) // the loop checks ctx
	}
}

// ensureWebhook sets the webhook, unless set says that it was set before and it is still there. Setting
// it again is harmless.
func (r *receiver) ensureWebhook(ctx context.Context, set bool) (info webhookInfo, err error) {
	if set {
		if info, err = r.api.getWebhook(ctx); err != nil || info.URL == r.hook.address {
			return info, err
		}
		r.log.Warn("the webhook was removed and is set again: does another program use this token?")
	}
	err = r.api.call(ctx, "setWebhook", tgbotapi.Params{
		"url": r.hook.address, "secret_token": r.hook.secret, "allowed_updates": allowedUpdates,
		"max_connections": strconv.Itoa(hookConnections),
	}, nil)
	return webhookInfo{URL: r.hook.address}, err
}

func (h *hook) begin(r *receiver) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.receiver = r
}

// end stops accepting updates, and waits for those that are being accepted.
func (h *hook) end() {
	h.mu.Lock()
	h.receiver = nil
	for _, cancel := range h.requests {
		cancel()
	}
	h.mu.Unlock()
	h.running.Wait()
}

// track counts a running request. ctx ends after acceptTimeout, or when the Run ends. The caller calls
// leave when the request is answered. r is nil if no Run is active; then there is nothing to leave.
func (h *hook) track(req *http.Request) (r *receiver, ctx context.Context, leave func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.receiver == nil {
		return nil, nil, nil
	}
	ctx, cancel := context.WithTimeout(req.Context(), acceptTimeout)
	h.requests[req] = cancel
	h.running.Add(1)
	return h.receiver, ctx, func() {
		cancel()
		h.mu.Lock()
		delete(h.requests, req)
		h.mu.Unlock()
		h.running.Done()
	}
}

// Events serves posted updates, if the webhook is enabled. It rejects requests without the secret, and
// answers 200 only once an update is accepted, or if it does not decode. After any other answer Telegram
// posts the update again, and holds back later updates in its chat.
func (p *platform) Events() http.Handler { return http.HandlerFunc(p.serveUpdate) }

func (p *platform) serveUpdate(w http.ResponseWriter, req *http.Request) {
	h := &p.hook
	switch {
	case h.address == "":
		http.NotFound(w, req)
		return
	case req.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "want POST", http.StatusMethodNotAllowed)
		return
	case subtle.ConstantTimeCompare([]byte(req.Header.Get(secretHeader)), []byte(h.secret)) != 1:
		h.refused.Add(1)
		h.logLimit.Do(func() {
			p.log.Warn("requests refused: they are not from telegram", "count", h.refused.Swap(0))
		})
		http.Error(w, "not telegram's", http.StatusUnauthorized)
		return
	}
	raw, status := readUpdate(w, req)
	if status != http.StatusOK {
		http.Error(w, http.StatusText(status), status)
		return
	}
	r, ctx, leave := h.track(req)
	if r == nil {
		unavailable(w, "not running")
		return
	}
	defer leave()
	if err := r.acceptPosted(ctx, raw); errors.Is(err, errNoUpdate) {
		http.Error(w, err.Error(), http.StatusBadRequest)
	} else if err != nil {
		p.log.Error("update not accepted: telegram will post it again", "err", err)
		unavailable(w, "not accepted")
	}
}

// readUpdate returns the body of a request, or the status to refuse it with.
func readUpdate(w http.ResponseWriter, req *http.Request) (json.RawMessage, int) {
	if media, _, err := mime.ParseMediaType(req.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return nil, http.StatusUnsupportedMediaType
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxUpdate))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, http.StatusRequestEntityTooLarge
	case err != nil:
		return nil, http.StatusBadRequest
	}
	return body, http.StatusOK
}

// unavailable asks Telegram to post again soon; without that, it would wait longer each time.
func unavailable(w http.ResponseWriter, why string) {
	w.Header().Set("Retry-After", strconv.Itoa(int(retryDelay/time.Second)))
	http.Error(w, why, http.StatusServiceUnavailable)
}

var errNoUpdate = errors.New("telegram: not an update")

// acceptPosted passes one posted update to the inbox. It returns errNoUpdate if no update id was found.
func (r *receiver) acceptPosted(ctx context.Context, raw json.RawMessage) error {
	decode := r.decode
	decode.commands = *r.commands.Load()
	_, known, err := r.deliver(ctx, &decode, []json.RawMessage{raw})
	if err == nil && !known {
		return errNoUpdate
	}
	if err == nil || ctx.Err() == nil {
		r.health.endAccept(err)
	}
	return err
}
