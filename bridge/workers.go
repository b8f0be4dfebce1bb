package bridge

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"oneclaw/bridge/access"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/privacy"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/bridge/turn"
)

// worker runs the jobs of one kind. The queue only sees its declaration. A worker is an [answerer], a
// [performer], or neither: then its jobs have their parts, or a card, from the beginning.
type worker interface{ declares() *declaration }

// declaration says where the jobs of a worker wait, and what may end them.
type declaration struct {
	queue.Placement
	// lasting: no /clear and no /stop ends it.
	lasting bool
	// open: it also runs for users who may not talk to the bot.
	open bool
	// explained: /why explains it.
	explained bool
	// delivered: platforms deliver it, so its kind is only decided when a process claims it.
	delivered bool
}

func (d *declaration) declares() *declaration { return d }

// Optional methods of a worker. Errors are retried.
type (
	// answerer returns the text to deliver, or puts a card or parts on the job instead.
	answerer interface {
		answer(ctx context.Context, j *queue.Run) (string, error)
	}
	// performer runs a job that delivers nothing, and closes it.
	performer interface {
		perform(ctx context.Context, j *queue.Run) error
	}
	// finisher does the final steps of a job before it is closed. They are idempotent.
	finisher interface {
		finish(ctx context.Context, j *queue.Run) error
	}
	// failer reports that a job was given up.
	failer interface {
		fail(ctx context.Context, j *queue.Run) error
	}
	// stopper ends older jobs. now does that before its own job is queued, whose answer may have to
	// wait behind others; found does it for a job that a former run left open, before anything of that
	// runs.
	stopper interface {
		now(ctx context.Context, j *queue.Run) error
		found(ctx context.Context, j *queue.Run, open []*queue.Run) error
	}
	// blocker blocks chats while a job of it is open.
	blocker interface {
		block(j *queue.Run)
		unblock(j *queue.Run)
	}
	// typed returns the values to decode its jobs into; the default is an [outbox.Delivery].
	typed interface{ types() (args, work any) }
)

// Kinds of jobs of this package.
const (
	// kindLoad loads a tool group after a press. It waits for its turn like a message, because it
	// changes the conversation.
	kindLoad chats.Kind = "load"
	// kindMove moves a chat to a new id. Its job waits until no turn runs at either end; no message is
	// answered there before it is done, and waiting ones move along.
	kindMove chats.Kind = "move"
	// kindUndo is an /undo by button. Message.On is the /clear.
	kindUndo chats.Kind = "undo"
)

// What texts and presses turn out to be; see [workers.decide].
const (
	// kindNotice is a message whose answer was known when it came, kindReply one that answers a tool's
	// question.
	kindNotice chats.Kind = "notice"
	kindReply  chats.Kind = "reply"
	// kindCommand is a command, kindOpenCommand one for all users, kindUndoCommand /undo, which nothing
	// ends, kindClear one that begins a new session, kindStop /stop.
	kindCommand     chats.Kind = "command"
	kindOpenCommand chats.Kind = "open-command"
	kindUndoCommand chats.Kind = "undo-command"
	kindClear       chats.Kind = "clear"
	kindStop        chats.Kind = "stop"
	// kindStopPress is the press of a stop button.
	kindStopPress chats.Kind = "stop-press"
)

// workers are all workers, by the kinds of jobs.
type workers struct {
	commands *commands
	byKind   map[chats.Kind]worker
	// unknown is the worker of jobs that a later version of the program wrote.
	unknown worker

	// What runs them.
	executor     *executor
	suspender    *suspender
	completer    *completer
	reactions    *outbox.Reactions
	acknowledges bool // react to messages that have to wait
}

