package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"oneclaw/agent"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/bridge/turn"
	"oneclaw/toolgroups"
)

// backgroundWorker answers background tasks with the model. The answer goes to the model of the chat. Only
// the files that a task made, and the notice about a failure, are sent as they are.
type backgroundWorker struct {
	messageWorker
	background *background
	scopes     *scopeResolver
}

func (w *backgroundWorker) newData() (args, work any) { return new(receipts.Task), new(turn.Work) }

func (w *backgroundWorker) answer(ctx context.Context, j *queue.Run) (string, error) {
	if err := w.background.begin(ctx, j); err != nil {
		return "", err
	}
	if err := w.loadGroups(ctx, j); err != nil {
		return "", err
	}
	text, err := w.turns.Answer(ctx, j)
	d := outbox.DeliveryOf(j)
	if err != nil || d.Parts != nil || j.Incident != "" || turn.WorkOf(j).Refused {
		return text, err
	}
	if len(d.Files) == 0 {
		d.Parts = []receipts.Part{}
	}
	return "", nil
}

// loadGroups loads the groups with which a task begins. A group that is gone is left out.
func (w *backgroundWorker) loadGroups(ctx context.Context, j *queue.Run) error {
	if !j.Unstarted {
		return nil
	}
	scope, err := w.scopes.forTurn(j, conversation.TaskLog(j.Origin(), j.Message.ID))
	if err != nil {
		return err
	}
	for _, group := range turn.TaskOf(j).Groups {
		if refused, err := w.turns.LoadGroup(ctx, j, scope, group); err != nil {
			return err
		} else if refused != "" {
			w.background.log.Warn("a group of a background task cannot be loaded", "job", j.Key(), "group", group, "why", refused)
		}
	}
	return nil
}

func (w *backgroundWorker) finish(ctx context.Context, j *queue.Run) error {
	if err := w.messageWorker.finish(ctx, j); err != nil {
		return err
	}
	return w.background.end(ctx, j)
}

// resultWorker answers the results of background tasks with the model, in the conversation that asked for
// the task.
type resultWorker struct {
	messageWorker
	background *background
}

func (w *resultWorker) newData() (args, work any) { return new(receipts.Result), new(turn.Work) }

func (w *resultWorker) answer(ctx context.Context, j *queue.Run) (string, error) {
	session, err := conversation.SessionOf(ctx, w.background.store, &j.Job)
	if err == nil && resultOf(j).Seq < session.ClearedAt {
		err = conversation.ErrCleared
	}
	if err != nil {
		return "", err
	}
	return w.turns.Answer(ctx, j)
}

func resultOf(j *queue.Run) *receipts.Result {
	if r, ok := j.Args.(*receipts.Result); ok {
		return r
	}
	return new(receipts.Result)
}

// finish posts a result as it is if no model told it: a /stop dropped it before, or its turn failed.
func (w *resultWorker) finish(ctx context.Context, j *queue.Run) error {
	err := w.messageWorker.finish(ctx, j)
	untold := j.State == receipts.Stopped && j.Unstarted || j.Incident != "" || turn.WorkOf(j).Refused
	if err != nil || !untold {
		return err
	}
	_, err = w.background.cards.Post(ctx, "result/"+j.Message.ID, j.Message.Chat, interact.Card{
		QuotedUser: j.Message.SenderID(), KeepCommands: true, Text: backgroundHeading(resultOf(j).Title) + "\n\n" + resultOf(j).Text,
	})
	return err
}

// waitGate is the gate of turns that also makes them wait for background tasks.
type waitGate struct {
	*interact.Gate
	background *background
}

var _ turn.Gate = waitGate{}

// Decide implements [turn.Gate].
func (g waitGate) Decide(ctx context.Context, j *queue.Run, at turn.Position, call toolgroups.Call, tool toolgroups.Tool, input agent.Input) (agent.Decision, error) {
	d, err := g.Gate.Decide(ctx, j, at, call, tool, input)
	if err != nil || d.Verdict != agent.Allow || tool.Name != toolgroups.WaitForTasks {
		return d, err
	}
	waits, err := g.background.await(ctx, j, call)
	if waits {
		d.Verdict = agent.Pending
	}
	return d, err
}

// ApplyDecisions implements [turn.Gate]. A turn that waited for tasks can continue: its call decides
// anew whether to wait.
func (g waitGate) ApplyDecisions(ctx context.Context, j *queue.Run) (bool, error) {
	decided, err := g.Gate.ApplyDecisions(ctx, j)
	w := turn.WorkOf(j)
	if err == nil && len(w.Awaited) > 0 {
		w.Awaited, decided = nil, true
	}
	return decided, err
}

// await makes a turn wait for the tasks that a call names, or for all, and reports whether the turn has
// to wait. The turn does not wait while a message waits in the chat.
func (b *background) await(ctx context.Context, j *queue.Run, call toolgroups.Call) (bool, error) {
	if hasWaitingMessage(b.queue, b.queue.ChatOf(j)) {
		return false, nil
	}
	var in struct {
		Tasks []string `json:"task_ids"`
	}
	if err := json.Unmarshal(call.Arguments, &in); err != nil {
		return false, nil // the call fails when it runs
	}
	var cards []string
	for _, task := range b.queue.JobsIn(j.Message.Chat, backgroundQueue, false) {
		if len(in.Tasks) > 0 && !slices.Contains(in.Tasks, task.Message.ID) {
			continue
		}
		token, _, open, err := b.ensureCard(ctx, task)
		if err != nil {
			return false, err
		}
		if open && token != "" {
			cards = append(cards, token)
		}
	}
	turn.WorkOf(j).Awaited = cards
	return len(cards) > 0, nil
}

// hasWaitingMessage reports whether anything waits in a chat other than results of background tasks.
func hasWaitingMessage(q *queue.Queue, chat chats.Chat) bool {
	waiting, _ := q.FindWaiting(chat, func(j *queue.Run) bool { return j.Message.Kind != receipts.KindResult })
	return waiting != nil
}

// awaitsTasks reports whether a suspended turn waits for background tasks, and for no user.
func awaitsTasks(h *queue.Suspended) bool {
	return h != nil && len(h.Cards) > 0 && len(h.Tools) == 0
}

// StartTask starts a background task for a call.
func (b *Bridge) StartTask(ctx context.Context, call toolgroups.Call, task toolgroups.BackgroundTask) (toolgroups.BackgroundTask, error) {
	return b.background.start(ctx, call, task)
}

// Tasks returns the open background tasks of the chat of a call.
func (b *Bridge) Tasks(call toolgroups.Call) ([]toolgroups.BackgroundTask, error) {
	chat, err := chats.ParseChat(call.Chat)
	if err != nil {
		return nil, fmt.Errorf("list background tasks: %w", err)
	}
	return b.background.open(chat), nil
}

// Task returns a background task of the chat of a call, open or ended within the last week; false if there
// is none.
func (b *Bridge) Task(ctx context.Context, call toolgroups.Call, id string) (toolgroups.BackgroundTask, bool, error) {
	chat, err := chats.ParseChat(call.Chat)
	if err != nil {
		return toolgroups.BackgroundTask{}, false, fmt.Errorf("find a background task: %w", err)
	}
	return b.background.find(ctx, chat, id)
}

// CancelTask cancels a background task of the chat of a call. It returns false if there is none with this
// id.
func (b *Bridge) CancelTask(ctx context.Context, call toolgroups.Call, id string) (toolgroups.BackgroundTask, bool, error) {
	return b.background.cancelCall(ctx, call, id)
}
