package bridge

import (
	"context"
	"crypto/rand"
	"strings"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/interact"
)

// Approvals lists the tool calls that wait for a user, and decides on them from outside the chat.
type Approvals struct{ b *Bridge }

// ApprovalsOf returns the approvals of a bridge.
func ApprovalsOf(b *Bridge) Approvals { return Approvals{b} }

// Waiting returns at most most waiting requests, as shown to a user, platform:id.
func (a Approvals) Waiting(ctx context.Context, user string, most int) ([]interact.ApprovalRequest, error) {
	var list []interact.ApprovalRequest
	for kept, err := range a.b.cards.Waiting(ctx) {
		if err != nil {
			return nil, err
		}
		if q, ok := interact.ApprovalRequestOf(kept, user, a.b.people.Role(user)); ok && len(kept.IDs) > 0 {
			if list = append(list, q); len(list) == most {
				break
			}
		}
	}
	return list, nil
}

// Press presses a button of a request for a user, as if they had done so in its chat, under the same
// rules. It reports whether the press was accepted; [Approvals.Told] returns the outcome.
func (a Approvals) Press(ctx context.Context, user, name, data string) (bool, error) {
	kept, err := a.b.cards.Of(ctx, data)
	if err != nil || kept == nil {
		return false, err
	}
	q, ok := interact.ApprovalRequestOf(kept, user, a.b.people.Role(user))
	platform, id, _ := strings.Cut(user, ":")
	if !ok || platform != kept.Chat.Platform || len(kept.IDs) == 0 {
		return false, nil
	}
	return true, a.b.Accept(ctx, chats.Message{
		Chat: kept.Chat, ID: interact.PagePressPrefix + rand.Text(), Kind: chats.KindPress, User: id, UserName: name, Direct: q.Direct,
		Text: data, On: kept.IDs[len(kept.IDs)-1], Time: a.b.cfg.Now(),
	})
}

// Told returns the answer to the last press of a request; empty while it is open.
func (a Approvals) Told(ctx context.Context, data string) (string, error) {
	kept, err := a.b.cards.Of(ctx, data)
	if err != nil || kept == nil || kept.Open() {
		return "", err
	}
	return kept.Toast, nil
}
