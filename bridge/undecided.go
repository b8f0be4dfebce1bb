package bridge

import (
	"context"
	"crypto/rand"
	"strings"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/interact"
)

// Approvals lists the tool calls that wait for a user's approval, and accepts decisions from web pages.
type Approvals struct{ b *Bridge }

// ApprovalsOf returns the approvals of a bridge.
func ApprovalsOf(b *Bridge) Approvals { return Approvals{b} }

// Waiting returns the waiting requests as shown to a user (platform:id), up to a maximum number.
func (a Approvals) Waiting(ctx context.Context, user string, most int) ([]interact.ApprovalRequest, error) {
	var list []interact.ApprovalRequest
	for kept, err := range a.b.cards.AllOpen(ctx) {
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

// Press presses a button of a request for a user, under the same rules as a press in the chat. It
// reports whether the press was accepted; [Approvals.PressResult] returns its outcome.
func (a Approvals) Press(ctx context.Context, user, name, data string) (bool, error) {
	kept, err := a.b.cards.FindByButton(ctx, data)
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
		Text: data, TargetID: kept.IDs[len(kept.IDs)-1], Time: a.b.cfg.Now(),
	})
}

// PressResult returns the answer to the last press on a request; empty while the request is open.
func (a Approvals) PressResult(ctx context.Context, data string) (string, error) {
	kept, err := a.b.cards.FindByButton(ctx, data)
	if err != nil || kept == nil || kept.IsOpen() {
		return "", err
	}
	return kept.LastToast, nil
}
