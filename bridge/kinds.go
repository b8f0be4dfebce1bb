package bridge

import (
	"context"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/jobs"
	"oneclaw/bridge/lanes"
)

// kind is what differs between jobs. The table of kinds is the one place that knows it:
// nobody else asks what kind a job is of.
type kind struct {
	// lane is a lane of its own beside that of the chat; empty where there is none.
	lane string
	// beside: it waits for no message, and messages wait for it.
	beside bool
	// turn: the agent answers it. press: who pressed waits.
	turn, press bool
	// fixed: it stays where it is when its chat moves.
	fixed bool
	// lasting: no /clear and no /stop ends it.
	lasting bool
	// open: it is carried out whoever asked for it.
	open bool
	// explained: /why tells what became of it.
	explained bool
	// answer makes the text that is delivered; run carries out a job without one.
	answer func(ctx context.Context, j *jobs.Job) (string, error)
	run    func(ctx context.Context, j *jobs.Job) error
	// closing, if not nil, is done before the job is closed. It bears repeating.
	closing func(ctx context.Context, j *jobs.Job) error
}

// kinds is the table, by the kind of the message. A text is a message, a command or, where
// its answer is known already, a notice.
type kinds struct {
	commands                       *commands
	message, command, open, notice kind
	others                         map[chats.Kind]*kind
}

// fillKinds makes the rows.
func (b *Bridge) fillKinds() {
	turn := kind{turn: true, explained: true, answer: b.turns.Answer, closing: b.gate.Void}
	task := turn
	task.lane, task.closing = "/task", b.closeTask
	command := kind{beside: true, lasting: true, answer: b.commands.run}
	open := command
	open.open = true
	card := kind{lane: "/card", lasting: true, open: true}
	refresh, press := card, card
	refresh.run = b.cardStep(b.desk.Refresh)
	press.beside, press.press, press.run = true, true, b.cardStep(b.desk.Press)
	move := kind{lane: "/move", beside: true, fixed: true, lasting: true, open: true, run: b.mover.run}
	b.kinds.message, b.kinds.command, b.kinds.open = turn, command, open
	b.kinds.notice = kind{open: true, explained: true, answer: b.carrier.notice, closing: b.gate.Void}
	b.kinds.others = map[chats.Kind]*kind{
		jobs.KindTask:    &task,
		jobs.KindLoad:    {run: b.attemptLoad},
		jobs.KindMove:    &move,
		jobs.KindCard:    &card,
		jobs.KindRefresh: &refresh,
		jobs.KindExpire:  &refresh, // of a former build: its card is looked at, and shown as it is
		chats.KindPress:  &press,
	}
}

// of returns the row of a job.
func (t *kinds) of(j *jobs.Job) *kind {
	if k, ok := t.others[j.Message.Kind]; ok {
		return k
	}
	if j.Notice != "" {
		return &t.notice
	}
	c, _, ok := t.commands.of(j)
	switch {
	case !ok:
		return &t.message
	case c.Open:
		return &t.open
	}
	return &t.command
}

// place says where a job waits.
func (t *kinds) place(j *jobs.Job) lanes.Place {
	k, m := t.of(j), j.Message
	m.Chat.Thread += k.lane
	return lanes.Place{
		Lane: m.Chat, Beside: k.beside, Fixed: k.fixed,
		Turn:   k.turn && j.Parts == nil && j.Notice == "",
		Member: m.Kind == chats.KindText && !m.Direct,
	}
}
