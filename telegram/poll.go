package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"oneclaw/bridge/chats"
	"oneclaw/internal/rescue"
	"oneclaw/internal/retry"
)

// Times of the poll loop.
const (
	minBackOff = time.Second
	maxBackOff = 60 * time.Second
	// maxAcceptPause bounds the pause before the next poll if the inbox did not accept the updates:
	// Telegram works, and users wait.
	maxAcceptPause = 2 * time.Second
	// defaultPollMargin is how late the response to a poll may be after its timeout.
	defaultPollMargin = 15 * time.Second
	// emptyPause bounds the rate of requests to a server that answers without waiting.
	emptyPause = 500 * time.Millisecond
)

// allowedUpdates are the kinds of updates to ask for.
const allowedUpdates = `["message","edited_message","my_chat_member","callback_query","message_reaction"]`

// Run polls, or receives posted updates, until ctx ends. It returns an error only if the token is
// refused at the start; it waits for the end of network outages and of conflicts with another poller.
func (p *platform) Run(ctx context.Context, in chats.Inbox) error {
	p.health.start()
	defer p.health.stop()
	defer p.api.Close()
	self, err := p.identify(ctx)
	if err != nil || ctx.Err() != nil {
		return err
	}
	p.log.Info("telegram starts", "bot", self.Username, "id", self.ID)
	r := &receiver{
		platform:  p,
		in:        in,
		seenTexts: newSeenTexts(),
		decode:    decoder{self: self, albums: p.albums, forums: p.forums, log: p.log, wantsAmbient: ambientFilter(in), api: p.api},
		slots:     make(chan struct{}, maxDismissing),
		pauses:    retry.New(minBackOff, maxBackOff),
	}
	defer r.tasks.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.tasks.Go(func() {
		_ = rescue.Loop(ctx, r.log, "looking after the polls", func(ctx context.Context) error { r.watch(ctx); return nil }) // watch returns no error
	})
	if p.hook.address != "" {
		r.serveWebhook(ctx)
		return nil
	}
	for ctx.Err() == nil {
		if retry.Wait(ctx, r.pollOnce(ctx)) != nil {
			break
		}
	}
	return nil
}

// identify asks Telegram for the identity of the bot until Telegram answers or ctx ends. It returns an
// error only if Telegram refuses the token.
func (p *platform) identify(ctx context.Context) (user, error) {
	pauses := retry.New(minBackOff, maxBackOff)
	for {
		self, err := p.api.whoAmI(ctx)
		if isTokenError(err) {
			return user{}, err
		}
		if ctx.Err() != nil {
			return self, nil
		}
		p.health.recordPoll(err)
		if err == nil {
			return self, nil
		}
		wait := pauses.Next(retryAfter(err))
		p.log.Warn("not connected yet", "err", err, "wait", wait)
		p.api.RenewConnections()
		if retry.Wait(ctx, wait) != nil {
			return user{}, nil
		}
	}
}

// isTokenError reports whether Telegram itself rejects the token. It answers 401 for a revoked token
// and 404 for one that never existed.
func isTokenError(err error) bool {
	var ce *callError
	return errors.As(err, &ce) && ce.fromTelegram && (ce.code == http.StatusUnauthorized || ce.code == http.StatusNotFound)
}

// dropWebhook removes the webhook, with which polls get no updates, and reports whether there was one.
func (p *platform) dropWebhook(ctx context.Context) (dropped bool, err error) {
	if hook, err := p.api.getWebhook(ctx); err != nil || hook.URL == "" {
		return false, err
	}
	p.log.Warn("removing the webhook of this bot, since updates are polled")
	err = p.api.call(ctx, "deleteWebhook", tgbotapi.Params{"drop_pending_updates": "false"}, nil)
	return err == nil, err
}

func retryAfter(err error) time.Duration {
	if ce, ok := errors.AsType[*callError](err); ok {
		return ce.retryAfter
	}
	return 0
}

// receiver is the state of one Run.
type receiver struct {
	*platform
	decode decoder
	in     chats.Inbox
	offset int64
	pauses *retry.Backoff
	// hasPolled is set once a poll has succeeded or met another poller, or a webhook has been removed.
	// Before that, an active webhook is removed; after that, it must be another program's.
	hasPolled bool
	slots     chan struct{}
	tasks     sync.WaitGroup
	seenTexts seenTexts

	polling sync.Mutex // guards cancel
	cancel  context.CancelCauseFunc
}

