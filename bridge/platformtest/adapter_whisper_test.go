package platformtest

import (
	"context"

	"oneclaw/bridge/chats"
)

var _ chats.EphemeralSender = (*adapter)(nil)

func (a *adapter) SendEphemeral(ctx context.Context, to chats.Address, user string, part chats.Part) (string, error) {
	if a.has("whispers aloud") {
		return a.Send(ctx, to, part)
	}
	if a.has("whispers to somebody else") {
		user = "somebody"
	}
	a.m.change(func() { a.m.view.Toasts = append(a.m.view.Toasts, Toast{To: user, Text: noted(part)}) })
	return "whisper", nil
}