// kinds returns the workers by the kinds of jobs, and the worker of unknown kinds.
func (b *Bridge) kinds() (byKind map[chats.Kind]worker, unknown worker) {
	const tasks = "/task"
	command := func(d declaration) *commandWorker {
		d.Barrier, d.FromUser, d.lasting = true, true, true
		return &commandWorker{d, b.commands}
	}
	press := declaration{Placement: queue.Placement{SubQueue: "/card", Barrier: true}, lasting: true, open: true, delivered: true}
	shown := declaration{Placement: queue.Placement{SubQueue: "/card"}, lasting: true, open: true}
	message := declaration{Placement: queue.Placement{NeedsSlot: true, Joinable: true, FromUser: true}, explained: true, delivered: true}
	task := declaration{Placement: queue.Placement{SubQueue: tasks, NeedsSlot: true}, explained: true}
	unknown = &declaration{Placement: queue.Placement{Unknown: true}, lasting: true}
	return map[chats.Kind]worker{
		chats.KindText:         &messageWorker{message, b.turns, b.gate},
		chats.KindEdit:         &editWorker{declaration{delivered: true}, b.edits, b.completer}, // until it is claimed
		kindNotice:             &noticeWorker{declaration{Placement: queue.Placement{FromUser: true}, open: true, explained: true}, b.notices(), b.gate},
		kindReply:              &replyWorker{declaration{Placement: queue.Placement{SubQueue: press.SubQueue, Barrier: true, FromUser: true}, lasting: true}, b.elicitation},
		kindCommand:            command(declaration{Placement: queue.Placement{Yields: true}}),
		kindOpenCommand:        command(declaration{open: true}),
		kindUndoCommand:        command(declaration{}),
		kindClear:              command(declaration{Placement: queue.Placement{Overtakes: true}}),
		kindStop:               &stopWorker{command(declaration{Placement: queue.Placement{Overtakes: true}}), b.stops},
		kindStopPress:          &stopPressWorker{declaration{Placement: queue.Placement{Barrier: true}, lasting: true}, b.stops},
		receipts.KindTask:      &taskWorker{messageWorker{task, b.turns, b.gate}, b.cfg.Hooks.TaskDone},
		turn.KindEdited:        &editWorker{declaration{Placement: queue.Placement{Joinable: true}}, b.edits, b.completer},
		kindLoad:               b.loader,
		kindMove:               &moveWorker{declaration{Placement: queue.Placement{SubQueue: "/move", Barrier: true, Pinned: true}, lasting: true, open: true}, b.mover},
		kindUndo:               &undoWorker{declaration{Placement: queue.Placement{Barrier: true}, lasting: true}, b.stops},
		interact.KindCard:      &cardWorker{shownWorker{shown}, b.cards},
		interact.KindRefresh:   &refreshWorker{shownWorker{shown}, b.cards, b.completer},
		chats.KindPress:        &pressWorker{press, b.cards, b.completer},
		outbox.KindPreview:     &shownWorker{shown},
		access.KindTell:        &tellWorker{declaration{Placement: queue.Placement{Barrier: true}, lasting: true, open: true}, b.notices()},
		privacy.KindForget:     &forgetWorker{declaration{lasting: true, open: true}, b.eraser},
		privacy.KindErase:      &eraseWorker{declaration{lasting: true, open: true}, b.failures(), b.eraser, b.completer},
		privacy.KindEraseTasks: &eraseWorker{declaration{Placement: queue.Placement{SubQueue: tasks}, lasting: true, open: true}, b.failures(), b.eraser, b.completer},
	}, unknown
}

// of returns the worker of a job.
func (w *workers) of(j *queue.Run) worker { return w.named(cmp.Or(j.Kind, j.Message.Kind)) }

// ofReceipt returns the worker of a job that may be closed.
func (w *workers) ofReceipt(r *receipts.Receipt) worker {
	return w.named(cmp.Or(r.Kind, r.Message.Kind))
}

func (w *workers) named(kind chats.Kind) worker {
	if known, ok := w.byKind[kind]; ok {
		return known
	}
	return w.unknown
}

// decide sets the kind of a job that this process claims. A job that another process will claim gets
// none.
func (w *workers) decide(j *queue.Run) {
	switch m := j.Message; {
	case j.Unclaimed:
		j.Kind = ""
	case m.Kind == chats.KindText:
		j.Kind = w.text(m, &outbox.Of(j).Answer)
		_, deep := w.commands.deepQuestion(m)
		turn.Of(j).Deep = deep && j.Kind == ""
	case outbox.StopToken(m) != "":
		j.Kind = kindStopPress
	}
}

// text returns the kind of a text with its answer so far; empty for a message to the model.
func (w *workers) text(m chats.Message, a *receipts.Answer) chats.Kind {
	switch {
	case a.Notice != "":
		return kindNotice
	case a.Replies != "":
		return kindReply
	case !strings.HasPrefix(strings.TrimSpace(m.Text), "/"):
		return ""
	}
	c, _, ok := w.commands.named(m)
	_, deep := w.commands.deepQuestion(m)
	switch {
	case !ok, deep:
		return ""
	case c.Open:
		return kindOpenCommand
	case c.Name == stopName:
		return kindStop
	case c.Name == "clear", c.Name == "new":
		return kindClear
	case c.Name == undoKind:
		return kindUndoCommand
	}
	return kindCommand
}

