package bridge

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/bridge/turn"
	"oneclaw/internal/retry"
	"oneclaw/internal/wording"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

const (
	// maxBackground bounds the open background tasks of a chat.
	maxBackground = 3
	// backgroundQueue begins the names of the sub-queues of background tasks; each has its own.
	backgroundQueue = "/background/"
	// backgroundCard is the kind of the cards that show background tasks and cancel them.
	backgroundCard = "background"
	// backgroundCardAge is how long the card of a task can be pressed. No task takes as long.
	backgroundCardAge = 7 * 24 * time.Hour
	// maxTaskTitle bounds the title of a task, in characters.
	maxTaskTitle = 80
)

// background starts, shows and cancels background tasks, and makes turns wait for them. Each task has a
// card, which shows its progress. Other jobs and processes read the task's state from the card: a
// cancelled task is marked there, and a turn that waits for the task waits until the card is closed.
type background struct {
	store      storage.Store
	jobs       queue.Store
	queue      *queue.Queue
	inserter   *inserter
	claimer    *claimer
	cards      *interact.Cards
	unattended *unattended
	maxTurns   int           // see [Concurrency.MaxTurns]
	maxRetry   time.Duration // bounds the pauses between attempts at a failed write
	redact     func(text string) string
	now        func() time.Time
	log        *slog.Logger
}

// taskCard is the data of the card of a background task. The card is closed when the task has ended or
// was cancelled, whichever is first.
type taskCard struct {
	// Task is the id of the task.
	Task      string `json:"task"`
	Cancelled bool   `json:"cancelled,omitempty"`
}

// start starts a background task for a call. If the store fails, start tries again until ctx ends, since
// the model could not know whether there is a task now.
func (b *background) start(ctx context.Context, call toolgroups.Call, task toolgroups.BackgroundTask) (toolgroups.BackgroundTask, error) {
	for pauses := retry.New(minRetry, b.maxRetry); ; {
		started, err := b.tryStart(ctx, call, task)
		if _, forModel := errors.AsType[*toolgroups.Error](err); err == nil || forModel {
			return started, err
		}
		b.log.Warn("a background task cannot be started, trying again", "job", call.Message, "err", err)
		if retry.Wait(ctx, pauses.Next(0)) != nil {
			return task, err
		}
	}
}

// tryStart is one attempt of [background.start]. After an attempt whose outcome is unknown, or a crash,
// the same call finds the task that it started.
func (b *background) tryStart(ctx context.Context, call toolgroups.Call, task toolgroups.BackgroundTask) (toolgroups.BackgroundTask, error) {
	switch {
	case call.Unasked:
		return task, toolgroups.Errorf(toolgroups.CodeDenied, "Only a message of a user can start a background task. Do the work here.")
	case b.maxTurns < 2:
		return task, toolgroups.Errorf(toolgroups.CodeDisabled, "Background tasks are switched off here: the setting limits.turns is 1, so that a task would stop the chat. Do the work here.")
	}
	asked, err := b.jobs.Find(ctx, call.Message)
	if err != nil {
		return task, err
	}
	if asked == nil {
		return task, toolgroups.Errorf(toolgroups.CodeExecution, "The message that asks for this task is gone. Do the work here.")
	}
	m := asked.Message
	m = chats.Message{
		Chat: m.Chat, ID: "bg-" + queue.Hash(call.Message, call.ID, string(call.Arguments))[:10], Kind: receipts.KindBackground,
		User: m.User, UserName: m.UserName, Direct: m.Direct, Opener: m.Opener, Text: task.Text, Time: b.now(),
	}
	j := b.inserter.New(m)
	title := wording.OneLine(cmp.Or(task.Title, task.Text), maxTaskTitle)
	j.Args = &receipts.Task{Title: title, Groups: task.Groups, Model: task.Model, Trigger: receipts.Trigger{Outside: call.HoldsOthers}}
	outbox.DeliveryOf(j).Heading = backgroundHeading(title)
	release, err := b.claimer.accepting.Acquire(ctx, m.Chat.String()+backgroundQueue) // one for all tasks, which are counted
	if err != nil {
		return task, fmt.Errorf("start a background task: %w", err)
	}
	defer release()
	known, err := b.jobs.Find(ctx, j.Key())
	if err != nil {
		return task, err
	}
	if open := b.queue.JobsIn(m.Chat, backgroundQueue, false); known == nil && len(open) >= maxBackground {
		return task, toolgroups.OwnErrorf(toolgroups.CodeExecution, "%d background tasks are open in this chat already, which is the limit: %s. Wait for one with %s, or cancel one.",
			len(open), idsOf(open), toolgroups.WaitForTasks)
	}
	if err := b.unattended.insert(ctx, j); errors.Is(err, ErrPaused) {
		return task, toolgroups.Errorf(toolgroups.CodeExecution, "The unattended runs of this user are used up for today. Do the work here; a card lets the user go on.")
	} else if errors.Is(err, storage.ErrInvalid) {
		return task, toolgroups.Errorf(toolgroups.CodeInvalid, "The task is too long. Put long input into a file and name the file.")
	} else if err != nil {
		return task, fmt.Errorf("start a background task: %w", err)
	}
	b.log.Info("background task started", "job", j.Key(), "user", j.Message.SenderID())
	return b.describe(j), nil
}

