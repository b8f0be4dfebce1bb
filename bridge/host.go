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
	platforms map[string]chats.Platform
	store     storage.Store
	inserter  *inserter
	scopes    *scopes
	people    *access.Registry
	observer  *privacy.Observer
	cards     *interact.Cards
	refused   func(ctx context.Context, scope toolgroups.Scope, failure error) (interact.Card, error) // see [Hooks]
	report    func(ctx context.Context, key, text string) (int, error)                                // see [Hooks]
	now       func() time.Time
	log       *slog.Logger
}

var _ turn.Host = turnHost{}

// Scope implements [turn.Host].
func (r turnHost) Scope(j *queue.Run, log string) (toolgroups.Scope, error) {
	return r.scopes.of(j, log)
}

// PostLine implements [turn.Host].
func (r turnHost) PostLine(ctx context.Context, key string, j *queue.Run, under, line string) error {
	_, err := r.cards.Post(ctx, key, j.Message.Chat, interact.Card{Of: j.Message.By(), ReplyTo: under, Text: line, Exact: true})
	return err
}

// Refused answers a turn for which there is no budget: with a card if [Hooks] makes one, else with the
// notice.
func (r turnHost) Refused(ctx context.Context, j *queue.Run, scope toolgroups.Scope, failure error, notice string) (string, error) {
	if turn.TaskOf(j) != nil || r.refused == nil {
		return notice, nil
	}
	card, err := r.refused(ctx, scope, failure)
	if err != nil {
		r.log.Warn("the card that asks for more budget cannot be made", "job", j.Key(), "err", err)
		return notice, nil
	}
	card.Text = outbox.WithHeading(j, card.Text)
	return r.cards.Answer(ctx, j, card)
}

// Report implements [turn.Host]. The text says that administrators were informed only once that is
// stored, and names them only to admitted users.
func (r turnHost) Report(ctx context.Context, j *queue.Run, failure, remedy string) string {
	user := j.Message.By()
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
			r.log.Warn("administrators were not told of a failure", "job", j.Key(), "err", err)
		}
	}
	if told == 0 {
		return "The reason is in my operator's log."
	}
	return "I've told " + r.Administrator(user) + "."
}

// Administrator implements [turn.Host]. It tells strangers no name.
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
	return wording.Escape(name)
}

// Heard returns what was said in the chat of a job, not addressed to the bot, after a message. Only
// users' messages get it, not tasks.
func (r turnHost) Heard(ctx context.Context, j *queue.Run, after string) []chats.Quoted {
	m := j.Message
	if m.Direct || m.Kind != chats.KindText || !r.observer.WantsAmbient(m.Chat) {
		return nil
	}
	chat := m.Chat
	if chat.Thread == m.ID {
		chat = chat.WithoutThread() // its thread begins with this message
	}
	list, err := r.observer.Recent(ctx, chat, after, func(user string) string {
		if namer, ok := r.platforms[chat.Platform].(chats.UserNamer); ok {
			return namer.UserName(ctx, user)
		}
		return user
	})
	if err != nil {
		r.log.Warn("what was said in a group cannot be shown", "job", j.Key(), "err", err)
	}
	return list
}

// turnWatcher passes events of turns to the configured observer, the tracer, and the previews on
// platforms that have them.
type turnWatcher struct {
	platforms map[string]chats.Platform
	previews  *outbox.Previews
	growing   bool                          // answers are shown while they are made
	observe   func(chats.Chat, agent.Event) // nil for none
	tracer    queue.Tracer                  // nil for none
}

var _ turn.Watcher = turnWatcher{}

// Watch implements [turn.Watcher].
func (w turnWatcher) Watch(j *queue.Run) (observe func(agent.Event), withhold func() bool, end func()) {
	told, show, chat := w.observe, func(agent.Event) {}, j.Message.Chat
	withhold, end = func() bool { return true }, func() {}
	if _, ok := w.platforms[chat.Platform].(chats.Previewer); ok && w.growing && turn.TaskOf(j) == nil { // tasks have no preview
		show, withhold, end = w.showing(j)
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

// showing starts a preview; a question of a tool can end it and the answer start it again.
func (w turnWatcher) showing(j *queue.Run) (observe func(agent.Event), withhold func() bool, end func()) {
	var now atomic.Pointer[outbox.LivePreview]
	begin := func() {
		p := w.previews.Start(j)
		now.Store(&p)
	}
	begin()
	end = func() { now.Load().End() }
	outbox.Of(j).ShowPreview = func(on bool) {
		if on {
			begin()
		} else {
			end()
		}
	}
	return func(e agent.Event) { now.Load().Observe(e) }, func() bool { return now.Load().Withhold() }, end
}
