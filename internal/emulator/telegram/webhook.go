package telegram

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"time"

	"oneclaw/internal/emulator/wire"
)

// Limits of webhooks (core.telegram.org/bots/api#setwebhook; WebhookActor.h).
const (
	defaultConnections = 40
	maxConnections     = 100
	maxSecret          = 256
	maxResend          = time.Minute
	maxRetryAfter      = time.Hour
)

// webhook is what getWebhookInfo tells of one, and how far its deliveries are.
type webhook struct {
	URL            string   `json:"url"`
	HasCertificate bool     `json:"has_custom_certificate"`
	Pending        int      `json:"pending_update_count"`
	MaxConnections int64    `json:"max_connections,omitempty"`
	ErrorDate      int64    `json:"last_error_date,omitempty"`
	Error          string   `json:"last_error_message,omitempty"`
	AllowedUpdates []string `json:"allowed_updates,omitempty"`

	secret string
	lanes  map[string]*hookLane
	busy   int64
}

// hookLane is the queue of a chat, or of who presses buttons: while its first update is on
// its way, or waits to be sent again, the others wait (WebhookActor.cpp; the ids of queues
// in Client.cpp).
type hookLane struct {
	flying bool
	failed int
	delay  time.Duration
	due    time.Time
}

// laneOf names the queue of an update.
func laneOf(id int64, kind string, body json.RawMessage) (chat int64, lane string) {
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

var secretToken = regexp.MustCompile(`^[A-Za-z0-9_-]*$`)

// setWebhook takes updates from polls to an address. The service allows one call a second,
// which the emulator does not ask for.
func setWebhook(_ context.Context, s *Server, p *wire.Params) (any, *apiError) {
	raw := p.Text("url")
	if raw == "" {
		return deleteWebhook(context.Background(), s, p)
	}
	secret := p.Text("secret_token")
	if err := s.checkWebhook(raw, secret); err != nil {
		return nil, err
	}
	most := int64(defaultConnections)
	if p.Text("max_connections") != "" {
		most = min(max(p.Int("max_connections"), 1), maxConnections)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.allow(p)
	if p.Bool("drop_pending_updates") {
		s.confirm(s.last + 1)
	}
	if s.webhook.URL != raw || s.webhook.secret != secret || s.webhook.MaxConnections != most {
		s.webhook = &webhook{URL: raw, secret: secret, MaxConnections: most, lanes: map[string]*hookLane{}}
	}
	if s.poll != nil {
		s.poll.conflict = conflictSet
		s.poll.ring()
	}
	s.hub.Changed()
	s.post()
	return true, nil
}

// checkWebhook refuses what the service does not post to.
func (s *Server) checkWebhook(raw, secret string) *apiError {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || s.cfg.Local == ""):
		return badRequest("bad webhook: An HTTPS URL must be provided for webhook") // WebhookActor.cpp
	case len(secret) > maxSecret:
		return badRequest("secret token is too long") // Client.cpp
	case !secretToken.MatchString(secret):
		return badRequest("secret token contains unallowed characters") // Client.cpp
	case s.cfg.Local != "" || s.cfg.Webhooks != nil:
		return nil
	}
	return checkHost(u)
}

func checkHost(u *url.URL) *apiError {
	switch ip := net.ParseIP(u.Hostname()); {
	case u.Port() != "" && !slices.Contains([]string{"80", "88", "443", "8443"}, u.Port()):
		return badRequest("bad webhook: Webhook can be set up only on ports 80, 88, 443 or 8443") // WebhookActor.cpp
	case ip != nil && (ip.IsPrivate() || ip.IsLoopback() || ip.IsUnspecified()):
		return badRequest("bad webhook: IP address %s is reserved", ip) // WebhookActor.cpp
	}
	return nil
}

func deleteWebhook(_ context.Context, s *Server, p *wire.Params) (any, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.webhook = &webhook{}
	if p.Bool("drop_pending_updates") {
		s.confirm(s.last + 1)
	}
	s.hub.Changed()
	return true, nil
}