// types returns the values to decode a job into, by the kind of its message.
func (w *workers) types(kind chats.Kind) (args, work any) {
	switch known := w.named(kind).(type) {
	case typed:
		return known.types()
	case *declaration:
		return nil, nil
	}
	return nil, new(outbox.Delivery)
}

// Placement implements [queue.Workers].
func (w *workers) Placement(j *queue.Run) queue.Placement {
	place := w.of(j).declares().Placement
	if place.NeedsSlot {
		d := outbox.Of(j)
		place.NeedsSlot = d.Parts == nil && d.Notice == ""
		place.Joinable = place.Joinable && place.NeedsSlot
	}
	awaits := place.NeedsSlot && place.Joinable && j.PieceCount == 0
	place.ForwardOnly = awaits && j.Unstarted && j.Message.Forwards()
	place.Partial = awaits && (j.Message.Group != "" || j.Message.Cut != chats.CutNowhere)
	return place
}

var _ queue.Workers = (*workers)(nil)

// Pieces implements [queue.Workers].
func (*workers) Pieces(some []*queue.Run) int { return turn.Pieces(some) }

// Accepts implements [queue.Workers].
func (*workers) Accepts(running, waiting *queue.Run) bool { return turn.CanJoin(running, waiting) }

// Decisions implements [queue.Workers].
func (*workers) Decisions(j *queue.Run) (cards, tools []string) { return turn.Decisions(j) }

// Work implements [queue.Workers].
func (w *workers) Work(work, ctx context.Context, j *queue.Run) { w.executor.execute(work, ctx, j) }

// Suspended implements [queue.Workers].
func (w *workers) Suspended(h *queue.Suspended, next *queue.Run) { w.suspender.suspended(h, next) }

// Waits implements [queue.Workers].
func (w *workers) Waits(j *queue.Run) {
	if w.acknowledges && w.Placement(j).FromUser {
		w.reactions.Wait(j)
	}
}

// Superseded implements [queue.Workers].
func (w *workers) Superseded(some []*queue.Run) { w.completer.completeAll(some, receipts.Stopped) }

// stopFound applies each job of a former run that stops others, before anything else runs: what it
// stops must not begin again.
func (w *workers) stopFound(ctx context.Context, open []*queue.Run) error {
	for _, j := range open {
		if s, ok := w.of(j).(stopper); ok {
			if err := s.found(ctx, j, open); err != nil {
				return err
			}
		}
	}
	return nil
}

// messageWorker answers messages with the model.
type messageWorker struct {
	declaration
	turns *turn.Runner
	gate  *interact.Gate
}

func (w *messageWorker) types() (args, work any) { return nil, new(turn.Work) }

func (w *messageWorker) answer(ctx context.Context, j *queue.Run) (string, error) {
	return w.turns.Answer(ctx, j)
}

func (w *messageWorker) finish(ctx context.Context, j *queue.Run) error {
	return w.gate.Invalidate(ctx, j)
}

// taskWorker answers tasks with the model.
type taskWorker struct {
	messageWorker
	done func(context.Context, TaskResult) error // nil for nothing
}

func (w *taskWorker) types() (args, work any) { return new(receipts.Task), new(turn.Work) }

// notices are answers that were known when the messages came.
type notices struct {
	workers  *workers
	commands *commands
	people   *access.Registry
}

// answer returns the notice of a job; the owner is asked first about a stranger.
func (n notices) answer(ctx context.Context, j *queue.Run) (string, error) {
	if turn.Of(j).AskOwner {
		return n.people.AskOwner(ctx, j)
	}
	if n.workers.Placement(j).FromUser {
		outbox.MakeEphemeral(j)
	}
	return n.commands.formatCommands(j.Message.Chat.Platform, outbox.Of(j).Notice), nil
}

// noticeWorker answers messages with their notices.
type noticeWorker struct {
	declaration
	notices
	gate *interact.Gate
}

func (w *noticeWorker) finish(ctx context.Context, j *queue.Run) error {
	return w.gate.Invalidate(ctx, j)
}

// tellWorker sends notices to users.
type tellWorker struct {
	declaration
	notices
}

// replyWorker handles a user's answer to a tool's question.
type replyWorker struct {
	declaration
	asking *interact.Elicitation
}

func (w *replyWorker) answer(ctx context.Context, j *queue.Run) (string, error) {
	return w.asking.Reply(ctx, j)
}

