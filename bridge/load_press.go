package bridge

import (
	"context"
	"time"

	"oneclaw/bridge/conversation"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/bridge/turn"
	"oneclaw/internal/wording"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// loadWorker loads tool groups.
type loadWorker struct {
	jobPolicy
	failureReporter
	store         storage.Store
	inserter      *inserter
	intake        *intake
	completer     *completer
	scopeResolver *scopeResolver
	panel         interact.Panel
	tools         func() *toolgroups.Registry
	maxWaiting    int
	now           func() time.Time
}

func (w *loadWorker) newData() (args, work any) { return nil, new(turn.Work) }

// enqueueLoad enqueues a job that loads a tool group. When it returns, the job is on disk.
func (w *loadWorker) enqueueLoad(ctx context.Context, press interact.Press, name string) (interact.Result, error) {
	group, ok := w.tools().Group(name)
	switch {
	case !ok:
		return interact.Result{Toast: "This tool group no longer exists."}, nil
	case press.Role < group.Role:
		return interact.Result{Toast: "Sorry, this tool group is for administrators."}, nil
	}
	status := w.queue.Status(press.Place)
	if status.Waiting >= w.maxWaiting {
		return interact.Result{Toast: interact.ToastBusy}, nil
	}
	m := press.Message(kindLoad, queue.Hash(press.Token, press.Session, name), w.now())
	m.Text = name
	if err := w.inserter.validateMessage(m); err != nil {
		return interact.Result{}, err
	}
	j := w.inserter.New(m)
	outbox.DeliveryOf(j).CardToken = press.Token
	if err := w.intake.enqueue(ctx, j); err != nil {
		return interact.Result{}, err
	}
	toast := "Loading " + interact.GroupLabel(group) + "."
	if status.Running {
		toast = "I load " + interact.GroupLabel(group) + " when I have finished this answer."
	}
	return interact.Result{Toast: toast}, nil
}

func (w *loadWorker) perform(ctx context.Context, j *queue.Run) error {
	session, err := conversation.SessionOf(ctx, w.store, &j.Job)
	if err != nil {
		return err
	}
	turn.WorkOf(j).Generation = session.Generation
	scope, err := w.scopeResolver.forTurn(j, session.Log())
	if err != nil {
		return err
	}
	refused, err := w.turns.LoadGroup(ctx, j, scope, j.Message.Text)
	if err != nil {
		return err
	}
	card, err := w.panel.Card(ctx, scope, 0)
	if err != nil {
		return err
	}
	if refused != "" {
		card.Text += "\n\n_" + wording.EscapeMarkdown(refused) + "_"
	}
	if err := w.cards.Update(ctx, outbox.DeliveryOf(j).CardToken, interact.Result{Text: card.Text, Choices: interact.NonNilRows(card.Choices)}); err != nil {
		return err
	}
	return w.completer.complete(j, receipts.Done)
}
