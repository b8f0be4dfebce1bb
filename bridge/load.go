package bridge

import (
	"context"
	"strings"

	"oneclaw/bridge/cards"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/jobs"
	"oneclaw/bridge/panel"
	"oneclaw/bridge/sessions"
	"oneclaw/bridge/wording"
)

// loadLater has a group loaded when it is its turn. The job is on disk when it returns.
func (b *Bridge) loadLater(ctx context.Context, press cards.Press, name string) (cards.Result, error) {
	group, ok := b.cfg.Turns.Tools().Group(name)
	switch {
	case !ok:
		return cards.Result{Toast: "This tool group is not there any more."}, nil
	case press.Role < group.Role:
		return cards.Result{Toast: "Sorry, this tool group is for administrators."}, nil
	}
	status := b.lanes.Status(press.Place)
	if status.Waiting >= b.cfg.Limits.MaxWaiting {
		return cards.Result{Toast: cards.ToastBusy}, nil
	}
	m := chats.Message{
		Chat: press.Place, ID: jobs.Hash(press.Token, press.Session, name), Kind: jobs.KindLoad, Direct: press.Direct, Text: name, Time: b.cfg.Now(),
		User: strings.TrimPrefix(press.User, press.Place.Platform+":"), UserName: press.UserName,
	}
	if err := b.intake.check(m); err != nil {
		return cards.Result{}, err
	}
	j := b.intake.job(m)
	j.Card = press.Token
	if err := b.intake.enqueue(ctx, j); err != nil {
		return cards.Result{}, err
	}
	toast := "Loading " + panel.Label(group) + "."
	if status.Running {
		toast = "I load " + panel.Label(group) + " when I am done with the present answer."
	}
	return cards.Result{Toast: toast}, nil
}

func (b *Bridge) attemptLoad(ctx context.Context, j *jobs.Job) error {
	session, err := sessions.Of(ctx, b.store, j)
	if err != nil {
		return err
	}
	j.Generation = session.Generation
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
	if err := b.desk.Show(ctx, j.Card, cards.Result{Text: card.Text, Choices: panel.KeepRows(card.Choices)}); err != nil {
		return err
	}
	return b.carrier.settle(j, jobs.StateDone)
}
