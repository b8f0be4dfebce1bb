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
}

// kinds is the table, by the kind of the message. A text is a message, a command or, where
// its answer is known already, a notice.
type kinds struct {
	commands                             *commands
	message, command, stop, open, notice kind
	// halt is the row of presses that stop an answer.
	halt   kind
	others map[chats.Kind]*kind
}

func (b *Bridge) fillKinds() {
	turn := kind{Place: lanes.Place{Turn: true, Joins: true}, explained: true, answer: b.turns.Answer, closing: b.gate.Void}
	task := turn
	task.Lane, task.Joins, task.answer, task.closing = "/task", false, b.answerTask, b.closeTask
	command := kind{Place: lanes.Place{Beside: true}, lasting: true, answer: b.commands.run}
	stop, open := command, command
	stop.stops, open.open = true, true
	b.kinds.halt = kind{Place: stop.Place, stops: true, lasting: true, run: b.stops.pressed}
	card := kind{Place: lanes.Place{Lane: "/card"}, lasting: true, open: true}
	refresh, press := card, card
	refresh.run = b.cardStep(b.desk.Refresh)
	press.Beside, press.run = true, b.cardStep(b.desk.Press)
	move := kind{Place: lanes.Place{Lane: "/move", Beside: true, Fixed: true}, lasting: true, open: true, run: b.mover.run}
	undo := command
	undo.answer = func(ctx context.Context, j *jobs.Job) (string, error) { return b.stops.takeBack(ctx, j, "") }
	forget := kind{lasting: true, open: true, answer: b.forgetting.Forget}
	erase := kind{lasting: true, open: true, run: b.carrier.settled(b.forgetting.Erase)}
	eraseTasks := erase
	eraseTasks.Lane = task.Lane
	b.kinds.stop = stop
	b.kinds.message, b.kinds.command, b.kinds.open = turn, command, open
	b.kinds.notice = kind{open: true, explained: true, answer: b.carrier.notice, closing: b.gate.Void}
	b.kinds.others = map[chats.Kind]*kind{
		jobs.KindTask:    &task,
		jobs.KindLoad:    {run: b.attemptLoad},
		jobs.KindAmend:   {Place: lanes.Place{Joins: true}, run: b.carrier.amended},
		jobs.KindMove:    &move,
		jobs.KindCard:    &card,
		jobs.KindRefresh: &refresh,
		jobs.KindExpire:  &refresh, // of a former build: its card is looked at, and shown as it is
		chats.KindPress:  &press,
		jobs.KindPreview: &card,
		jobs.KindUndo:    &undo,
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
	}
	return &t.command
}

func (t *kinds) place(j *jobs.Job) lanes.Place {
	place := t.of(j).Place
	place.Turn = place.Turn && j.Parts == nil && j.Notice == ""
	place.Loose = place.Turn && place.Joins && j.Whole == 0 && (j.Message.Group != "" || j.Message.Cut != chats.CutNowhere)
	return place
}