// backgroundHeading returns the heading of the messages that a task itself sends to its chat. The model made the title.
func backgroundHeading(title string) string {
	return `\[Background\] ` + wording.EscapeMarkdown(wording.Quote(title, maxTaskTitle))
}

// idsOf lists tasks for the model, without their titles, which are words of those who had them started: an error counts
// as the program's own.
func idsOf(open []*queue.Run) string {
	var ids []string
	for _, j := range open {
		ids = append(ids, j.Message.ID)
	}
	return wording.JoinOr(ids, "none")
}

// titleOf returns the title of a background task.
func titleOf(j *queue.Run) string { return turn.TaskOf(j).Title }

// queueOfTask returns the sub-queue that holds a task. Unlike [queue.Queue.ChatOf], it reads nothing that
// the task's worker writes meanwhile.
func queueOfTask(j *queue.Run) chats.Chat {
	chat := j.Message.Chat
	chat.Thread += backgroundQueue + j.Message.ID
	return chat
}

// describe describes an open task.
func (b *background) describe(j *queue.Run) toolgroups.BackgroundTask {
	task := turn.TaskOf(j)
	t := toolgroups.BackgroundTask{
		ID: j.Message.ID, Title: task.Title, Text: j.Message.Text, Groups: task.Groups, Model: task.Model, User: j.Message.SenderID(), Began: j.Message.Time, Open: true, State: "is running",
	}
	switch here := b.queue.Status(queueOfTask(j)); {
	case here.Held != nil:
		t.State = "waits for approval of " + wording.JoinOr(here.Held.Tools, "a call")
	case !here.Running:
		t.State = "waits for its turn"
	}
	return t
}

// open returns the open tasks of a chat.
func (b *background) open(chat chats.Chat) (all []toolgroups.BackgroundTask) {
	for _, j := range b.queue.JobsIn(b.queue.CurrentChat(chat), backgroundQueue, false) {
		all = append(all, b.describe(j))
	}
	return all
}

// findOpen returns an open task of a chat; nil if there is none with the id.
func (b *background) findOpen(chat chats.Chat, id string) *queue.Run {
	all := b.queue.JobsIn(b.queue.CurrentChat(chat), backgroundQueue, false)
	if i := slices.IndexFunc(all, func(j *queue.Run) bool { return j.Message.ID == id }); i >= 0 {
		return all[i]
	}
	return nil
}

// find returns a task of a chat, open or ended within the last week.
func (b *background) find(ctx context.Context, chat chats.Chat, id string) (t toolgroups.BackgroundTask, known bool, err error) {
	if j := b.findOpen(chat, id); j != nil {
		return b.describe(j), true, nil
	}
	if strings.ContainsAny(id, "/: \n") {
		return t, false, nil
	}
	r, err := b.jobs.Find(ctx, queue.KeyOf(chats.Message{Chat: chat, ID: id, Kind: receipts.KindBackground}))
	if r == nil || r.Task == nil || err != nil {
		return t, false, err
	}
	return toolgroups.BackgroundTask{ID: id, Title: r.Task.Title, User: r.Message.SenderID(), Began: r.Message.Time, State: endOf(r)}, true, nil
}

// endOf describes in words how a task ended.
func endOf(r *receipts.Receipt) string {
	switch {
	case r.Closed.IsZero():
		return "is just ending"
	case r.State == receipts.Stopped, r.State == receipts.Cleared, r.State == receipts.Revoked:
		return "was cancelled"
	case r.Turn.Refused:
		return "had no budget"
	case r.Incident != "":
		return "failed, incident " + r.Incident
	}
	return "is done"
}

