package platformtest

import (
	"context"

	"oneclaw/bridge/chats"
)

var _ chats.EphemeralSender = (*adapter)(nil)

func (a *adapter) SendEphemeral(ctx context.Context, to chats.Address, user string, part chats.Part) (string, error) {
	if a.has("shows an ephemeral message to all") {
		return a.Send(ctx, to, part)
	}
	if a.has("shows an ephemeral message to another user") {
		user = "somebody"
	}
	a.m.change(func() { a.m.view.Toasts = append(a.m.view.Toasts, Toast{To: user, Text: noted(part)}) })
	return "ephemeral", nil
}
