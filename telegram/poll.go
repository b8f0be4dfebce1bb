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
	// maxAcceptPause bounds the pauses before updates are passed to the inbox again after an error on
	// our side: Telegram works, and users wait.
	maxAcceptPause = 2 * time.Second
	// defaultPollMargin is how late, after its timeout, a poll may be answered.
	defaultPollMargin = 15 * time.Second
	// emptyPause bounds the rate of requests to a server that answers without waiting.
	emptyPause = 500 * time.Millisecond
)

// allowedUpdates are the kinds of updates to ask for.
const allowedUpdates = `["message","edited_message","my_chat_member","callback_query","message_reaction"]`

// Run polls until ctx ends, or receives posted updates. It returns an error only if the token is
// refused at the start; it waits for the end of network outages and of conflicts with another poller.
func (p *Platform) Run(ctx context.Context, in chats.Inbox) error {
	p.health.start()
	defer p.health.stop()
	defer p.api.Close()
	self, err := p.identify(ctx)
	if err != nil || ctx.Err() != nil {
		return err
	}
	p.log.Info("telegram starts", "bot", self.Username, "id", self.ID)
	r := &receiver{
		Platform: p,
		in:       in,
		editions: newEditions(),
		decode:   decoder{self: self, albums: p.albums, forums: p.forums, log: p.log, listens: listening(in)},
		slots:    make(chan struct{}, maxDismissing),
		pauses:   retry.New(minBackOff, maxBackOff),
	}
	defer r.tasks.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.tasks.Go(func() {
		_ = rescue.Loop(ctx, r.log, "looking after the polls", func(ctx context.Context) error { r.watch(ctx); return nil }) // there is none
	})
	if p.hook.address != "" {
		r.serve(ctx)
		return nil
	}
	for ctx.Err() == nil {
		if retry.Wait(ctx, r.round(ctx)) != nil {
			break
		}
	}
	return nil
}

// identify asks who the bot is.
func (p *Platform) identify(ctx context.Context) (user, error) {
	pauses := retry.New(minBackOff, maxBackOff)
	for {
		self, err := p.api.whoAmI(ctx)
		if wrongToken(err) {
			return user{}, err
		}
		if ctx.Err() != nil {
			return self, nil
		}
		p.health.polled(err)
		if err == nil {
			return self, nil
		}
		wait := pauses.Next(asked(err))
		p.log.Warn("not connected yet", "err", err, "wait", wait)
		p.api.Renew()
		if retry.Wait(ctx, wait) != nil {
			return user{}, nil
		}
	}
}

// wrongToken reports whether Telegram itself does not know the token: it answers 401 for a revoked one
// and 404 for one that never existed.
func wrongToken(err error) bool {
	var ce *callError
	return errors.As(err, &ce) && ce.answered && (ce.code == http.StatusUnauthorized || ce.code == http.StatusNotFound)
}

// dropWebhook removes the webhook, and reports whether there was one: with it, polls get nothing.
func (p *Platform) dropWebhook(ctx context.Context) (dropped bool, err error) {
	if hook, err := p.api.webhook(ctx); err != nil || hook.URL == "" {
		return false, err
	}
	p.log.Warn("a webhook was set for this bot and is removed: updates are polled")
	err = p.api.call(ctx, "deleteWebhook", tgbotapi.Params{"drop_pending_updates": "false"}, nil)
	return err == nil, err
}

func asked(err error) time.Duration {
	if ce, ok := errors.AsType[*callError](err); ok {
		return ce.retryAfter
	}
	return 0
}

// receiver is the state of one Run.
type receiver struct {
	*Platform
	decode decoder
	in     chats.Inbox
	offset int64
	pauses *retry.Pauses
	// begun says that polls have succeeded, so that a later webhook is another program's. An earlier
	// one is removed.
	begun    bool
	slots    chan struct{}
	tasks    sync.WaitGroup
	editions editions

	polling sync.Mutex // guards cancel
	cancel  context.CancelCauseFunc
}

// round polls once, passes on the updates, and returns how long to wait.
func (r *receiver) round(ctx context.Context) time.Duration {
	begin := time.Now()
	raws, err := r.poll(ctx)
	switch {
	case ctx.Err() != nil, errors.Is(err, errAwake):
		return 0
	case err != nil:
		return r.missed(ctx, err)
	}
	r.health.polled(nil)
	r.begun = true
	if len(raws) == 0 {
		r.pauses.Reset()
		return max(0, emptyPause-time.Since(begin))
	}
	r.decode.commands = *r.commands.Load()
	r.health.hands()
	last, known, err := r.give(ctx, &r.decode, raws)
	if ctx.Err() != nil && err != nil {
		return 0
	}
	r.health.accepted(err)
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

// give passes the events of updates to the inbox, and returns the greatest update id.
func (r *receiver) give(ctx context.Context, d *decoder, raws []json.RawMessage) (last int64, known bool, err error) {
	events, last, known, err := d.batch(ctx, raws)
	if err != nil || !known {
		return last, known, err
	}
	events = r.editions.changed(events)
	if err := r.hand(ctx, mentionsAdded(events)); err != nil {
		return last, known, err
	}
	r.editions.keep(events)
	return last, known, nil
}

func (r *receiver) poll(ctx context.Context) ([]json.RawMessage, error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	r.polling.Lock()
	r.cancel = end
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

// missed records a failed poll and returns how long to wait. For another poller, such as this bot's
// predecessor, it waits forever.
func (r *receiver) missed(ctx context.Context, err error) time.Duration {
	if ce, ok := errors.AsType[*callError](err); ok && ce.answered && ce.code == http.StatusConflict {
		if active := strings.Contains(ce.text, "webhook is active"); active && !r.begun {
			dropped, err := r.dropWebhook(ctx)
			if r.begun = err == nil; dropped {
				return 0
			}
		} else {
			r.begun = true
		}
		wait := jittered(r.conflictWait)
		lasts, begins := r.health.conflicted(err, r.calm())
		if begins {
			r.log.Warn("somebody else polls with this token: waiting for the place", "err", err, "wait", wait)
		}
		if lasts >= conflictPatience {
			r.blame(ctx, err)
		}
		return wait
	}
	r.health.polled(err)
	wait := r.pauses.Next(asked(err))
	r.log.Warn("poll without answer", "err", err, "wait", wait)
	// A connection that has silently died must not be used for the next poll.
	r.api.Renew()
	return wait
}

func (r *receiver) hand(ctx context.Context, events []event) error {
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
		if e.dead != "" {
			r.dismiss(ctx, e.dead)
		}
	}
	return nil
}
