package telegram

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// Limits of webhooks (core.telegram.org/bots/api#setwebhook; WebhookActor.h).
const (
	defaultConnections = 40
	maxConnections     = 100
	maxSecret          = 256
	maxResend          = time.Minute
	maxRetryAfter      = time.Hour
)

// webhook is the state that getWebhookInfo returns, and the state of the deliveries.
type webhook struct {
	URL                  string   `json:"url"`
	HasCustomCertificate bool     `json:"has_custom_certificate"`
	PendingUpdateCount   int      `json:"pending_update_count"`
	MaxConnections       int64    `json:"max_connections,omitempty"`
	LastErrorDate        int64    `json:"last_error_date,omitempty"`
	LastErrorMessage     string   `json:"last_error_message,omitempty"`
	AllowedUpdates       []string `json:"allowed_updates,omitempty"`

	secret   string
	queues   map[string]*webhookQueue
	inFlight int64
}

// webhookQueue is the queue of a chat, or of a user who presses buttons. While its first update is being
// delivered, or waits for a retry, the others wait (WebhookActor.cpp; the ids of queues are from
// Client.cpp).
type webhookQueue struct {
	inFlight bool
	failures int
	delay    time.Duration
	retryAt  time.Time
}

// updateTarget returns the chat and the queue of an update.
func updateTarget(id int64, kind string, body json.RawMessage) (chat int64, queue string) {
	var about struct {
		Chat    struct{ ID int64 }
		From    struct{ ID int64 }
		Message struct{ Chat struct{ ID int64 } }
	}
	if json.Unmarshal(body, &about) != nil {
		return 0, strconv.FormatInt(id, 10)
	}
	switch kind {
	case "message", "edited_message":
		return about.Chat.ID, fmt.Sprint("chat ", about.Chat.ID)
	case "callback_query":
		return about.Message.Chat.ID, fmt.Sprint("press ", about.From.ID)
	}
	return about.Chat.ID, fmt.Sprint(kind, " ", about.Chat.ID)
}

// replaceWebhook replaces polling, or another webhook. An equal webhook continues unchanged. A webhook
// without a URL switches to polling.
func (q *queue) replaceWebhook(hook *webhook, drop bool, kinds []string) {
	q.setAllowed(kinds)
	if drop {
		q.confirm(q.lastID + 1)
	}
	if old := q.webhook; hook.URL == "" || old.URL != hook.URL || old.secret != hook.secret || old.MaxConnections != hook.MaxConnections {
		q.webhook = hook
	}
	if hook.URL != "" {
		q.poll.terminate(conflictSet)
	}
	q.hub.Wake()
	q.postDue()
}

// webhookInfo returns the result of getWebhookInfo.
func (q *queue) webhookInfo() webhook {
	w := *q.webhook
	w.PendingUpdateCount, w.AllowedUpdates = len(q.waiting), q.allowed
	return w
}

// postDue posts due updates to the webhook: the first of each queue, up to the limit of connections.
func (q *queue) postDue() {
	hook := q.webhook
	if hook.URL == "" || q.cfg.WebhookClient == nil || q.life.Closed() {
		return
	}
	seen := map[string]bool{}
	for _, u := range q.waiting {
		if hook.inFlight >= hook.MaxConnections {
			return
		}
		line := hook.queues[u.queue]
		if line == nil {
			line = &webhookQueue{delay: q.cfg.WebhookRetryDelay}
			hook.queues[u.queue] = line
		}
		if !seen[u.queue] && !line.inFlight && !q.cfg.Now().Before(line.retryAt) {
			line.inFlight = true
			hook.inFlight++
			fault := q.faults.Fire("webhook", u.chat)
			q.life.Go(func() { q.deliver(hook, line, u, fault) })
		}
		seen[u.queue] = true
	}
}

// deliver delivers an update with its fault, and records the result.
func (q *queue) deliver(hook *webhook, line *webhookQueue, u update, f *Fault) {
	effect := Slow
	if f != nil {
		effect = f.Effect
		q.life.Sleep(context.Background(), max(f.Delay, time.Nanosecond)) // 0 would wait forever
	}
	var retryAfter time.Duration
	err := errors.New("Webhook connection closed")
	switch effect {
	case CutBefore, Hang:
	case CutAfter:
		_, _ = q.postUpdate(hook, u) // its response is lost
	case Duplicate:
		if _, err = q.postUpdate(hook, u); err == nil {
			retryAfter, err = q.postUpdate(hook, u)
		}
	default:
		retryAfter, err = q.postUpdate(hook, u)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.webhook != hook || q.life.Closed() {
		return // the webhook was replaced
	}
	hook.inFlight--
	line.inFlight = false
	if err == nil {
		q.removeDelivered(u.id)
		delete(hook.queues, u.queue)
		q.hub.Emit(event{Kind: eventConfirm, Update: u.id}, nil)
		q.postDue()
		return
	}
	q.postpone(hook, line, retryAfter, err)
}

// removeDelivered removes a delivered update.
func (q *queue) removeDelivered(id int64) {
	q.waiting = slices.DeleteFunc(q.waiting, func(other update) bool { return other.id == id })
	q.delivered[id] = true
	q.confirmed = q.lastID
	if len(q.waiting) > 0 {
		q.confirmed = q.waiting[0].id - 1
	}
	maps.DeleteFunc(q.delivered, func(id int64, _ bool) bool { return id <= q.confirmed })
}

// postpone delays a queue after a failure: for retryAfter if it is set, otherwise not at all the first
// time, and then ever longer.
func (q *queue) postpone(hook *webhook, line *webhookQueue, retryAfter time.Duration, err error) {
	wait := min(retryAfter, maxRetryAfter)
	if wait == 0 && line.failures > 0 {
		line.delay = min(2*line.delay, maxResend)
		wait = line.delay
	}
	line.failures++
	line.retryAt = q.cfg.Now().Add(wait)
	hook.LastErrorDate, hook.LastErrorMessage = q.cfg.Now().Unix(), err.Error()
	q.hub.Wake()
	if wait == 0 {
		q.postDue()
		return
	}
	time.AfterFunc(wait, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.postDue()
	})
}

// postUpdate makes one request to the webhook, without following redirects.
func (q *queue) postUpdate(hook *webhook, u update) (retryAfter time.Duration, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	answered := make(chan struct{})
	defer close(answered)
	q.life.Go(func() {
		select {
		case <-q.life.Done():
			cancel()
		case <-answered:
		}
	})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, hook.URL, bytes.NewReader(u.body))
	if err != nil {
		return 0, fmt.Errorf("Wrong webhook: %w", err) //nolint:staticcheck // the service's own words
	}
	req.Header.Set("Content-Type", "application/json")
	if hook.secret != "" {
		req.Header.Set("X-Telegram-Bot-Api-Secret-Token", hook.secret)
	}
	client := *q.cfg.WebhookClient
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := client.Do(req)
	if err != nil {
		return 0, errors.New("Webhook connection closed")
	}
	_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return 0, errors.New("Webhook connection closed")
	}
	if resp.StatusCode/100 != 2 {
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))                                                  // 0 means no header
		return time.Duration(seconds) * time.Second, fmt.Errorf("Wrong response from the webhook: %s", resp.Status) //nolint:staticcheck // the service's own words
	}
	return 0, nil
}
