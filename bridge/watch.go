package bridge

import (
	"sync/atomic"

	"oneclaw/agent"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/turn"
)

// turnWatcher has turns observed: by the observer that the configuration names, and by the previews, where the
// platform shows any.
type turnWatcher struct{ *services }

var _ turn.Watcher = turnWatcher{}

// Watch implements [turn.Watcher].
func (w turnWatcher) Watch(j *queue.Run) (observe func(agent.Event), withhold func() bool, end func()) {
	told, show, chat := w.cfg.Turns.Observe, func(agent.Event) {}, j.Message.Chat
	withhold, end = func() bool { return true }, func() {}
	if _, ok := w.platforms[chat.Platform].(chats.Previewer); ok && w.cfg.Turns.RedactPartial != nil && turn.TaskOf(j) == nil { // no user watches a task
		show, withhold, end = w.showing(j)
	} else if told == nil && w.cfg.Hooks.Trace == nil {
		return nil, withhold, end
	}
	observe = func(e agent.Event) {
		if show(e); told != nil {
			told(chat, e)
		}
	}
	if w.cfg.Hooks.Trace != nil {
		observe = w.cfg.Hooks.Trace.Watch(j, observe)
	}
	return observe, withhold, end
}

// showing is a preview that a question of a tool may end, and the answer to that begin again.
func (w turnWatcher) showing(j *queue.Run) (observe func(agent.Event), withhold func() bool, end func()) {
	var now atomic.Pointer[outbox.Watch]
	begin := func() {
		watch := w.previews.Watch(j)
		now.Store(&watch)
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
