package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"oneclaw/bridge/access"
	"oneclaw/bridge/audit"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/privacy"
	"oneclaw/internal/config"
	"oneclaw/internal/personal"
	"oneclaw/internal/settings"
	"oneclaw/internal/workspace"
)

// personalData returns the kinds of data of people and chats, with functions that export, delete and move each.
func (b *Bot) personalData(cfg config.Config) []personal.Part {
	type person = personal.Person
	owner := func(of func(context.Context, string) error) func(context.Context, person) error {
		return func(ctx context.Context, p person) error { return of(ctx, p.User) }
	}
	return []personal.Part{
		{
			Name: "memory", About: "What I remember of you.", Forget: owner(b.tools.memory.Forget), Move: b.moveMemory, Prune: b.tools.memory.Prune,
			Data: func(ctx context.Context, p person) (any, error) { return b.tools.memory.Notes(ctx, p.User) },
		},
		{
			Name: "schedules", About: "Your scheduled tasks, also those in groups.", Forget: owner(b.tools.schedule.Forget),
			Data: func(ctx context.Context, p person) (any, error) { return b.tools.schedule.TasksOf(ctx, p.User) },
			Move: func(ctx context.Context, from, to string) error { return b.tools.schedule.Move(ctx, from, to, to) },
		},
		{
			Name: "webhooks", About: "Your webhooks.", Forget: owner(b.hooks.Forget), Move: b.hooks.Move,
			Data: func(ctx context.Context, p person) (any, error) { return b.hooks.ByUser(ctx, p.User) },
		},
		{
			Name: "sign-in", Forget: func(ctx context.Context, p person) error {
				return b.signIn.SignOut(ctx, p.User, "sign-out (forgotten)")
			},
		},
		{
			Name: "accounts", About: "What you have connected an account at.", Forget: owner(b.tools.connections.Forget), Prune: b.tools.connections.Prune,
			Data: func(ctx context.Context, p person) (any, error) {
				return b.tools.connections.ConnectedServices(ctx, p.User)
			},
		},
		{
			Name: "approvals", About: "What you have allowed me to do until a conversation is cleared.",
			Data: func(ctx context.Context, p person) (any, error) {
				return interact.LastingApprovalsOf(ctx, b.store, p.User)
			},
		},
		{
			Name: "choices", About: "What was chosen in our chat: model, agent, voice.",
			Data: func(ctx context.Context, p person) (any, error) {
				return b.tools.settings.Chats.ListChoices(ctx, p.DirectChat.String())
			},
			Forget: func(ctx context.Context, p person) error {
				return b.tools.settings.Chats.Forget(ctx, p.DirectChat.String(), p.User)
			},
			Move: func(ctx context.Context, from, to string) error {
				return b.tools.settings.Chats.Move(ctx, from, from, to, to)
			},
		},
		{
			Name: "agents", About: "The agents that you have made.",
			Data: func(ctx context.Context, p person) (any, error) {
				all, err := b.tools.settings.Agents.List(ctx)
				return slices.DeleteFunc(all, func(a settings.Agent) bool { return a.Owner != p.User && a.Author != p.User }), err
			},
		},
		{
			Name: "files", Forget: func(ctx context.Context, p person) error { return b.forgetFiles(ctx, cfg, p.User) },
			Move: func(ctx context.Context, from, to string) error { return b.moveFiles(ctx, cfg.FilesDir(), from, to) },
		},
		{
			Name: "heard", About: "What you said, not to me, in groups where I also read that; a day.",
			Data: func(ctx context.Context, p person) (any, error) { return privacy.AmbientOf(ctx, b.store, p.User) },
		},
		{
			Name: "person", About: "What you may do, and who let you in.",
			Data: func(_ context.Context, p person) (any, error) {
				return slices.DeleteFunc(b.bridge.People().ListPeople(), func(one access.Person) bool { return one.User != p.User }), nil
			},
		},
		{
			Name: "usage", About: "What models have used for you, by day; two months.", Move: b.ledger.Move,
			Data: func(ctx context.Context, p person) (any, error) { return b.ledger.UserUsage(ctx, p.User) },
		},
		{Name: "audit", About: "What you have done that administrators may have to know later.", Data: b.auditEntries},
	}
}

func (b *Bot) auditEntries(ctx context.Context, p personal.Person) (any, error) {
	all, err := audit.List(ctx, b.store, 0)
	return slices.DeleteFunc(all, func(e audit.Entry) bool { return e.By != p.User }), err
}

// forgetFiles deletes the files of an owner, on this disk and in the store, also where an earlier setting
// of tools.files has left them.
func (b *Bot) forgetFiles(ctx context.Context, cfg config.Config, owner string) error {
	if b.files != nil {
		if err := b.files.Prepare(ctx, owner); err != nil {
			return err
		}
	}
	for _, place := range []string{cfg.FilesDir(), cfg.DataDir} {
		if err := errors.Join(workspace.RemoveAll(workspace.OwnerDir(place, owner)), workspace.ForgetNotStored(place, owner)); err != nil {
			return fmt.Errorf("remove workspace: %w", err)
		}
	}
	if b.files == nil {
		return workspace.NewStore(workspace.StoreConfig{Store: b.store, Logger: b.log}).ForgetStored(ctx, owner)
	}
	return errors.Join(os.MkdirAll(workspace.OwnerDir(cfg.FilesDir(), owner), 0o700), b.files.Keep(ctx, owner))
}

// newExporter returns the exporter of users' personal data.
func (b *Bot) newExporter(cfg config.Config) *personal.Exporter {
	return personal.New(personal.Config{Store: b.store, Parts: b.personalData(cfg), Now: cfg.Runtime.Now, Logger: b.log})
}
