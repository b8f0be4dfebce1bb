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

// worker runs the jobs of one kind. A worker is an [answerer], a [performer], or neither. If neither,
// its jobs have their parts, or a card, when they are created.
type worker interface{ policy() *jobPolicy }

// jobPolicy says where the jobs of a worker wait, who may cause them, and whether commands end them.
type jobPolicy struct {
	queue.Placement
	// public: the job also runs for users who may not talk to the bot.
	public bool
	// explainable: /why explains how the job was handled.
	explainable bool
	// fromPlatform: platforms deliver the job, so its kind is decided only when a process claims it.
	fromPlatform bool
}

func (d *jobPolicy) policy() *jobPolicy { return d }

// Optional methods of a worker. A job whose method returns an error is retried.
type (
	// answerer returns the text to deliver, or sets a card or the parts of the job instead.
	answerer interface {
		answer(ctx context.Context, j *queue.Run) (string, error)
	}
	// performer runs a job that delivers no answer, and closes it.
	performer interface {
		perform(ctx context.Context, j *queue.Run) error
	}
	// finisher does the final steps before a job is closed. The steps are idempotent.
	finisher interface {
		finish(ctx context.Context, j *queue.Run) error
	}
	// failer handles a job that was given up without an answer.
	failer interface {
		fail(ctx context.Context, j *queue.Run) error
	}
	// stopper ends older jobs. stopNow ends them before its own job is queued, because that may have to
	// wait behind others. stopFound does the same for a job that an earlier run left open, before any
	// open job runs.
	stopper interface {
		stopNow(ctx context.Context, j *queue.Run) error
		stopFound(ctx context.Context, j *queue.Run, open []*queue.Run) error
	}
	// blocker blocks chats while one of its jobs is open.
	blocker interface {
		block(j *queue.Run)
		unblock(j *queue.Run)
	}
	// dataProvider returns the values to decode its jobs into. The default is an [outbox.Delivery].
	dataProvider interface{ newData() (args, work any) }
)

// Kinds of jobs of this package.
const (
	// kindLoad loads a tool group after a press. It waits for its turn like a message, because it
	// changes the conversation.
	kindLoad chats.Kind = "load"
	// kindMove moves a chat to a new id. Its job waits until no turn runs under either id. Until it has
	// ended, no message is answered under either id. It moves waiting messages to the new id.
	kindMove chats.Kind = "move"
	// kindUndo is an /undo by button. In a shared chat, Message.TargetID is the id of the /clear
	// message.
	kindUndo chats.Kind = "undo"
)

// Kinds that texts and presses get when a process claims them; see [workerRegistry.setKind].
const (
	// kindNotice is a message whose answer is known on acceptance, kindReply a message that answers a
	// tool's question.
	kindNotice chats.Kind = "notice"
	kindReply  chats.Kind = "reply"
	// kindCommand is a command, kindPublicCommand a command for all users, kindUndoCommand an /undo,
	// kindClear a command that begins a new session, kindStop a /stop.
	kindCommand       chats.Kind = "command"
	kindPublicCommand chats.Kind = "open-command"
	kindUndoCommand   chats.Kind = "undo-command"
	kindClear         chats.Kind = "clear"
	kindStop          chats.Kind = "stop"
	// kindStopPress is the press of a stop button.
	kindStopPress chats.Kind = "stop-press"
)

// workerRegistry holds the worker of each kind of job.
type workerRegistry struct {
	commands *commandRegistry
	byKind   map[chats.Kind]worker
	// unknown is the worker of jobs that a later version of the program wrote.
	unknown worker

	// The components that run and complete the jobs.
	executor         *executor
	suspender        *suspender
	completer        *completer
	reactions        *outbox.ReactionTracker
	acknowledgeWaits bool // add a reaction to messages that have to wait
}