// commandWorker runs commands.
type commandWorker struct {
	declaration
	commands *commands
}

func (w *commandWorker) answer(ctx context.Context, j *queue.Run) (string, error) {
	return w.commands.run(ctx, j)
}

// stopWorker runs /stop.
type stopWorker struct {
	*commandWorker
	stops *stops
}

func (w *stopWorker) now(ctx context.Context, j *queue.Run) error {
	_, err := w.stops.endOlder(ctx, j)
	return err
}

func (w *stopWorker) found(ctx context.Context, j *queue.Run, open []*queue.Run) error {
	return w.stops.endFound(ctx, j, open)
}

// undoWorker runs an /undo by button.
type undoWorker struct {
	declaration
	stops *stops
}

func (w *undoWorker) answer(ctx context.Context, j *queue.Run) (string, error) {
	return w.stops.undo(ctx, j, "")
}

// stopPressWorker handles presses of the stop button below a preview.
type stopPressWorker struct {
	declaration
	stops *stops
}

func (w *stopPressWorker) perform(ctx context.Context, j *queue.Run) error {
	return w.stops.pressed(ctx, j)
}

func (w *stopPressWorker) now(ctx context.Context, j *queue.Run) error { return w.stops.halt(ctx, j) }

func (w *stopPressWorker) found(ctx context.Context, j *queue.Run, open []*queue.Run) error {
	return w.stops.haltFound(ctx, j, open)
}

// editWorker answers edits of messages whose turn was over before the edit could join.
type editWorker struct {
	declaration
	edits     *edits
	completer *completer
}

func (w *editWorker) perform(ctx context.Context, j *queue.Run) error {
	if err := w.edits.tell(ctx, j.Message); err != nil {
		return err
	}
	return w.completer.complete(j, receipts.Done)
}

// failures tells chats that a job has failed.
type failures struct {
	queue *queue.Queue
	turns *turn.Runner
	cards *interact.Cards
}

// fail reports a job without an answer.
func (f failures) fail(ctx context.Context, j *queue.Run) error {
	if ctx.Err() != nil {
		ctx = f.queue.Context()
	}
	text := f.turns.Failed(ctx, j, errGivenUp)
	_, err := f.cards.Post(ctx, "failed/"+j.Key(), j.Message.Chat, interact.Card{Text: text})
	return err
}

// errGivenUp is the error that users are told about; the log has the cause.
var errGivenUp = errors.New("bridge: given up, see the error before")

// moveWorker moves chats.
type moveWorker struct {
	declaration
	*mover
}

// shownWorker delivers messages that the bot sends on its own.
type shownWorker struct{ declaration }

func (w *shownWorker) types() (args, work any) { return nil, new(outbox.BotMessage) }

// cardWorker delivers cards.
type cardWorker struct {
	shownWorker
	cards *interact.Cards
}

func (w *cardWorker) fail(ctx context.Context, j *queue.Run) error {
	return w.cards.SendFailed(ctx, outbox.Of(j).Card)
}

// refreshWorker makes cards show their present version.
type refreshWorker struct {
	shownWorker
	cards     *interact.Cards
	completer *completer
}

func (w *refreshWorker) perform(ctx context.Context, j *queue.Run) error {
	return w.completer.completeAfter(ctx, j, w.cards.Refresh)
}

// pressWorker handles presses of buttons.
type pressWorker struct {
	declaration
	cards     *interact.Cards
	completer *completer
}

func (w *pressWorker) types() (args, work any) { return nil, new(interact.PressWork) }

func (w *pressWorker) perform(ctx context.Context, j *queue.Run) error {
	return w.completer.completeAfter(ctx, j, w.cards.Press)
}

func (w *pressWorker) fail(ctx context.Context, j *queue.Run) error {
	return w.cards.PressFailed(ctx, j)
}

// forgetWorker runs /forget for a user.
type forgetWorker struct {
	declaration
	eraser *privacy.Eraser
}

func (w *forgetWorker) answer(ctx context.Context, j *queue.Run) (string, error) {
	return w.eraser.Forget(ctx, j)
}

// eraseWorker erases a user's messages in one chat.
type eraseWorker struct {
	declaration
	failures
	eraser    *privacy.Eraser
	completer *completer
}

func (w *eraseWorker) perform(ctx context.Context, j *queue.Run) error {
	if err := w.eraser.Erase(ctx, j); err != nil {
		return err
	}
	return w.completer.complete(j, receipts.Done)
}