func getWebhookInfo(_ context.Context, s *Server, _ *wire.Params) (any, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := *s.webhook
	w.Pending = len(s.updates)
	w.AllowedUpdates = s.allowed
	return w, nil
}

// post sends what is due to the webhook: the first update of each lane, so many at a time
// as it takes. The lock is held.
func (s *Server) post() {
	hook := s.webhook
	if hook.URL == "" || s.cfg.Webhooks == nil || s.life.Closed() {
		return
	}
	seen := map[string]bool{}
	for _, u := range s.updates {
		if hook.busy >= hook.MaxConnections {
			return
		}
		lane := hook.lanes[u.lane]
		if lane == nil {
			lane = &hookLane{delay: s.cfg.WebhookRetry}
			hook.lanes[u.lane] = lane
		}
		if !seen[u.lane] && !lane.flying && !s.cfg.Now().Before(lane.due) {
			lane.flying = true
			hook.busy++
			fault := s.Fire("webhook", u.chat)
			s.life.Go(func() { s.carry(hook, lane, u, fault) })
		}
		seen[u.lane] = true
	}
}

// carry delivers an update, as a fault has it, and notes what came of it.
func (s *Server) carry(hook *webhook, lane *hookLane, u update, f *Fault) {
	effect := Slow
	if f != nil {
		effect = f.Effect
		s.life.Sleep(context.Background(), max(f.Delay, time.Nanosecond)) // 0 would be without end
	}
	var retryAfter time.Duration
	err := errors.New("Webhook connection closed")
	switch effect {
	case CutBefore, Hang:
	case CutAfter:
		_, _ = s.request(hook, u) // its answer is lost
	case Duplicate:
		if _, err = s.request(hook, u); err == nil {
			retryAfter, err = s.request(hook, u)
		}
	default:
		retryAfter, err = s.request(hook, u)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.webhook != hook || s.life.Closed() {
		return // nobody hears its answer any more
	}
	hook.busy--
	lane.flying = false
	if err == nil {
		s.took(u.id)
		delete(hook.lanes, u.lane)
		s.emit(Event{Kind: EventConfirm, Update: u.id}, nil, nil)
		s.post()
		return
	}
	s.putOff(hook, lane, retryAfter, err)
}

// took removes an update for good.
func (s *Server) took(id int64) {
	s.updates = slices.DeleteFunc(s.updates, func(other update) bool { return other.id == id })
	s.delivered[id] = true
	s.confirmed = s.last
	if len(s.updates) > 0 {
		s.confirmed = s.updates[0].id - 1
	}
	maps.DeleteFunc(s.delivered, func(id int64, _ bool) bool { return id <= s.confirmed })
}

// putOff has a lane wait: not after the first failure, and then ever longer.
func (s *Server) putOff(hook *webhook, lane *hookLane, retryAfter time.Duration, err error) {
	wait := min(retryAfter, maxRetryAfter)
	if wait == 0 && lane.failed > 0 {
		lane.delay = min(2*lane.delay, maxResend)
		wait = lane.delay
	}
	lane.failed++
	lane.due = s.cfg.Now().Add(wait)
	hook.ErrorDate, hook.Error = s.cfg.Now().Unix(), err.Error()
	s.hub.Changed()
	if wait == 0 {
		s.post()
		return
	}
	time.AfterFunc(wait, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.post()
	})
}

// request makes one request to the webhook. Redirects are not followed.
func (s *Server) request(hook *webhook, u update) (retryAfter time.Duration, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	answered := make(chan struct{})
	defer close(answered)
	s.life.Go(func() {
		select {
		case <-s.life.Done():
			cancel()
		case <-answered:
		}
	})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, hook.URL, bytes.NewReader(u.body))
	if err != nil {
		return 0, fmt.Errorf("Wrong webhook: %w", err) //nolint:staticcheck // as the service begins its errors
	}
	req.Header.Set("Content-Type", "application/json")
	if hook.secret != "" {
		req.Header.Set("X-Telegram-Bot-Api-Secret-Token", hook.secret)
	}
	client := *s.cfg.Webhooks
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