// newWorkers returns the workers by the kinds of their jobs, and the worker of unknown kinds.
func (b *Bridge) newWorkers() (byKind map[chats.Kind]worker, unknown worker) {
	const tasks = "/task"
	command := func(d jobPolicy) *commandWorker {
		d.Barrier, d.FromUser, d.SurvivesStop = true, true, true
		return &commandWorker{d, b.commands}
	}
	press := jobPolicy{Placement: queue.Placement{SubQueue: "/card", Barrier: true, SurvivesStop: true}, public: true, fromPlatform: true}
	shown := jobPolicy{Placement: queue.Placement{SubQueue: "/card", SurvivesStop: true}, public: true}
	message := jobPolicy{Placement: queue.Placement{NeedsSlot: true, Joinable: true, FromUser: true}, explainable: true, fromPlatform: true}
	task := jobPolicy{Placement: queue.Placement{SubQueue: tasks, NeedsSlot: true}, explainable: true}
	background := jobPolicy{Placement: queue.Placement{SubQueue: backgroundQueue, NeedsSlot: true, Background: true}, explainable: true}
	result := jobPolicy{Placement: queue.Placement{NeedsSlot: true, Joinable: true}, explainable: true}
	unknown = &jobPolicy{Placement: queue.Placement{UnknownKind: true, SurvivesStop: true}}
	return map[chats.Kind]worker{
		chats.KindText:          &messageWorker{message, b.turns, b.gate, b.commands, b.announcer},
		chats.KindEdit:          &editWorker{jobPolicy{fromPlatform: true}, b.editHandler, b.completer}, // while unclaimed
		chats.KindDelete:        &editWorker{jobPolicy{fromPlatform: true}, b.editHandler, b.completer}, // while unclaimed
		kindNotice:              &noticeWorker{jobPolicy{Placement: queue.Placement{FromUser: true}, public: true, explainable: true}, b.newNoticeAnswerer(), b.gate},
		kindReply:               &replyWorker{jobPolicy{Placement: queue.Placement{SubQueue: press.SubQueue, Barrier: true, FromUser: true, SurvivesStop: true}}, b.elicitation},
		kindCommand:             command(jobPolicy{Placement: queue.Placement{Yields: true}}),
		kindPublicCommand:       command(jobPolicy{public: true}),
		kindUndoCommand:         command(jobPolicy{}),
		kindClear:               command(jobPolicy{Placement: queue.Placement{Overtakes: true}}),
		kindStop:                &stopWorker{command(jobPolicy{Placement: queue.Placement{Overtakes: true}}), b.interrupter},
		kindStopPress:           &stopPressWorker{jobPolicy{Placement: queue.Placement{Barrier: true, SurvivesStop: true}}, b.interrupter},
		receipts.KindTask:       &taskWorker{messageWorker{task, b.turns, b.gate, b.commands, b.announcer}, b.cfg.Hooks.TaskStands, b.cfg.Hooks.OnTaskDone, b.reach},
		receipts.KindBackground: &backgroundWorker{messageWorker{background, b.turns, b.gate, b.commands, b.announcer}, b.background, b.scopeResolver},
		receipts.KindResult:     &resultWorker{messageWorker{result, b.turns, b.gate, b.commands, b.announcer}, b.background},
		turn.KindEdited:         &editWorker{jobPolicy{Placement: queue.Placement{Joinable: true}}, b.editHandler, b.completer},
		kindLoad:                b.loader,
		kindMove:                &moveWorker{jobPolicy{Placement: queue.Placement{SubQueue: "/move", Barrier: true, Pinned: true, SurvivesStop: true}, public: true}, b.mover},
		kindUndo:                &undoWorker{jobPolicy{Placement: queue.Placement{Barrier: true, SurvivesStop: true}}, b.interrupter},
		interact.KindCard:       &cardWorker{shownWorker{shown}, b.cards},
		interact.KindRefresh:    &refreshWorker{shownWorker{shown}, b.cards, b.completer},
		chats.KindPress:         &pressWorker{press, b.cards, b.completer},
		outbox.KindPreview:      &shownWorker{shown},
		access.KindTell:         &tellWorker{jobPolicy{Placement: queue.Placement{Barrier: true, SurvivesStop: true}, public: true}, b.newNoticeAnswerer()},
		privacy.KindForget:      &forgetWorker{jobPolicy{Placement: queue.Placement{SubQueue: "/forget", SurvivesStop: true}, public: true}, b.eraser},
	}, unknown
}

