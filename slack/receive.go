package slack

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/slack-go/slack/socketmode"

	"oneclaw/bridge/chats"
	"oneclaw/internal/rescue"
	"oneclaw/internal/retry"
)

const (
	minBackOff = 50 * time.Millisecond
	maxBackOff = 30 * time.Second
)

// receiver is the state of one Run.
type receiver struct {
	*platform
	in      chats.Inbox
	self    identity
	queues  *workQueues
	running sync.WaitGroup // sockets, upkeep and backfill
}

// Run receives until ctx ends. It returns an error only if a token is refused, the app lacks an essential
// scope, or it is installed for a whole organization. It waits for the end of outages.
func (p *platform) Run(ctx context.Context, in chats.Inbox) error {
	p.health.start()
	defer p.health.stop()
	defer p.api.Close()
	me, err := p.identify(ctx)
	if err != nil || ctx.Err() != nil {
		return err
	}
	p.log.Info("slack starts", "bot", me.name, "user", me.user, "team", me.team)
	p.me.Store(&me)
	p.surface.Start(me.agentView)
	defer p.surface.Stop()
	r := &receiver{platform: p, in: in, self: me, queues: newWorkQueues(p.log)}
	r.loadMarks(ctx)
	ctx, cancel := context.WithCancel(ctx)
	defer r.shutDown(ctx)
	defer r.running.Wait()
	defer cancel()
	r.runLoop(ctx, "the fetching of missed messages", r.fillGaps)
	r.runLoop(ctx, "the upkeep", func(ctx context.Context) { r.runUpkeep(ctx, !p.verifier.enabled()) })
	if !p.verifier.enabled() {
		return r.keepConnected(ctx)
	}
	p.health.handleOpened()
	p.receiver.Store(r)
	defer p.receiver.Store(nil)
	p.progress.RecordConnection(true)
	<-ctx.Done()
	return nil
}

// runLoop runs a function until ctx ends, and again after a panic.
func (r *receiver) runLoop(ctx context.Context, what string, run func(context.Context)) {
	r.running.Go(func() {
		_ = rescue.Loop(ctx, r.log, what, func(ctx context.Context) error { run(ctx); return nil }) // run returns no error
	})
}

// shutDown waits for the intakes that are being accepted, saves the marks, and clears statuses.
func (r *receiver) shutDown(ctx context.Context) {
	r.queues.close()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sweepTimeout)
	defer cancel()
	r.saveMarks(ctx)
	r.clearStatuses(ctx, false)
}

// identify asks Slack for the identity of the bot until Slack answers or ctx ends. It returns an error only
// if Slack refuses the token, the app lacks an essential scope, or it is installed for a whole organization.
func (p *platform) identify(ctx context.Context) (identity, error) {
	pauses := retry.New(minBackOff, maxBackOff)
	for {
		who, err := p.api.whoAmI(ctx)
		if isTokenError(err) || errors.Is(err, errOrgInstall) {
			return identity{}, err
		}
		if err == nil {
			lacks, agentView := readScopes(who.header)
			me := identity{user: who.UserID, bot: who.BotID, name: who.User, team: who.TeamID, enterprise: who.EnterpriseID, agentView: agentView}
			// Without the header nobody knows the scopes.
			me.seesReactions = who.header.Get(scopesHeader) != "" && !slices.ContainsFunc(lacks, func(l missingScope) bool { return l.scope == "reactions:read" })
			return me, checkScopes(lacks, p.log)
		}
		if ctx.Err() != nil {
			return identity{}, nil
		}
		wait := pauses.Next(retryAfter(err))
		p.health.handleConnectError(err)
		p.log.Warn("not connected yet", "err", err, "wait", wait)
		p.api.Close()
		if retry.Wait(ctx, wait) != nil {
			return identity{}, nil
		}
	}
}

// checkScopes logs the missing scopes at the start, before they are needed. It returns an error if the
// app may not post messages.
func checkScopes(lacks []missingScope, log *slog.Logger) error {
	for _, lack := range lacks {
		switch lack.scope {
		case "chat:write":
			return errors.New("slack: the app lacks the scope chat:write: add the scopes of the manifest under OAuth & Permissions and install the app again")
		case agentScope:
			log.Info("the app has no agent view: switch it on under agent in its settings and install it again", "broken", lack.consequence)
		default:
			log.Error("the app lacks a scope: add it under oauth & permissions and install it again", "scope", lack.scope, "broken", lack.consequence)
		}
	}
	return nil
}

