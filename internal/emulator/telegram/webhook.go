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

// webhook is the state in getWebhookInfo, and of its deliveries.
type webhook struct {
	URL            string   `json:"url"`
	HasCertificate bool     `json:"has_custom_certificate"`
	Pending        int      `json:"pending_update_count"`
	MaxConnections int64    `json:"max_connections,omitempty"`
	ErrorDate      int64    `json:"last_error_date,omitempty"`
	Error          string   `json:"last_error_message,omitempty"`
	AllowedUpdates []string `json:"allowed_updates,omitempty"`

	secret string
	queues map[string]*hookQueue
	busy   int64
}

// hookQueue is the queue of a chat, or of a user who presses buttons: while its first update is
// being delivered, or waits for a retry, the others wait (WebhookActor.cpp; the ids of queues in
// Client.cpp).
type hookQueue struct {
	flying bool
	failed int
	delay  time.Duration
	due    time.Time
}

// queueOf returns the queue of an update.
func queueOf(id int64, kind string, body json.RawMessage) (chat int64, queue string) {
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

// hookTo replaces polls, or another webhook. An equal one continues unchanged, and one without
// an address is none.
func (q *queue) hookTo(hook *webhook, drop bool, kinds []string) {
	q.allow(kinds)
	if drop {
		q.confirm(q.last + 1)
	}
	if old := q.webhook; hook.URL == "" || old.URL != hook.URL || old.secret != hook.secret || old.MaxConnections != hook.MaxConnections {
		q.webhook = hook
	}
	if hook.URL != "" {
		q.poll.end(conflictSet)
	}
	q.hub.Changed()
	q.post()
}

// info returns the webhook for getWebhookInfo.
func (q *queue) info() webhook {
	w := *q.webhook
	w.Pending, w.AllowedUpdates = len(q.waiting), q.allowed
	return w
}

// post sends due updates to the webhook: the first of each queue, up to its connection limit.
func (q *queue) post() {
	hook := q.webhook
	if hook.URL == "" || q.cfg.Webhooks == nil || q.life.Closed() {
		return
	}
	seen := map[string]bool{}
	for _, u := range q.waiting {
		if hook.busy >= hook.MaxConnections {
			return
		}
		line := hook.queues[u.queue]
		if line == nil {
			line = &hookQueue{delay: q.cfg.WebhookRetry}
			hook.queues[u.queue] = line
		}
		if !seen[u.queue] && !line.flying && !q.cfg.Now().Before(line.due) {
			line.flying = true
			hook.busy++
			fault := q.faults.Fire("webhook", u.chat)
			q.life.Go(func() { q.carry(hook, line, u, fault) })
		}
		seen[u.queue] = true
	}
}

// carry delivers an update, with its fault, and records the result.
func (q *queue) carry(hook *webhook, line *hookQueue, u update, f *Fault) {
	effect := Slow
	if f != nil {
		effect = f.Effect
		q.life.Sleep(context.Background(), max(f.Delay, time.Nanosecond)) // 0 would never end
	}
	var retryAfter time.Duration
	err := errors.New("Webhook connection closed")
	switch effect {
	case CutBefore, Hang:
	case CutAfter:
		_, _ = q.request(hook, u) // its response is lost
	case Duplicate:
		if _, err = q.request(hook, u); err == nil {
			retryAfter, err = q.request(hook, u)
		}
	default:
		retryAfter, err = q.request(hook, u)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.webhook != hook || q.life.Closed() {
		return // the result is no longer wanted
	}
	hook.busy--
	line.flying = false
	if err == nil {
		q.took(u.id)
		delete(hook.queues, u.queue)
		q.hub.Emit(Event{Kind: EventConfirm, Update: u.id}, nil)
		q.post()
		return
	}
	q.putOff(hook, line, retryAfter, err)
}

// took removes a delivered update.
func (q *queue) took(id int64) {
	q.waiting = slices.DeleteFunc(q.waiting, func(other update) bool { return other.id == id })
	q.delivered[id] = true
	q.confirmed = q.last
	if len(q.waiting) > 0 {
		q.confirmed = q.waiting[0].id - 1
	}
	maps.DeleteFunc(q.delivered, func(id int64, _ bool) bool { return id <= q.confirmed })
}

// putOff makes a queue wait: not after the first failure, and then ever longer.
func (q *queue) putOff(hook *webhook, line *hookQueue, retryAfter time.Duration, err error) {
	wait := min(retryAfter, maxRetryAfter)
	if wait == 0 && line.failed > 0 {
		line.delay = min(2*line.delay, maxResend)
		wait = line.delay
	}
	line.failed++
	line.due = q.cfg.Now().Add(wait)
	hook.ErrorDate, hook.Error = q.cfg.Now().Unix(), err.Error()
	q.hub.Changed()
	if wait == 0 {
		q.post()
		return
	}
	time.AfterFunc(wait, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.post()
	})
}

// request makes one request to the webhook, without following redirects.
func (q *queue) request(hook *webhook, u update) (retryAfter time.Duration, err error) {
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
	client := *q.cfg.Webhooks
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
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))                                                  // 0 is none
		return time.Duration(seconds) * time.Second, fmt.Errorf("Wrong response from the webhook: %s", resp.Status) //nolint:staticcheck // the service's own words
	}
	return 0, nil
}
