package bridge

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge/access"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/privacy"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/turn"
	"oneclaw/internal/wording"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// turnHost gives turns access to the bridge.
type turnHost struct {
	platforms     map[string]chats.Platform
	store         storage.Store
	inserter      *inserter
	scopeResolver *scopeResolver
	people        *access.Registry
	observer      *privacy.Observer
	cards         *interact.Cards
	refusalCard   func(ctx context.Context, scope toolgroups.Scope, failure error) (interact.Card, error) // see [Hooks]
	report        func(ctx context.Context, key, text string) (int, error)                                // see [Hooks]
	now           func() time.Time
	log           *slog.Logger
}

var _ turn.Host = turnHost{}

// Scope implements [turn.Host].
func (r turnHost) Scope(j *queue.Run, log string) (toolgroups.Scope, error) {
	return r.scopeResolver.forTurn(j, log)
}

// PostLine implements [turn.Host].
func (r turnHost) PostLine(ctx context.Context, key string, j *queue.Run, under, line string) error {
	_, err := r.cards.Post(ctx, key, j.Message.Chat, interact.Card{QuotedUser: j.Message.SenderID(), ReplyTo: under, Text: line, KeepCommands: true})
	return err
}

// RefusalAnswer implements [turn.Host]. The answer is the card that [Hooks] makes, or the notice if it
// makes none.
func (r turnHost) RefusalAnswer(ctx context.Context, j *queue.Run, scope toolgroups.Scope, failure error, notice string) (string, error) {
	if turn.TaskOf(j) != nil || r.refusalCard == nil {
		return notice, nil
	}
	card, err := r.refusalCard(ctx, scope, failure)
	if err != nil {
		r.log.Warn("the card about the budget cannot be made", "job", j.Key(), "err", err)
		return notice, nil
	}
	card.Text = outbox.WithHeading(j, card.Text)
	return r.cards.Answer(ctx, j, card)
}

// Report implements [turn.Host]. The text says that administrators were informed only if their message
// is on disk, and it names them only to admitted users.
func (r turnHost) Report(ctx context.Context, j *queue.Run, failure, remedy string) string {
	user := j.Message.SenderID()
	if r.people.Role(user) >= toolgroups.RoleAdmin {
		return remedy
	}
	told := 0
	if r.report != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), queue.WriteTimeout)
		defer cancel()
		var err error
		key := "failure/" + queue.Hash(remedy) + "/" + r.now().UTC().Format("2006-01-02T15")
		if told, err = r.report(ctx, key, failure+" "+remedy); err != nil {
			r.log.Warn("administrators cannot be notified of a failure", "job", j.Key(), "err", err)
		}
	}
	if told == 0 {
		return "The reason is in my operator's log."
	}
	return "I've told " + r.Administrator(user) + "."
}

// NotifyAdmins implements [turn.Host].
func (r turnHost) NotifyAdmins(ctx context.Context, key, text string) error {
	if r.report == nil {
		return nil
	}
	_, err := r.report(ctx, key, text)
	return err
}

// Administrator implements [turn.Host]. Strangers do not get a name.
func (r turnHost) Administrator(user string) string {
	name, known := "", false
	for _, one := range r.people.ListPeople() {
		if one.Role >= toolgroups.RoleOwner {
			name = one.Name
		}
		known = known || one.User == user && one.Role >= toolgroups.RoleUser
	}
	if !known || name == "" {
		return "an administrator"
	}
	return wording.EscapeMarkdown(name)
}

// AmbientMessages implements [turn.Host]. It returns the messages in the chat of a job that were not
// addressed to the bot, since the message with the id after; for tasks and direct chats none.
func (r turnHost) AmbientMessages(ctx context.Context, j *queue.Run, after string) []chats.Quoted {
	m := j.Message
	if m.Direct || m.Kind != chats.KindText || !r.observer.WantsAmbient(m.Chat) {
		return nil
	}
	chat := m.Chat
	if chat.Thread == m.ID {
		chat = chat.WithoutThread() // the message starts its own thread
	}
	list, err := r.observer.Recent(ctx, chat, after, func(user string) string {
		if namer, ok := r.platforms[chat.Platform].(chats.UserNamer); ok {
			return namer.UserName(ctx, user)
		}
		return user
	})
	if err != nil {
		r.log.Warn("ambient messages of a group cannot be read", "job", j.Key(), "err", err)
	}
	return list
}

// turnWatcher passes events of turns to the configured observer and the tracer, and to previews on
// platforms that support them.
type turnWatcher struct {
	platforms       map[string]chats.Platform
	previews        *outbox.PreviewTracker
	previewsEnabled bool // show answers while they are generated
	background      *background
	observe         func(chats.Chat, agent.Event) // nil for none
	tracer          queue.Tracer                  // nil for none
}

var _ turn.Watcher = turnWatcher{}

// Watch implements [turn.Watcher].
func (w turnWatcher) Watch(j *queue.Run) (observe func(agent.Event), withhold func() bool, end func()) {
	told, show, chat := w.observe, func(agent.Event) {}, j.Message.Chat
	withhold, end = func() bool { return true }, func() {}
	if turn.IsBackground(j) {
		show, end = w.background.watch(j)
	} else if _, ok := w.platforms[chat.Platform].(chats.Previewer); ok && w.previewsEnabled && turn.TaskOf(j) == nil { // tasks have no preview
		show, withhold, end = w.startPreview(j)
	} else if told == nil && w.tracer == nil {
		return nil, withhold, end
	}
	observe = func(e agent.Event) {
		if show(e); told != nil {
			told(chat, e)
		}
	}
	if w.tracer != nil {
		observe = w.tracer.WrapObserver(j, observe)
	}
	return observe, withhold, end
}

// startPreview starts a preview. A tool's question can end it, and the user's reply starts another.
func (w turnWatcher) startPreview(j *queue.Run) (observe func(agent.Event), withhold func() bool, end func()) {
	var now atomic.Pointer[outbox.LivePreview]
	begin := func() {
		p := w.previews.Start(j)
		now.Store(&p)
	}
	begin()
	end = func() { now.Load().End() }
	outbox.DeliveryOf(j).ShowPreview = func(on bool) {
		if on {
			begin()
		} else {
			end()
		}
	}
	return func(e agent.Event) { now.Load().Observe(e) }, func() bool { return now.Load().Withhold() }, end
}