// postCard posts the card of a task unless that was done before, and returns its token. On a
// platform without buttons there is no card, and the token is empty.
func (b *background) postCard(ctx context.Context, j *queue.Run) (string, error) {
	data, err := json.Marshal(taskCard{Task: j.Message.ID})
	if err != nil {
		return "", fmt.Errorf("encode the card of a background task: %w", err)
	}
	token, err := b.cards.Post(ctx, backgroundCardKey(j.Message.ID), j.Origin(), interact.Card{
		Kind: backgroundCard, KeepCommands: true, QuotedUser: j.Message.SenderID(), Text: taskLine(j, ""), Data: data, Expires: b.now().Add(backgroundCardAge),
		Choices: [][]interact.Choice{{{Label: "Cancel", Value: j.Message.ID, Style: chats.StyleDanger}}},
	})
	if errors.Is(err, interact.ErrNoButtons) {
		return "", nil
	}
	return token, err
}

func backgroundCardKey(task string) string { return "background/" + task }

// close closes a card, and returns the state of its task.
func (b *background) close(ctx context.Context, token string, result interact.Result) (state taskCard, err error) {
	kept, err := b.cards.Close(ctx, token, result)
	if kept == nil || err != nil {
		return state, err
	}
	return decodeTaskCard(kept)
}

// ensureCard posts the card of a task unless that was done before, and returns its token, its data and whether it is
// open. Without a card, open is true.
func (b *background) ensureCard(ctx context.Context, j *queue.Run) (token string, state taskCard, open bool, err error) {
	if token, err = b.postCard(ctx, j); err != nil || token == "" {
		return token, state, true, err
	}
	kept, err := b.cards.Get(ctx, token)
	if kept == nil || err != nil {
		return token, state, false, err
	}
	state, err = decodeTaskCard(kept)
	return token, state, kept.IsOpen(), err
}

func decodeTaskCard(kept *interact.StoredCard) (state taskCard, err error) {
	if len(kept.Data) == 0 {
		return state, nil // a list of tasks
	}
	if err := json.Unmarshal(kept.Data, &state); err != nil {
		return state, fmt.Errorf("decode the card of a background task: %w", err)
	}
	return state, nil
}

// quotedTitle returns a title, which a model has worded, in a sentence of the program.
func quotedTitle(title string) string {
	return wording.EscapeRevealed(wording.Quote(title, maxTaskTitle))
}

// taskLine returns the line about a running task. Words of others may have asked for what it does: then its title does
// not stand for that alone.
func taskLine(j *queue.Run, progress string) string {
	line := "⏳ **" + quotedTitle(titleOf(j)) + "** – " + cmp.Or(wording.EscapeRevealed(progress), "started in the background.")
	if turn.TaskOf(j).Outside {
		line += "\n\nIt is told: " + interact.ShowTask(j)
	}
	return line
}

// endLine returns the line about a task that has ended.
func (b *background) endLine(mark string, j *queue.Run, how string) string {
	return fmt.Sprintf("%s **%s** %s after %s.", mark, quotedTitle(titleOf(j)), how, b.age(j.Accepted))
}

// age returns the time since another time, for users.
func (b *background) age(since time.Time) string {
	return wording.DurationInWords(b.now().Sub(since))
}

// begin shows the card of a task. It returns [conversation.ErrStopped] if the task was cancelled.
func (b *background) begin(ctx context.Context, j *queue.Run) error {
	_, state, _, err := b.ensureCard(ctx, j)
	if err == nil && state.Cancelled {
		err = conversation.ErrStopped
	}
	return err
}

// end closes the card of a task that has ended, and gives its result to the chat unless it was cancelled
// before. Then the turn that waits for the task goes on. It is idempotent.
func (b *background) end(ctx context.Context, j *queue.Run) error {
	line, hasResult := b.endLine("✔", j, "is done"), false
	switch {
	case j.State == receipts.Stopped, j.State == receipts.Cleared, j.State == receipts.Revoked:
		line = b.endLine("⏹", j, "was cancelled")
	case j.Incident != "" || turn.WorkOf(j).Refused:
		line = b.endLine("✖", j, "stopped without a result")
	default:
		hasResult = true
	}
	token, err := b.postCard(ctx, j)
	if err == nil && token != "" {
		var state taskCard
		state, err = b.close(ctx, token, interact.Result{Text: line})
		hasResult = hasResult && !state.Cancelled
	}
	if hasResult {
		err = errors.Join(err, b.insertResult(ctx, j))
	}
	b.queue.ResumeCard(token)
	return err
}

