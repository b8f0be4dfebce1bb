package bridge

import (
	"context"
	"strings"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
)

// kind is what differs between jobs. The table of kinds is the one place that knows it:
// nobody else asks what kind a job is of.
type kind struct {
	queue.Placement
	// stops: it takes effect before it is queued.
	stops bool
	// lasting: no /clear and no /stop ends it.
	lasting bool
	// open: it is carried out whoever asked for it.
	open bool
	// explained: /why tells what became of it.
	explained bool
	// answer makes the text that is delivered; run carries out a job without one.
	answer func(ctx context.Context, j *queue.Run) (string, error)
	run    func(ctx context.Context, j *queue.Run) error
	// closing, if not nil, is done before the job is closed. It bears repeating.
	closing func(ctx context.Context, j *queue.Run) error
	// failed, if not nil, is done where a job is given up, for those whose work it was.
	failed func(ctx context.Context, j *queue.Run) error
}

// kinds is the table, by the kind of the message. A text is a message, a command or, where
// its answer is known already, a notice.
type kinds struct {
	commands                             *commands
	message, command, stop, open, notice kind
	// firm is the row of commands that nothing ends, clear that of those that begin anew.
	firm, clear kind
	// halt is the row of presses that stop an answer, reply that of messages that answer a
	// question of a tool.
	halt  kind
	reply kind
	// unknown is the row of jobs that a later program wrote.
	unknown kind
	others  map[chats.Kind]*kind
}

func (b *Bridge) fillKinds() {
	turn := kind{Placement: queue.Placement{NeedsSlot: true, Joinable: true}, explained: true, answer: b.turns.Answer, closing: b.gate.Invalidate}
	task := turn
	task.SubQueue, task.Joinable, task.answer, task.closing = "/task", false, b.answerTask, b.closeTask
	firm := kind{Placement: queue.Placement{Barrier: true}, lasting: true, answer: b.commands.run}
	command, clear, stop, open := firm, firm, firm, firm
	command.Yields, clear.Overtakes, stop.Overtakes = true, true, true
	stop.stops, open.open = true, true
	b.kinds.halt = kind{Placement: firm.Placement, stops: true, lasting: true, run: b.stops.pressed}
	preview := kind{Placement: queue.Placement{SubQueue: "/card"}, lasting: true, open: true}
	card, refresh, press := preview, preview, preview
	card.failed = func(ctx context.Context, j *queue.Run) error { return b.desk.SendFailed(ctx, j.Card) }
	refresh.run = b.cardStep(b.desk.Refresh)
	press.Barrier, press.run, press.failed = true, b.cardStep(b.desk.Press), b.desk.PressFailed
	b.kinds.reply = kind{Placement: press.Placement, lasting: true, answer: b.asking.Reply}
	move := kind{Placement: queue.Placement{SubQueue: "/move", Barrier: true, Pinned: true}, lasting: true, open: true, run: b.mover.run, failed: b.mover.failed}
	undo := firm
	undo.answer = func(ctx context.Context, j *queue.Run) (string, error) { return b.stops.takeBack(ctx, j, "") }
	tell := firm
	tell.open, tell.answer = true, b.carrier.notice
	forget := kind{lasting: true, open: true, answer: b.forgetting.Forget}
	erase := kind{lasting: true, open: true, run: b.carrier.settled(b.forgetting.Erase), failed: b.carrier.tellFailed}
	eraseTasks := erase
	eraseTasks.SubQueue = task.SubQueue
	b.kinds.stop = stop
	b.kinds.message, b.kinds.command, b.kinds.open, b.kinds.firm, b.kinds.clear = turn, command, open, firm, clear
	b.kinds.notice = kind{open: true, explained: true, answer: b.carrier.notice, closing: b.gate.Invalidate}
	b.kinds.unknown = kind{Placement: queue.Placement{Unknown: true}, lasting: true}
	b.kinds.others = map[chats.Kind]*kind{
		queue.KindTask:    &task,
		queue.KindLoad:    {run: b.attemptLoad, failed: b.carrier.tellFailed},
		queue.KindAmend:   {Placement: queue.Placement{Joinable: true}, run: b.carrier.amended},
		queue.KindMove:    &move,
		queue.KindCard:    &card,
		queue.KindRefresh: &refresh,
		chats.KindPress:   &press,
		queue.KindPreview: &preview,
		queue.KindUndo:    &undo,
		queue.KindTell:    &tell,
		queue.KindForget:  &forget, queue.KindErase: &erase, queue.KindEraseTasks: &eraseTasks,
	}
}

func (t *kinds) of(j *queue.Job) *kind {
	if k, ok := t.others[j.Message.Kind]; ok {
		if queue.StopToken(j.Message) != "" {
			return &t.halt
		}
		return k
	}
	if kind := j.Message.Kind; kind != chats.KindText && kind != chats.KindEdit {
		return &t.unknown
	}
	if j.Notice != "" {
		return &t.notice
	}
	if j.Answers != "" {
		return &t.reply
	}
	if strings.HasPrefix(strings.TrimSpace(j.Message.Text), "/") {
		return t.slash(j)
	}
	return &t.message
}

// slash returns the row of a text that looks like a command.
func (t *kinds) slash(j *queue.Job) *kind {
	c, _, ok := t.commands.of(j)
	switch {
	case !ok:
		return &t.message
	case c.Open:
		return &t.open
	case c.Name == stopName:
		return &t.stop
	case c.Name == "clear", c.Name == "new":
		return &t.clear
	case c.Name == undoKind:
		return &t.firm
	}
	return &t.command
}

func (t *kinds) place(j *queue.Run) queue.Placement {
	place := t.of(&j.Job).Placement
	place.NeedsSlot = place.NeedsSlot && j.Parts == nil && j.Notice == ""
	place.Bare = place.NeedsSlot && place.Joinable && j.PieceCount == 0 && j.Unstarted && j.Message.Forwards()
	place.Partial = place.NeedsSlot && place.Joinable && j.PieceCount == 0 && (j.Message.Group != "" || j.Message.Cut != chats.CutNowhere)
	return place
}