// pollOnce polls once, passes on the updates, and returns how long to wait.
func (r *receiver) pollOnce(ctx context.Context) time.Duration {
	begin := time.Now()
	raws, err := r.poll(ctx)
	switch {
	case ctx.Err() != nil, errors.Is(err, errAwake):
		return 0
	case err != nil:
		return r.handlePollError(ctx, err)
	}
	r.health.recordPoll(nil)
	r.hasPolled = true
	if len(raws) == 0 {
		r.pauses.Reset()
		return max(0, emptyPause-time.Since(begin))
	}
	r.decode.commands = *r.commands.Load()
	r.health.beginAccept()
	last, known, err := r.deliver(ctx, &r.decode, raws)
	if ctx.Err() != nil && err != nil {
		return 0
	}
	r.health.endAccept(err)
	if err == nil && !known {
		return r.pauses.Next(0)
	}
	if err != nil {
		wait := min(r.pauses.Next(0), maxAcceptPause)
		r.log.Error("updates not accepted: they stay at telegram", "updates", len(raws), "err", err, "wait", wait)
		return wait
	}
	// Ids count up, but may start again after a week of silence.
	r.offset = last + 1
	r.pauses.Reset()
	return 0
}

// deliver passes the events in updates to the inbox, and returns the greatest update id.
func (r *receiver) deliver(ctx context.Context, d *decoder, raws []json.RawMessage) (last int64, known bool, err error) {
	events, last, known, err := d.decodeBatch(ctx, raws)
	if err != nil || !known {
		return last, known, err
	}
	events = r.seenTexts.dropUnchanged(events)
	if err := r.acceptEvents(ctx, addFirstMentions(events)); err != nil {
		return last, known, err
	}
	r.seenTexts.remember(events)
	return last, known, r.acceptMemberships(ctx, raws)
}

func (r *receiver) poll(ctx context.Context) ([]json.RawMessage, error) {
	ctx, cancelPoll := context.WithCancelCause(ctx)
	defer cancelPoll(nil)
	r.polling.Lock()
	r.cancel = cancelPoll
	r.polling.Unlock()
	timed, cancel := context.WithTimeout(ctx, r.pollTimeout+r.pollMargin)
	defer cancel()
	params := tgbotapi.Params{
		"timeout":         strconv.Itoa(int(r.pollTimeout / time.Second)),
		"limit":           "100",
		"allowed_updates": allowedUpdates,
	}
	if r.offset != 0 {
		params["offset"] = strconv.FormatInt(r.offset, 10)
	}
	var raws []json.RawMessage
	err := r.api.do(timed, "getUpdates", params, &raws)
	if err != nil && context.Cause(ctx) != nil {
		err = context.Cause(ctx)
	}
	return raws, err
}

// handlePollError handles a failed poll and returns how long to wait. While another poller, such as this
// bot's predecessor, is active, the pauses do not grow.
func (r *receiver) handlePollError(ctx context.Context, err error) time.Duration {
	if ce, ok := errors.AsType[*callError](err); ok && ce.fromTelegram && ce.code == http.StatusConflict {
		if active := strings.Contains(ce.description, "webhook is active"); active && !r.hasPolled {
			dropped, err := r.dropWebhook(ctx)
			if r.hasPolled = err == nil; dropped {
				return 0
			}
		} else {
			r.hasPolled = true
		}
		wait := addJitter(r.conflictWait)
		lasts, begins := r.health.recordConflict(err, r.conflictWindow())
		if begins {
			r.log.Warn("another process polls with this token: waiting", "err", err, "wait", wait)
		}
		if lasts >= conflictGrace {
			r.reportConflict(ctx, err)
		}
		return wait
	}
	r.health.recordPoll(err)
	wait := r.pauses.Next(retryAfter(err))
	r.log.Warn("poll failed", "err", err, "wait", wait)
	// A connection that has silently died must not be used for the next poll.
	r.api.RenewConnections()
	return wait
}

// acceptEvents passes events to the inbox in their order, and then answers the dead presses.
func (r *receiver) acceptEvents(ctx context.Context, events []event) error {
	var messages []chats.Message
	flush := func() error {
		if len(messages) == 0 {
			return nil
		}
		err := r.in.Accept(ctx, messages...)
		messages = nil
		return err
	}
	for _, e := range events {
		switch {
		case e.message != nil:
			messages = append(messages, *e.message)
		case e.feedback != nil:
			messages = append(messages, e.feedback...)
		case e.moved != nil:
			if err := flush(); err != nil {
				return err
			}
			if err := r.in.Moved(ctx, e.moved.from, e.moved.to); err != nil {
				return fmt.Errorf("move of chat %s: %w", e.moved.from, err)
			}
		}
	}
	if err := flush(); err != nil {
		return err
	}
	for _, e := range events {
		if e.deadPress != "" {
			r.answerDeadPress(ctx, e.deadPress)
		}
	}
	return nil
}