// forJob returns the worker of a job.
func (w *workerRegistry) forJob(j *queue.Run) worker {
	return w.forKind(cmp.Or(j.Kind, j.Message.Kind))
}

// forReceipt returns the worker of a job, open or closed, by its receipt.
func (w *workerRegistry) forReceipt(r *receipts.Receipt) worker {
	return w.forKind(cmp.Or(r.Kind, r.Message.Kind))
}

func (w *workerRegistry) forKind(kind chats.Kind) worker {
	if known, ok := w.byKind[kind]; ok {
		return known
	}
	return w.unknown
}

// setKind sets the kind of a job that this process claims. It clears the kind of a job that another
// process will claim.
func (w *workerRegistry) setKind(j *queue.Run) {
	switch m := j.Message; {
	case j.Unclaimed:
		j.Kind = ""
	case m.Kind == chats.KindText:
		_, deep := w.commands.deepQuestion(m)
		j.Kind = w.textKind(m, &outbox.DeliveryOf(j).Answer, deep)
		turn.WorkOf(j).Deep = deep && j.Kind == ""
	case outbox.StopToken(m) != "":
		j.Kind = kindStopPress
	}
}

// isForAll reports whether a text concerns the others in its chat, too: one to the model, or a command that is not its
// sender's own affair.
func (w *workerRegistry) isForAll(j *queue.Run) bool {
	switch c, _, ok := w.commands.parseCommand(j.Message); {
	case j.Kind == kindNotice, j.Kind == kindReply:
		return false
	case j.Kind == "", !ok:
		return true
	default:
		return !c.Personal && !c.Ephemeral
	}
}

// textKind returns the kind of a text, given its answer so far; empty for a message to the model, also
// for one to the strong model.
func (w *workerRegistry) textKind(m chats.Message, a *receipts.Answer, deep bool) chats.Kind {
	switch {
	case a.Notice != "":
		return kindNotice
	case a.RepliesTo != "":
		return kindReply
	case deep, m.Continues, !strings.HasPrefix(strings.TrimSpace(m.Text), "/"):
		return ""
	}
	c, _, ok := w.commands.parseCommand(m)
	switch {
	case !ok:
		return ""
	case c.Public:
		return kindPublicCommand
	case c.Name == stopName:
		return kindStop
	case c.Name == "clear", c.Name == "new":
		return kindClear
	case c.Name == undoKind:
		return kindUndoCommand
	}
	return kindCommand
}

// newData returns new values to decode a job into, by the kind of its message.
func (w *workerRegistry) newData(kind chats.Kind) (args, work any) {
	switch known := w.forKind(kind).(type) {
	case dataProvider:
		return known.newData()
	case *jobPolicy:
		return nil, nil
	}
	return nil, new(outbox.Delivery)
}

// Placement implements [queue.Workers].
func (w *workerRegistry) Placement(j *queue.Run) queue.Placement {
	place := w.forJob(j).policy().Placement
	if place.SubQueue == backgroundQueue {
		place.SubQueue += j.Message.ID // each task has its own
	}
	if place.NeedsSlot {
		d := outbox.DeliveryOf(j)
		place.NeedsSlot = d.Parts == nil && d.Notice == ""
		place.Joinable = place.Joinable && place.NeedsSlot
	}
	awaits := place.NeedsSlot && place.Joinable && j.PieceCount == 0
	place.ForwardOnly = awaits && j.Unstarted && (j.Message.IsForward() || turn.IsQuestionMissing(j))
	place.Partial = awaits && (j.Message.Group != "" || j.Message.Cut != chats.CutNowhere)
	return place
}

var _ queue.Workers = (*workerRegistry)(nil)

// CountPieces implements [queue.Workers].
func (*workerRegistry) CountPieces(some []*queue.Run) int { return turn.CountPieces(some) }

// CanJoin implements [queue.Workers].
func (*workerRegistry) CanJoin(running, waiting *queue.Run) bool {
	return turn.CanJoin(running, waiting)
}

