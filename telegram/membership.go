package telegram

import (
	"context"
	"encoding/json"
	"fmt"

	"oneclaw/bridge/chats"
)

// acceptMemberships tells the inbox in which chats the bot was blocked, muted, removed or added. It follows the messages of
// the same updates, which came before a removal.
func (r *receiver) acceptMemberships(ctx context.Context, raws []json.RawMessage) error {
	in, wants := r.in.(chats.MembershipInbox)
	for _, raw := range raws {
		var u struct {
			Member *memberUpdate `json:"my_chat_member"`
		}
		if !wants || json.Unmarshal(raw, &u) != nil || u.Member == nil || u.Member.Chat.ID == 0 || u.Member.Chat.Type == "channel" {
			continue
		}
		chat := chatOf(u.Member.Chat.ID)
		if err := in.SetMember(ctx, chat, u.Member.New.canWrite()); err != nil {
			return fmt.Errorf("membership in %s: %w", chat, err)
		}
		added := u.Member.Chat.Type != "private" && !u.Member.Old.isIn() && u.Member.New.canWrite()
		if host, ok := r.in.(chats.AddedInbox); ok && added {
			if err := host.Added(ctx, chat); err != nil {
				return fmt.Errorf("added to %s: %w", chat, err)
			}
		}
	}
	return nil
}
