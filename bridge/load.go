package bridge

import (
	"context"
	"strings"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/bridge/turn"
	"oneclaw/internal/wording"
)

// loadLater has a group loaded when it is its turn. The job is on disk when it returns.
func (b *Bridge) loadLater(ctx context.Context, press interact.Press, name string) (interact.Result, error) {
	group, ok := b.cfg.Turns.Tools().Group(name)
	switch {
	case !ok:
		return interact.Result{Toast: "This tool group is not there any more."}, nil
	case press.Role < group.Role:
		return interact.Result{Toast: "Sorry, this tool group is for administrators."}, nil
	}
	status := b.lanes.Status(press.Place)
	if status.Waiting >= b.cfg.Limits.MaxWaiting {
		return interact.Result{Toast: interact.ToastBusy}, nil
	}
	m := chats.Message{
		Chat: press.Place, ID: queue.Hash(press.Token, press.Session, name), Kind: kindLoad, Direct: press.Direct, Text: name, Time: b.cfg.Now(),
		User: strings.TrimPrefix(press.User, press.Place.Platform+":"), UserName: press.UserName,
	}
	if err := b.inserter.check(m); err != nil {
		return interact.Result{}, err
	}
	j := b.inserter.New(m)
	outbox.Of(j).Card = press.Token
	if err := b.intake.enqueue(ctx, j); err != nil {
		return interact.Result{}, err
	}
	toast := "Loading " + interact.Label(group) + "."
	if status.Running {
		toast = "I load " + interact.Label(group) + " when I am done with the present answer."
	}
	return interact.Result{Toast: toast}, nil
}

func (b *Bridge) attemptLoad(ctx context.Context, j *queue.Run) error {
	session, err := conversation.Of(ctx, b.store, &j.Job)
	if err != nil {
		return err
	}
	turn.Of(j).Generation = session.Generation
	scope, err := b.scope(j, session)
	if err != nil {
		return err
	}
	refused, err := b.turns.Load(ctx, j, scope)
	if err != nil {
		return err
	}
	card, err := b.panel.Card(ctx, scope, 0)
	if err != nil {
		return err
	}
	if refused != "" {
		card.Text += "\n\n_" + wording.Escape(refused) + "_"
	}
	if err := b.cards.Show(ctx, outbox.Of(j).Card, interact.Result{Text: card.Text, Choices: interact.KeepRows(card.Choices)}); err != nil {
		return err
	}
	return b.completer.complete(j, receipts.Done)
}
