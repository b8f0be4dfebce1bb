package hooks

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/provenance"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/internal/wording"
	"oneclaw/storage"
)

// Path begins the addresses of hooks.
const Path = "/hook/"

const (
	// storeTimeout bounds how long a sender waits until its delivery, which has arrived, is stored.
	storeTimeout = 10 * time.Second
	// maxDrained bounds the part of a too large body that is read and dropped, so that its sender
	// reads the response.
	maxDrained = 16 << 20
	// warnEvery is the least time between equal log lines about a hook.
	warnEvery = time.Minute
)

// Handler serves deliveries, and the pages with secrets, under [Path].
func (h *Hooks) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+Path+"{id}", h.handleDelivery)
	mux.HandleFunc("GET "+Path+"{id}/secret/{token}", h.serveButton)
	mux.HandleFunc("POST "+Path+"{id}/secret/{token}", h.serveSecret)
	return mux
}

// refusedDelivery is the response to a refused delivery.
type refusedDelivery struct {
	status int
	// retryAfter is how long the sender should wait before it tries again; 0 if that is useless.
	retryAfter time.Duration
	text       string
}

func (r *refusedDelivery) Error() string { return r.text }

// handleDelivery handles a delivery, which is acknowledged once it is stored.
func (h *Hooks) handleDelivery(w http.ResponseWriter, r *http.Request) {
	err := h.accept(r)
	if err == nil {
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, "accepted\n") // a sender that has gone posts again
		return
	}
	told, is := errors.AsType[*refusedDelivery](err)
	if !is {
		if r.Context().Err() == nil { // else the sender has gone, or the bot ends
			h.logSeldom("", func() { h.cfg.Logger.Error("deliveries to webhooks cannot be stored", "err", err) })
		}
		told = &refusedDelivery{http.StatusServiceUnavailable, 30 * time.Second, "I cannot store this now. Please post it again."}
	}
	if told.retryAfter > 0 {
		w.Header().Set("Retry-After", fmt.Sprint(int(told.retryAfter.Seconds())))
	}
	if told.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	http.Error(w, told.text, told.status)
}

// findFor returns the hook to which a delivery is posted.
func (h *Hooks) findFor(r *http.Request) (hook, error) {
	ctx, cancel := context.WithTimeout(r.Context(), storeTimeout)
	defer cancel()
	one, err := h.find(ctx, r.PathValue("id"))
	if errors.Is(err, storage.ErrNotFound) {
		return one, &refusedDelivery{status: http.StatusNotFound, text: "There is no such webhook."}
	}
	return one, err
}

func (h *Hooks) accept(r *http.Request) error {
	one, err := h.findFor(r)
	if err != nil {
		return err
	}
	body, err := h.readBody(r)
	if err != nil {
		return err
	}
	secret, err := h.sealer.Open(keyOf(one.ID), one.Secret)
	if err != nil {
		return fmt.Errorf("secret of webhook %s: %w", one.ID, err)
	}
	name, known, err := verify(string(secret), r.Header, body, h.cfg.Now())
	if err != nil {
		h.logSeldom(one.ID, func() {
			h.cfg.Logger.Warn("a delivery to a webhook was turned away", "hook", one.ID, "name", one.Name, "why", err)
		})
		return &refusedDelivery{status: http.StatusUnauthorized, text: asSentence(err)}
	}
	if !utf8.Valid(body) {
		return &refusedDelivery{status: http.StatusUnsupportedMediaType, text: "I read only text, such as JSON, in UTF-8."}
	}
	if one, err = h.findFor(r); err != nil { // a slow body leaves time to remove the hook
		return err
	}
	s, err := h.newSubmission(one, name, known, r.Header, body)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), storeTimeout)
	defer cancel()
	switch err = h.cfg.Submit(ctx, s); {
	case errors.Is(err, bridge.ErrBusy):
		return &refusedDelivery{http.StatusTooManyRequests, time.Minute, "Too many deliveries wait in this chat. Please post it again in a minute."}
	case errors.Is(err, bridge.ErrPaused):
		return &refusedDelivery{http.StatusTooManyRequests, time.Hour, "The deliveries and schedules of this webhook's author are used up for today. Please post it again later."}
	case errors.Is(err, queue.ErrInvalid):
		h.logSeldom("chat of "+one.ID, func() {
			h.cfg.Logger.Error("a webhook's chat cannot be reached", "hook", one.ID, "chat", one.Chat, "err", err)
		})
		return &refusedDelivery{status: http.StatusGone, text: "The chat of this webhook cannot be reached."}
	}
	return err
}

