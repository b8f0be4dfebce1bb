package bridge

import (
	"context"
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

// worker brings the jobs of one kind to their ends. The queue acts on what it declares alone. A worker is
// an [answerer], a [performer], or neither: then its jobs have their parts, or a card, from the beginning.
type worker interface{ declares() *declaration }

// declaration says where the jobs of a worker wait, and what may end them.
type declaration struct {
	queue.Placement
	// stops: it takes effect before it is queued.
	stops bool
	// lasting: no /clear and no /stop ends it.
	lasting bool
	// open: it is carried out also for who may not talk to the bot.
	open bool
	// explained: /why tells what became of it.
	explained bool
}

func (d *declaration) declares() *declaration { return d }

// What a worker can do. An error is tried again.
type (
	// answerer makes the text that is delivered, or a card or parts on the job in its place.
	answerer interface {
		answer(ctx context.Context, j *queue.Run) (string, error)
	}
	// performer carries out a job that has nothing to deliver, and has it closed.
	performer interface {
		perform(ctx context.Context, j *queue.Run) error
	}
	// completer does what belongs to the end of a job before it is closed. That bears repeating.
	completer interface {
		complete(ctx context.Context, j *queue.Run) error
	}
	// failer tells of a job that is given up those whose work it was.
	failer interface {
		fail(ctx context.Context, j *queue.Run) error
	}
	// blocker keeps chats from answering while a job of it is open.
	blocker interface {
		block(j *queue.Run)
		unblock(j *queue.Run)
	}
	// typed makes what the records of its jobs are read into; without it that is an [outbox.Delivery].
	typed interface{ types() (args, work any) }
)

// The kinds of jobs of this package.
const (
	// kindLoad is a tool group that is loaded with a button. It waits for its turn like a message,
	// because it changes the conversation.
	kindLoad chats.Kind = "load"
	// kindMove is the move of a chat to a new id. Its job waits until no turn runs at either end; no
	// message is answered there before it is done, and what waits goes along.
	kindMove chats.Kind = "move"
	// kindUndo is a /undo that is given with a button. Message.On is the /clear.
	kindUndo chats.Kind = "undo"
)

// workers are all there are: by the kind of the message, and for texts by what they are.
type workers struct {
	commands *commands
	byKind   map[chats.Kind]worker
	message  worker
	// notice answers messages whose answer was known when they came, reply those that answer a
	// question of a tool.
	notice, reply worker
	// command runs commands, open those that are for everybody, firm those that nothing ends, clear those
	// that begin anew, stop /stop.
	command, open, firm, clear, stop worker
	// halt takes the presses that stop an answer.
	halt worker
	// unknown is of jobs that a later program wrote.
	unknown worker
}

func newWorkers(b *Bridge) *workers {
	const tasks = "/task"
	command := func(d declaration) worker {
		d.Barrier, d.lasting = true, true
		return &commandWorker{d, b.commands}
	}
	press := declaration{Placement: queue.Placement{SubQueue: "/card", Barrier: true}, lasting: true, open: true}
	shown := declaration{Placement: queue.Placement{SubQueue: "/card"}, lasting: true, open: true}
	messages := messageWorker{declaration{Placement: queue.Placement{NeedsSlot: true, Joinable: true}, explained: true}, b.turns, b.gate}
	task := &taskWorker{messages, b.cfg.Hooks.TaskDone}
	task.SubQueue, task.Joinable = tasks, false
	return &workers{
		commands: b.commands,
		message:  &messages,
		notice:   &noticeWorker{declaration{open: true, explained: true}, b.carrier, b.gate},
		reply:    &replyWorker{declaration{Placement: press.Placement, lasting: true}, b.asking},
		command:  command(declaration{Placement: queue.Placement{Yields: true}}),
		open:     command(declaration{open: true}),
		firm:     command(declaration{}),
		clear:    command(declaration{Placement: queue.Placement{Overtakes: true}}),
		stop:     command(declaration{Placement: queue.Placement{Overtakes: true}, stops: true}),
		halt:     &stopPressWorker{declaration{Placement: queue.Placement{Barrier: true}, stops: true, lasting: true}, b.stops},
		unknown:  &declaration{Placement: queue.Placement{Unknown: true}, lasting: true},
		byKind: map[chats.Kind]worker{
			receipts.KindTask:      task,
			turn.KindEdited:        &editWorker{declaration{Placement: queue.Placement{Joinable: true}}, b.carrier},
			kindLoad:               &loadWorker{declaration{}, b},
			kindMove:               &moveWorker{declaration{Placement: queue.Placement{SubQueue: "/move", Barrier: true, Pinned: true}, lasting: true, open: true}, b.mover},
			kindUndo:               &undoWorker{declaration{Placement: queue.Placement{Barrier: true}, lasting: true}, b.stops},
			interact.KindCard:      &cardWorker{shownWorker{shown}, b.cards},
			interact.KindRefresh:   &refreshWorker{shownWorker{shown}, b.cards, b.carrier},
			chats.KindPress:        &pressWorker{press, b.cards, b.carrier},
			outbox.KindPreview:     &shownWorker{shown},
			access.KindTell:        &tellWorker{declaration{Placement: queue.Placement{Barrier: true}, lasting: true, open: true}, b.carrier},
			privacy.KindForget:     &forgetWorker{declaration{lasting: true, open: true}, b.forgetting},
			privacy.KindErase:      &eraseWorker{declaration{lasting: true, open: true}, b.forgetting, b.carrier},
			privacy.KindEraseTasks: &eraseWorker{declaration{Placement: queue.Placement{SubQueue: tasks}, lasting: true, open: true}, b.forgetting, b.carrier},
		},
	}
}

// of is the worker of a job.
func (w *workers) of(j *queue.Run) worker {
	if known := w.named(j.Message); known != nil {
		return known
	}
	return w.text(j.Message, &outbox.Of(j).Answer)
}

// ofReceipt is the worker of a job that may be closed.
func (w *workers) ofReceipt(r *receipts.Receipt) worker {
	if known := w.named(r.Message); known != nil {
		return known
	}
	return w.text(r.Message, &r.Answer)
}

// named is the worker of a job whose kind alone says what it is; nil for texts.
func (w *workers) named(m chats.Message) worker {
	if known, ok := w.byKind[m.Kind]; ok {
		if outbox.StopToken(m) != "" {
			return w.halt
		}
		return known
	}
	if m.Kind != chats.KindText && m.Kind != chats.KindEdit {
		return w.unknown
	}
	return nil
}

// text is the worker of a text with an answer as far as there is one.
func (w *workers) text(m chats.Message, a *receipts.Answer) worker {
	switch {
	case a.Notice != "":
		return w.notice
	case a.Replies != "":
		return w.reply
	case !strings.HasPrefix(strings.TrimSpace(m.Text), "/"):
		return w.message
	}
	c, _, ok := w.commands.named(m)
	switch {
	case !ok:
		return w.message
	case c.Open:
		return w.open
	case c.Name == stopName:
		return w.stop
	case c.Name == "clear", c.Name == "new":
		return w.clear
	case c.Name == undoKind:
		return w.firm
	}
	return w.command
}

// types makes what the record of a job of a kind is read into.
func (w *workers) types(kind chats.Kind) (args, work any) {
	known := w.named(chats.Message{Kind: kind})
	if known == nil {
		known = w.message
	}
	if known == w.unknown {
		return nil, nil
	}
	if t, ok := known.(typed); ok {
		return t.types()
	}
	return nil, new(outbox.Delivery)
}

// place says where a job waits now.
func (w *workers) place(j *queue.Run) queue.Placement {
	place := w.of(j).declares().Placement
	place.Said = j.Message.Kind == chats.KindText
	if place.NeedsSlot {
		d := outbox.Of(j)
		place.NeedsSlot = d.Parts == nil && d.Notice == ""
	}
	place.Bare = place.NeedsSlot && place.Joinable && j.PieceCount == 0 && j.Unstarted && j.Message.Forwards()
	place.Partial = place.NeedsSlot && place.Joinable && j.PieceCount == 0 && (j.Message.Group != "" || j.Message.Cut != chats.CutNowhere)
	return place
}

// queueWorkers are the workers as the queue knows them.
type queueWorkers struct{ *services }

var _ queue.Workers = queueWorkers{}

// Place implements [queue.Workers].
func (q queueWorkers) Place(j *queue.Run) queue.Placement { return q.workers.place(j) }

// Pieces implements [queue.Workers].
func (queueWorkers) Pieces(some []*queue.Run) int { return turn.Pieces(some) }

// Accepts implements [queue.Workers].
func (queueWorkers) Accepts(running, waiting *queue.Run) bool { return turn.CanJoin(running, waiting) }

// Decisions implements [queue.Workers].
func (queueWorkers) Decisions(j *queue.Run) (cards, tools []string) { return turn.Decisions(j) }

// Work implements [queue.Workers].
func (q queueWorkers) Work(work, ctx context.Context, j *queue.Run) {
	if q.cfg.Sharing.On {
		q.carrier.carryShared(work, ctx, j)
		return
	}
	q.carrier.carry(work, ctx, j)
}

// Suspended implements [queue.Workers].
func (q queueWorkers) Suspended(h *queue.Suspended, next *queue.Run) { q.carrier.holds(h, next) }

// Waits implements [queue.Workers].
func (q queueWorkers) Waits(j *queue.Run) {
	if q.cfg.Turns.Acknowledge {
		q.signs.Wait(j)
	}
}

// Overtaken implements [queue.Workers].
func (q queueWorkers) Overtaken(some []*queue.Run) { q.stops.settleAll(some, receipts.Stopped) }

// messageWorker has the model answer messages.
type messageWorker struct {
	declaration
	turns *turn.Runner
	gate  *interact.Gate
}

func (w *messageWorker) types() (args, work any) { return nil, new(turn.Work) }

func (w *messageWorker) answer(ctx context.Context, j *queue.Run) (string, error) {
	return w.turns.Answer(ctx, j)
}

func (w *messageWorker) complete(ctx context.Context, j *queue.Run) error {
	return w.gate.Invalidate(ctx, j)
}

// taskWorker has it answer tasks.
type taskWorker struct {
	messageWorker
	done func(context.Context, TaskResult) error // nil for nothing
}

func (w *taskWorker) types() (args, work any) { return new(receipts.Task), new(turn.Work) }

// noticeWorker answers what was answered when it came.
type noticeWorker struct {
	declaration
	carrier *carrier
	gate    *interact.Gate
}

func (w *noticeWorker) answer(ctx context.Context, j *queue.Run) (string, error) {
	return w.carrier.notice(ctx, j)
}

func (w *noticeWorker) complete(ctx context.Context, j *queue.Run) error {
	return w.gate.Invalidate(ctx, j)
}

// tellWorker tells users something.
type tellWorker struct {
	declaration
	carrier *carrier
}

func (w *tellWorker) answer(ctx context.Context, j *queue.Run) (string, error) {
	return w.carrier.notice(ctx, j)
}

// replyWorker takes the answer of a user to the question of a tool.
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

// undoWorker runs the /undo of a button.
type undoWorker struct {
	declaration
	stops *stops
}

func (w *undoWorker) answer(ctx context.Context, j *queue.Run) (string, error) {
	return w.stops.takeBack(ctx, j, "")
}

// stopPressWorker answers the presses of the button under a preview.
type stopPressWorker struct {
	declaration
	stops *stops
}

func (w *stopPressWorker) perform(ctx context.Context, j *queue.Run) error {
	return w.stops.pressed(ctx, j)
}

// editWorker answers the edits of messages whose turn was over before it could be told.
type editWorker struct {
	declaration
	carrier *carrier
}

func (w *editWorker) perform(ctx context.Context, j *queue.Run) error {
	return w.carrier.amended(ctx, j)
}

// loadWorker loads tool groups.
type loadWorker struct {
	declaration
	bridge *Bridge
}

func (w *loadWorker) types() (args, work any) { return nil, new(turn.Work) }

func (w *loadWorker) perform(ctx context.Context, j *queue.Run) error {
	return w.bridge.attemptLoad(ctx, j)
}

func (w *loadWorker) fail(ctx context.Context, j *queue.Run) error {
	return w.bridge.carrier.tellFailed(ctx, j)
}

// moveWorker carries out the moves of chats.
type moveWorker struct {
	declaration
	*mover
}

// shownWorker delivers what the bot shows by itself.
type shownWorker struct{ declaration }

func (w *shownWorker) types() (args, work any) { return nil, new(outbox.Own) }

// cardWorker delivers cards.
type cardWorker struct {
	shownWorker
	cards *interact.Cards
}

func (w *cardWorker) fail(ctx context.Context, j *queue.Run) error {
	return w.cards.SendFailed(ctx, outbox.Of(j).Card)
}

// refreshWorker has cards show their present version.
type refreshWorker struct {
	shownWorker
	cards   *interact.Cards
	carrier *carrier
}

func (w *refreshWorker) perform(ctx context.Context, j *queue.Run) error {
	return w.carrier.doneAfter(ctx, j, w.cards.Refresh)
}

// pressWorker carries out the presses of buttons.
type pressWorker struct {
	declaration
	cards   *interact.Cards
	carrier *carrier
}

func (w *pressWorker) perform(ctx context.Context, j *queue.Run) error {
	return w.carrier.doneAfter(ctx, j, w.cards.Press)
}

func (w *pressWorker) fail(ctx context.Context, j *queue.Run) error {
	return w.cards.PressFailed(ctx, j)
}

// forgetWorker begins to forget a user.
type forgetWorker struct {
	declaration
	eraser *privacy.Eraser
}

func (w *forgetWorker) answer(ctx context.Context, j *queue.Run) (string, error) {
	return w.eraser.Forget(ctx, j)
}

// eraseWorker erases what is a user's in one chat.
type eraseWorker struct {
	declaration
	eraser  *privacy.Eraser
	carrier *carrier
}

func (w *eraseWorker) perform(ctx context.Context, j *queue.Run) error {
	if err := w.eraser.Erase(ctx, j); err != nil {
		return err
	}
	return w.carrier.settle(j, receipts.Done)
}

func (w *eraseWorker) fail(ctx context.Context, j *queue.Run) error {
	return w.carrier.tellFailed(ctx, j)
}
