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
	// turn: the agent answers it. command: the bridge does. press: who pressed waits.
	turn, command, press bool
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
	message, command, open, notice kind
	others                         map[chats.Kind]kind
}

func (b *Bridge) kindTable() kinds {
	turn := kind{turn: true, explained: true, answer: b.turns.Answer, closing: b.gate.Void}
	command := kind{beside: true, command: true, lasting: true, answer: b.runCommand}
	open := command
	open.open = true
	task := turn
	task.lane, task.closing = "/task", b.closeTask
	card := kind{lane: "/card", lasting: true, open: true}
	refresh := card
	refresh.run = b.cardStep(b.desk.Refresh)
	press := card
	press.beside, press.press, press.run = true, true, b.cardStep(b.desk.Press)
	return kinds{
		message: turn, command: command, open: open,
		notice: kind{open: true, explained: true, answer: b.notice, closing: b.gate.Void},
		others: map[chats.Kind]kind{
			jobs.KindTask:    task,
			jobs.KindLoad:    {run: b.attemptLoad},
			jobs.KindMove:    {lane: "/move", beside: true, lasting: true, open: true, run: b.attemptMove},
			jobs.KindCard:    card,
			jobs.KindRefresh: refresh,
			jobs.KindExpire:  refresh,
			chats.KindPress:  press,
		},
	}
}

// kind returns the row of a job.
func (b *Bridge) kind(j *jobs.Job) *kind {
	if k, ok := b.kinds.others[j.Message.Kind]; ok {
		return &k
	}
	if j.Notice != "" {
		return &b.kinds.notice
	}
	c, _, ok := b.commandOf(j)
	switch {
	case !ok:
		return &b.kinds.message
	case c.Open:
		return &b.kinds.open
	}
	return &b.kinds.command
}

// place says where a job waits.
func (b *Bridge) place(j *jobs.Job) lanes.Place {
	k, m := b.kind(j), j.Message
	m.Chat.Thread += k.lane
	return lanes.Place{
		Lane: m.Chat, Beside: k.beside, Fixed: m.Kind == jobs.KindMove,
		Turn:   k.turn && j.Parts == nil && j.Notice == "",
		Member: m.Kind == chats.KindText && !m.Direct,
	}
}

// laneOf is the lane of a job.
func (b *Bridge) laneOf(j *jobs.Job) *lanes.Lane { return b.lanes.Of(b.place(j).Lane) }