// PendingDecisions implements [queue.Workers].
func (*workerRegistry) PendingDecisions(j *queue.Run) (cards, tools []string) {
	return turn.PendingDecisions(j)
}

// Work implements [queue.Workers].
func (w *workerRegistry) Work(work, ctx context.Context, j *queue.Run) {
	w.executor.execute(work, ctx, j)
}

// OnSuspended implements [queue.Workers].
func (w *workerRegistry) OnSuspended(h *queue.Suspended, next *queue.Run) {
	w.suspender.handleSuspended(h, next)
}

// OnWaiting implements [queue.Workers].
func (w *workerRegistry) OnWaiting(j *queue.Run) {
	if w.acknowledgeWaits && w.Placement(j).FromUser {
		w.reactions.OnWaiting(j)
	}
}

// OnSuperseded implements [queue.Workers].
func (w *workerRegistry) OnSuperseded(some []*queue.Run) {
	w.completer.completeAll(some, receipts.Stopped)
}

// stopFound applies the open stop jobs of an earlier run before any job runs, so that the stopped jobs
// do not begin again.
func (w *workerRegistry) stopFound(ctx context.Context, open []*queue.Run) error {
	for _, j := range open {
		if s, ok := w.forJob(j).(stopper); ok {
			if err := s.stopFound(ctx, j, open); err != nil {
				return err
			}
		}
	}
	return nil
}

// messageWorker answers messages with the model.
type messageWorker struct {
	jobPolicy
	turns     *turn.Runner
	gate      *interact.Gate
	commands  *commandRegistry
	announcer *announcer
}

func (w *messageWorker) newData() (args, work any) { return nil, new(turn.Work) }

func (w *messageWorker) answer(ctx context.Context, j *queue.Run) (string, error) {
	if turn.IsQuestionMissing(j) {
		return w.commands.explainDeep(ctx, j)
	}
	return w.turns.Answer(ctx, j)
}

func (w *messageWorker) finish(ctx context.Context, j *queue.Run) error {
	if err := w.gate.Invalidate(ctx, j); err != nil {
		return err
	}
	return w.announcer.announce(ctx, j, true)
}

// taskWorker answers tasks with the model.
type taskWorker struct {
	messageWorker
	stands func(ctx context.Context, owner, key string, from receipts.Trigger) (bool, error) // nil for always
	onDone func(context.Context, TaskResult) error                                           // nil for nothing
	reach  *reach
}

func (w *taskWorker) newData() (args, work any) { return new(receipts.Task), new(turn.Work) }

// noticeAnswerer answers messages with notices, which were known when the messages were accepted.
type noticeAnswerer struct {
	workers  *workerRegistry
	commands *commandRegistry
	people   *access.Registry
}

// answer returns the notice of a job. If the sender is a stranger, it may ask the owner first.
func (n noticeAnswerer) answer(ctx context.Context, j *queue.Run) (string, error) {
	if turn.WorkOf(j).AskOwner {
		return n.people.AskOwner(ctx, j)
	}
	if n.workers.Placement(j).FromUser {
		outbox.MakeEphemeral(j)
	}
	return n.commands.formatCommands(j.Message.Chat.Platform, outbox.DeliveryOf(j).Notice), nil
}

// noticeWorker answers messages with their notices.
type noticeWorker struct {
	jobPolicy
	noticeAnswerer
	gate *interact.Gate
}

func (w *noticeWorker) finish(ctx context.Context, j *queue.Run) error {
	return w.gate.Invalidate(ctx, j)
}

// tellWorker sends users the notices that the access registry requests.
type tellWorker struct {
	jobPolicy
	noticeAnswerer
}

// replyWorker handles a user's answer to a tool's question.
type replyWorker struct {
	jobPolicy
	elicitation *interact.Elicitation
}

func (w *replyWorker) answer(ctx context.Context, j *queue.Run) (string, error) {
	return w.elicitation.HandleReply(ctx, j)
}

// commandWorker runs commands.
type commandWorker struct {
	jobPolicy
	commands *commandRegistry
}

func (w *commandWorker) answer(ctx context.Context, j *queue.Run) (string, error) {
	return w.commands.run(ctx, j)
}