// endDamaged closes the card of a task whose record is damaged.
func (b *background) endDamaged(ctx context.Context, m chats.Message) error {
	data, err := json.Marshal(taskCard{Task: m.ID, Cancelled: true})
	if err != nil {
		return fmt.Errorf("encode the card of a background task: %w", err)
	}
	const line = "✖ A background task stopped without a result."
	token, err := b.cards.Post(ctx, backgroundCardKey(m.ID), m.Chat, interact.Card{Text: line})
	if err == nil {
		_, err = b.cards.Close(ctx, token, interact.Result{Text: line, Data: data})
	}
	return err
}

// onCardClosed ends a task whose card was closed because the task was cancelled, in this process or in
// another one.
func (b *background) onCardClosed(kept *interact.StoredCard) {
	state, err := decodeTaskCard(kept)
	if err != nil || !state.Cancelled {
		return
	}
	if j := b.findOpen(kept.Chat, state.Task); j != nil {
		b.queue.InterruptJob(queueOfTask(j), j.Key(), conversation.ErrStopped)
	}
	b.queue.ResumeCard(kept.Token)
}

// insertResult puts the result of a task into the queue of its chat, once, unless a /clear has ended the
// conversation that asked for it.
func (b *background) insertResult(ctx context.Context, j *queue.Run) error {
	asked := queue.Job{Message: chats.Message{Chat: j.Message.Chat}, Seq: j.Seq}
	session, err := conversation.SessionOf(ctx, b.store, &asked) // of the chat: the task has its own
	if errors.Is(err, conversation.ErrCleared) {
		return nil
	} else if err != nil && !errors.Is(err, conversation.ErrStopped) {
		return err
	}
	answer, err := conversation.TaskAnswer(ctx, b.store, conversation.TaskLog(j.Origin(), j.Message.ID), j.Key())
	if err != nil {
		return err
	}
	m := j.Message
	result := b.inserter.New(chats.Message{Chat: j.Origin(), ID: m.ID, Kind: receipts.KindResult, User: m.User, UserName: m.UserName, Direct: m.Direct, Opener: m.Opener, Time: b.now()})
	result.Args = &receipts.Result{Title: titleOf(j), Seq: j.Seq, Generation: session.Generation, Text: wording.Clip(answer.Text, maxResult)}
	if err := b.inserter.insert(ctx, result); err != nil {
		return fmt.Errorf("store the result of %s: %w", j.Key(), err)
	}
	return nil
}

// maxResult bounds the result of a task in its chat's queue, in characters.
const maxResult = 30_000

// cancelled returns the result that closes the card of a task because it is cancelled.
func (b *background) cancelled(j *queue.Run, by string) (interact.Result, error) {
	how := "was cancelled"
	if by != "" {
		how += " by " + wording.EscapeRevealed(wording.Quote(by, interact.MaxName))
	}
	data, err := json.Marshal(taskCard{Task: j.Message.ID, Cancelled: true})
	return interact.Result{Toast: "Cancelled.", Text: b.endLine("⏹", j, how), Data: data, Close: true}, err
}

// cancel cancels a task. It closes the card of the task, which ends the task; see onCardClosed. If the
// task has no card, cancel interrupts the task itself. It returns false if the task has just ended.
func (b *background) cancel(ctx context.Context, j *queue.Run, by string) (bool, error) {
	token, err := b.postCard(ctx, j)
	var state taskCard
	if err == nil && token != "" {
		var result interact.Result
		if result, err = b.cancelled(j, by); err == nil {
			state, err = b.close(ctx, token, result)
		}
	}
	if err != nil {
		return false, fmt.Errorf("cancel %s: %w", j.Key(), err)
	}
	return state.Cancelled || b.queue.InterruptJob(queueOfTask(j), j.Key(), conversation.ErrStopped), nil
}

// mayCancel reports whether a user may cancel a task: the user who asked for it, or an administrator.
func mayCancel(scope toolgroups.Scope, j *queue.Run) bool {
	return scope.User == j.Message.SenderID() || scope.Role >= toolgroups.RoleAdmin
}

// cancelCall cancels a task for a call.
func (b *background) cancelCall(ctx context.Context, call toolgroups.Call, id string) (t toolgroups.BackgroundTask, known bool, err error) {
	chat, err := chats.ParseChat(call.Chat)
	if err != nil {
		return t, false, err
	}
	j := b.findOpen(chat, id)
	switch {
	case j == nil:
		return b.find(ctx, chat, id)
	case !mayCancel(call.Scope, j):
		return t, true, toolgroups.Errorf(toolgroups.CodeDenied, "Only the person who asked for this task, or an administrator, can cancel it.")
	}
	t = b.describe(j)
	if t.Open, err = b.cancel(ctx, j, ""); !t.Open {
		t.State = "has ended"
	}
	return t, true, err
}