// readBody reads a body of at most maxBody bytes.
func (h *Hooks) readBody(r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, h.cfg.maxBody+1))
	if err != nil {
		return nil, &refusedDelivery{status: http.StatusBadRequest, text: "The body did not arrive completely."}
	}
	if int64(len(body)) > h.cfg.maxBody {
		_, _ = io.CopyN(io.Discard, r.Body, maxDrained) // the rest, so that the sender reads the response
		return nil, &refusedDelivery{
			status: http.StatusRequestEntityTooLarge,
			text:   fmt.Sprintf("This is too large: a webhook accepts at most %d KiB. Nothing was stored.", h.cfg.maxBody>>10),
		}
	}
	return body, nil
}

// logSeldom calls write at most once per [warnEvery] for what the line is about, because any sender can
// cause it.
func (h *Hooks) logSeldom(about string, write func()) {
	if _, told := h.warned.Get(about); told {
		return
	}
	h.warned.Put(about, struct{}{}, warnEvery)
	write()
}

func asSentence(err error) string {
	text := err.Error()
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// keyPrefix begins the keys of deliveries. The ids of the hook and of the delivery follow.
const keyPrefix = "hook."

// hookID returns the id of the hook from the key of a delivery.
func hookID(key string) (string, bool) {
	rest, ok := strings.CutPrefix(key, keyPrefix)
	id, _, two := strings.Cut(rest, ".")
	return id, ok && two
}

// newSubmission returns the task for a delivery.
func (h *Hooks) newSubmission(one hook, name, known string, header http.Header, body []byte) (bridge.Submission, error) {
	chat, err := chats.ParseChat(one.Chat)
	if err != nil {
		return bridge.Submission{}, fmt.Errorf("%w: %w", queue.ErrInvalid, err)
	}
	sum := sha256.Sum256([]byte(known))
	key, note := hex.EncodeToString(sum[:16]), "delivery "+shortLine(name)
	if known == "" {
		key = newID()
	}
	if name == "" {
		note = "a delivery without a name"
	}
	event, media := "", header.Get("Content-Type")
	for _, kind := range []string{"X-Github-Event", "X-Gitlab-Event", "X-Gitea-Event"} {
		if value := header.Get(kind); value != "" {
			event = shortLine(value) + ", "
		}
	}
	mark := rand.Text()[:10] // unknown to the author of the body
	text := fmt.Sprintf("%s\n\n--- received %s: %s%s, %d bytes; data from outside ---\n%s\n--- end of what was received %s ---",
		one.Task, mark, event, shortLine(media), len(body), h.cfg.Redact(formatBody(media, body)), mark)
	return bridge.Submission{
		Key: keyPrefix + one.ID + "." + key, Chat: chat, User: strings.TrimPrefix(one.User, chat.Platform+":"), Direct: one.Direct,
		Title: one.Name, Text: text, Trigger: receipts.Trigger{Hook: one.Name, FilesOwner: filesOwner(one.ID), Note: note, Hosts: provenance.Hosts(one.Task)},
	}, nil
}

// maxPlain bounds a shown header, in characters.
const maxPlain = 80

// shortLine returns a header as one short line, or "no type" if it is empty.
func shortLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	if text = wording.Clip(strings.Join(strings.Fields(text), " "), maxPlain); text == "" {
		return "no type"
	}
	return text
}

// formatBody returns a body for the model: a form as lines, anything else unchanged.
func formatBody(media string, body []byte) string {
	if len(bytes.TrimSpace(body)) == 0 {
		return "(nothing)"
	}
	if kind, _, err := mime.ParseMediaType(media); err != nil || kind != "application/x-www-form-urlencoded" {
		return string(body)
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return string(body)
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(form)) {
		for _, value := range form[name] {
			lines = append(lines, name+": "+strings.ToValidUTF8(value, "�"))
		}
	}
	return strings.Join(lines, "\n")
}
