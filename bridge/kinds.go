package bridge

import (
	"context"
	"strings"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/jobs"
	"oneclaw/bridge/lanes"
)

// kind is what differs between jobs. The table of kinds is the one place that knows it:
// nobody else asks what kind a job is of.
type kind struct {
	lanes.Place
	// stops: it takes effect before it is queued.
	stops bool
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
	// failed, if not nil, is done where a job is given up, for those whose work it was.
	failed func(ctx context.Context, j *jobs.Job) error
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
	halt   kind
	reply  kind
	others map[chats.Kind]*kind
}

func (b *Bridge) fillKinds() {
	turn := kind{Place: lanes.Place{Turn: true, Joins: true}, explained: true, answer: b.turns.Answer, closing: b.gate.Void}
	task := turn
	task.Lane, task.Joins, task.answer, task.closing = "/task", false, b.answerTask, b.closeTask
	firm := kind{Place: lanes.Place{Beside: true}, lasting: true, answer: b.commands.run}
	command, clear, stop, open := firm, firm, firm, firm
	command.Yields, clear.Overtakes, stop.Overtakes = true, true, true
	stop.stops, open.open = true, true
	b.kinds.halt = kind{Place: firm.Place, stops: true, lasting: true, run: b.stops.pressed}
	preview := kind{Place: lanes.Place{Lane: "/card"}, lasting: true, open: true}
	card, refresh, press := preview, preview, preview
	card.failed = func(ctx context.Context, j *jobs.Job) error { return b.desk.Unshown(ctx, j.Card) }
	refresh.run = b.cardStep(b.desk.Refresh)
	press.Beside, press.run, press.failed = true, b.cardStep(b.desk.Press), b.desk.Trouble
	b.kinds.reply = kind{Place: press.Place, lasting: true, answer: b.asking.Reply}
	move := kind{Place: lanes.Place{Lane: "/move", Beside: true, Fixed: true}, lasting: true, open: true, run: b.mover.run, failed: b.mover.failed}
	undo := firm
	undo.answer = func(ctx context.Context, j *jobs.Job) (string, error) { return b.stops.takeBack(ctx, j, "") }
	tell := firm
	tell.open, tell.answer = true, b.carrier.notice
	forget := kind{lasting: true, open: true, answer: b.forgetting.Forget}
	erase := kind{lasting: true, open: true, run: b.carrier.settled(b.forgetting.Erase), failed: b.carrier.tellFailed}
	eraseTasks := erase
	eraseTasks.Lane = task.Lane
	b.kinds.stop = stop
	b.kinds.message, b.kinds.command, b.kinds.open, b.kinds.firm, b.kinds.clear = turn, command, open, firm, clear
	b.kinds.notice = kind{open: true, explained: true, answer: b.carrier.notice, closing: b.gate.Void}
	b.kinds.others = map[chats.Kind]*kind{
		jobs.KindTask:    &task,
		jobs.KindLoad:    {run: b.attemptLoad, failed: b.carrier.tellFailed},
		jobs.KindAmend:   {Place: lanes.Place{Joins: true}, run: b.carrier.amended},
		jobs.KindMove:    &move,
		jobs.KindCard:    &card,
		jobs.KindRefresh: &refresh,
		jobs.KindExpire:  &refresh, // of a former build: its card is looked at, and shown as it is
		chats.KindPress:  &press,
		jobs.KindPreview: &preview,
		jobs.KindUndo:    &undo,
		jobs.KindTell:    &tell,
		jobs.KindForget:  &forget, jobs.KindErase: &erase, jobs.KindEraseTasks: &eraseTasks,
	}
}

func (t *kinds) of(j *jobs.Job) *kind {
	if k, ok := t.others[j.Message.Kind]; ok {
		if jobs.Stops(j.Message) != "" {
			return &t.halt
		}
		return k
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
func (t *kinds) slash(j *jobs.Job) *kind {
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

func (t *kinds) place(j *jobs.Job) lanes.Place {
	place := t.of(j).Place
	place.Turn = place.Turn && j.Parts == nil && j.Notice == ""
	place.Bare = place.Turn && place.Joins && j.Whole == 0 && j.Fresh && j.Message.Forwards()
	place.Loose = place.Turn && place.Joins && j.Whole == 0 && (j.Message.Group != "" || j.Message.Cut != chats.CutNowhere)
	return place
}