// clear ends the open tasks of a chat that are older than a /clear. It returns their number, and those
// that had not begun, which the caller closes. The session is stored already, so that they do not
// continue after a crash.
func (b *background) clear(by *queue.Run) (ended []*queue.Run, n int) {
	for _, j := range b.queue.JobsIn(by.Message.Chat, backgroundQueue, false) {
		if j.Seq >= by.Seq {
			continue
		}
		_, waiting := b.queue.Interrupt(queueOfTask(j), by.Seq, conversation.ErrCleared)
		ended = append(ended, waiting...)
		n++
	}
	return ended, n
}

// command runs /tasks.
func (b *background) command(ctx context.Context, j *queue.Run, _ string) (string, error) {
	return b.answer(ctx, j, "")
}

// answer answers a command with a text, and with the open tasks of the chat and buttons to cancel them.
func (b *background) answer(ctx context.Context, j *queue.Run, text string) (string, error) {
	card := b.listCard(j.Message.Chat, text, "")
	if len(card.Choices) == 0 {
		return cmp.Or(card.Text, noTasksText), nil
	}
	card.QuotedUser = j.Message.SenderID()
	return b.cards.Answer(ctx, j, card)
}

const noTasksText = "No background task is open here. Ask me to do something in the background, and I start one."

// listCard returns the card that lists the open tasks of a chat except one, below a text.
func (b *background) listCard(chat chats.Chat, text, except string) interact.Card {
	card := interact.Card{Kind: backgroundCard, Text: text, Choices: [][]interact.Choice{}}
	for _, t := range b.open(chat) {
		if t.ID == except {
			continue
		}
		if len(card.Choices) == 0 {
			card.Text = strings.TrimSpace(card.Text + "\n\n**In the background:**\n")
		}
		if !slices.Contains(card.AlsoQuoted, t.User) {
			card.AlsoQuoted = append(card.AlsoQuoted, t.User)
		}
		card.Text += fmt.Sprintf("\n- %s: %s, for %s", quotedTitle(t.Title), t.State, b.age(t.Began))
		card.Choices = append(card.Choices, []interact.Choice{{Label: wording.OneLine("Cancel "+t.Title, interact.MaxLabel), Value: t.ID, Style: chats.StyleDanger}})
	}
	return card
}

// handlePress handles the buttons that cancel tasks, on the card of a task or on a list.
func (b *background) handlePress(ctx context.Context, press interact.Press) (interact.Result, error) {
	const ended = "This task has ended."
	if press.Expired {
		return interact.Result{Text: press.Card.Text}, nil
	}
	j := b.findOpen(press.Place, press.Choice)
	switch {
	case j == nil:
		return interact.Result{Toast: ended}, nil
	case !mayCancel(press.Scope, j) && !(press.ForChat && press.Card.QuotedUser == j.Message.SenderID()):
		return interact.Result{Toast: "Only the person who asked for this task, or an administrator, can cancel it."}, nil
	}
	by := press.UserName
	if press.Direct {
		by = ""
	}
	if press.Card.Data != nil {
		return b.cancelled(j, by)
	}
	toast := "Cancelled."
	if cancelled, err := b.cancel(ctx, j, by); err != nil {
		return interact.Result{}, err
	} else if !cancelled {
		toast = ended
	}
	left := b.listCard(press.Place, "", press.Choice)
	return interact.Result{Toast: toast, Text: cmp.Or(left.Text, noTasksText), Choices: left.Choices, AlsoQuoted: left.AlsoQuoted, Close: len(left.Choices) == 0}, nil
}

// watch shows the progress of a task on its card, until end is called.
func (b *background) watch(j *queue.Run) (observe func(agent.Event), end func()) {
	return outbox.WatchProgress(b.now, b.redact, b.log, func(line string) {
		ctx, cancel := context.WithTimeout(b.queue.Context(), queue.WriteTimeout)
		defer cancel()
		token, err := b.postCard(ctx, j)
		if err == nil && token != "" {
			err = b.cards.Update(ctx, token, interact.Result{Text: taskLine(j, line)})
		}
		if err != nil && ctx.Err() == nil {
			b.log.Warn("the progress of a background task cannot be shown", "job", j.Key(), "err", err)
		}
	})
}