func retryAfter(err error) time.Duration {
	if ce, ok := errors.AsType[*callError](err); ok {
		return ce.retryAfter
	}
	return 0
}

// enqueue accepts an envelope in the order of its queue and then acknowledges it on its socket. Slack
// delivers an unacknowledged envelope again.
func (r *receiver) enqueue(ctx context.Context, s *socket, req socketmode.Request) {
	in, err := r.self.decode(req.Type, req.Payload)
	if err != nil {
		r.log.Error("envelope skipped: it does not decode", "envelope", req.EnvelopeID, "type", req.Type, "err", err)
	}
	// The acceptance may outlive the socket: the next delivery finds the message on disk.
	r.queues.enqueue(ctx, in.queueKey(), func() {
		reply, err := r.accept(ctx, in)
		if err != nil {
			r.log.Error("envelope not accepted: slack will deliver it again", "envelope", req.EnvelopeID, "attempt", req.RetryAttempt, "err", err)
			return
		}
		ack := socketmode.Response{EnvelopeID: req.EnvelopeID}
		if reply != "" && req.AcceptsResponsePayload {
			ack.Payload = ephemeralResponse(reply)
		}
		if err := s.write(ack); err != nil {
			r.log.Warn("envelope not acknowledged: slack will deliver it again", "envelope", req.EnvelopeID, "err", r.api.CleanError(err))
		}
	})
}

// ephemeralResponse returns a response that only the user of the command sees.
func ephemeralResponse(text string) map[string]string {
	return map[string]string{"response_type": "ephemeral", "text": escape(text)}
}

// accept passes an intake to the inbox. The reply is for the user of a command.
func (r *receiver) accept(ctx context.Context, in intake) (reply string, err error) {
	var msg *chats.Message
	defer func() {
		if err != nil && ctx.Err() == nil && (msg == nil || msg.Kind != chats.KindEdit && msg.Kind != chats.KindDelete) { // no fetch would find these
			r.recordMissed(in)
		}
	}()
	switch {
	case in.event != nil:
		// A failed look-up must not delay the acknowledgement: Slack would give up soon.
		if msg, err = r.convert(ctx, in.event); err != nil {
			r.log.Warn("message postponed: cannot determine yet whether it is for the bot", "err", err)
			return "", r.postpone(ctx, in.event)
		}
	case in.command != nil:
		msg, reply = r.convertCommand(ctx, in.command)
	case in.press != nil:
		msg = r.convertPress(ctx, in.press)
	case in.agent != nil:
		msg = r.convertAgentEvent(ctx, in.agent)
	case in.joined != nil:
		err = r.acceptJoin(ctx, in.joined)
	case in.view != nil:
		r.views.Put(in.view.User, in.view.Context, viewAge)
	case in.reaction != nil && r.serves(in.reaction.Channel, isDirectID(in.reaction.Channel)):
		msg = r.convertReaction(ctx, in.reaction)
	}
	if err != nil || msg == nil {
		return reply, err
	}
	if err := r.deliver(ctx, msg); err != nil {
		return reply, err
	}
	if !in.isAddedMention(msg) && !r.completesMention(in.event, msg) {
		return reply, nil
	}
	edit := *msg
	edit.Kind = chats.KindEdit
	return reply, r.deliver(ctx, &edit)
}

// recordMissed records that the message of an event could not be accepted, so that it is fetched later.
func (r *receiver) recordMissed(in intake) {
	if in.event != nil {
		r.progress.RecordMissed(parseTS(in.event.subject().TS))
	}
}

// isAddedMention reports whether an edit has added a mention to a reply in a thread. The reply may have
// been for the bot already; then the inbox drops it as known and needs the edit.
func (in intake) isAddedMention(msg *chats.Message) bool {
	return in.event != nil && in.event.Subtype == "message_changed" && msg.Kind == chats.KindText && msg.InThread
}