// stopWorker runs /stop.
type stopWorker struct {
	*commandWorker
	interrupter *interrupter
}

func (w *stopWorker) stopNow(ctx context.Context, j *queue.Run) error {
	_, err := w.interrupter.endOlder(ctx, j)
	return err
}

func (w *stopWorker) stopFound(ctx context.Context, j *queue.Run, open []*queue.Run) error {
	return w.interrupter.endOlderFound(ctx, j, open)
}

// undoWorker runs an /undo by button.
type undoWorker struct {
	jobPolicy
	interrupter *interrupter
}

func (w *undoWorker) answer(ctx context.Context, j *queue.Run) (string, error) {
	return w.interrupter.undo(ctx, j, "")
}

// stopPressWorker handles presses of the stop button below a preview.
type stopPressWorker struct {
	jobPolicy
	interrupter *interrupter
}

func (w *stopPressWorker) perform(ctx context.Context, j *queue.Run) error {
	return w.interrupter.handleStopPress(ctx, j)
}

func (w *stopPressWorker) stopNow(ctx context.Context, j *queue.Run) error {
	return w.interrupter.stopAnswer(ctx, j)
}

func (w *stopPressWorker) stopFound(ctx context.Context, j *queue.Run, open []*queue.Run) error {
	return w.interrupter.stopAnswerFound(ctx, j, open)
}

// editWorker answers edits of messages whose turn ended before the edit could join it.
type editWorker struct {
	jobPolicy
	editHandler *editHandler
	completer   *completer
}

func (w *editWorker) perform(ctx context.Context, j *queue.Run) error {
	if err := w.editHandler.handleMissed(ctx, j.Message); err != nil {
		return err
	}
	return w.completer.complete(j, receipts.Done)
}

// failureReporter reports failed jobs to their chats.
type failureReporter struct {
	queue *queue.Queue
	turns *turn.Runner
	cards *interact.Cards
}

// fail posts a failure notice in the chat of a job without an answer.
func (f failureReporter) fail(ctx context.Context, j *queue.Run) error {
	if ctx.Err() != nil {
		ctx = f.queue.Context()
	}
	text := f.turns.ReportFailure(ctx, j, errGivenUp)
	_, err := f.cards.Post(ctx, "failed/"+j.Key(), j.Message.Chat, interact.Card{Text: text})
	return err
}

// errGivenUp stands for the cause in the notice to the user; the log has the cause.
var errGivenUp = errors.New("bridge: job given up, the cause was logged before")

// moveWorker moves chats.
type moveWorker struct {
	jobPolicy
	*mover
}

// shownWorker delivers messages that the bot sends on its own.
type shownWorker struct{ jobPolicy }

func (w *shownWorker) newData() (args, work any) { return nil, new(outbox.BotMessage) }

// cardWorker delivers cards.
type cardWorker struct {
	shownWorker
	cards *interact.Cards
}

func (w *cardWorker) fail(ctx context.Context, j *queue.Run) error {
	return w.cards.HandleSendFailure(ctx, outbox.DeliveryOf(j).CardToken)
}

// refreshWorker updates the messages of cards to the current version.
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
	jobPolicy
	cards     *interact.Cards
	completer *completer
}

func (w *pressWorker) newData() (args, work any) { return nil, new(interact.PressWork) }

func (w *pressWorker) perform(ctx context.Context, j *queue.Run) error {
	return w.completer.completeAfter(ctx, j, w.cards.HandlePress)
}

func (w *pressWorker) fail(ctx context.Context, j *queue.Run) error {
	return w.cards.HandlePressFailure(ctx, j)
}

// forgetWorker runs /forget for a user.
type forgetWorker struct {
	jobPolicy
	eraser *privacy.Eraser
}

func (w *forgetWorker) newData() (args, work any) { return nil, new(outbox.Erasure) }

func (w *forgetWorker) answer(ctx context.Context, j *queue.Run) (string, error) {
	return w.eraser.Forget(ctx, j)
}

func (w *forgetWorker) finish(ctx context.Context, j *queue.Run) error {
	return w.eraser.Finish(ctx, j)
}
