package bridge

import (
	"context"
	"fmt"

	"oneclaw/bridge/access"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/queue"
	"oneclaw/toolgroups"
)

// Post sends a card to a chat. When it returns nil, the card is on disk and is delivered like an
// answer, without waiting for a turn. The key identifies it in its chat: a second card under the same
// key is dropped, for [receipts.Age] after the first was delivered.
//
// Post waits until Run has loaded the jobs of a former run.
func (b *Bridge) Post(ctx context.Context, key string, to chats.Chat, card interact.Card) error {
	if err := b.ready(ctx); err != nil {
		return fmt.Errorf("post card: %w", err)
	}
	_, err := b.cards.Post(ctx, key, to, card)
	return err
}

// People returns the registry of who may talk to the bot.
func (b *Bridge) People() *access.Registry { return b.people }

// cardHost gives cards access to the bridge.
type cardHost struct {
	inserter    *inserter
	people      *access.Registry
	scopes      *scopes
	suspender   *suspender
	elicitation *interact.Elicitation
	queue       *queue.Queue
}

var _ interact.Host = (*cardHost)(nil)

// Check implements [interact.Host].
func (h *cardHost) Check(m chats.Message) error { return h.inserter.check(m) }

// RoleOf implements [interact.Host].
func (h *cardHost) RoleOf(m chats.Message) toolgroups.Role { return h.people.Role(m.By()) }

// ScopeOf implements [interact.Host].
func (h *cardHost) ScopeOf(ctx context.Context, press *queue.Run) (toolgroups.Scope, error) {
	return h.scopes.current(ctx, press)
}

// CardClosed implements [interact.Host].
func (h *cardHost) CardClosed(kept *interact.StoredCard) {
	h.elicitation.CardClosed(kept.Token)
	if job, chat, ok := interact.TurnOf(kept); ok {
		h.suspender.showWaiting(h.queue.Context(), chat, false)
		h.queue.Resume(chat, job)
	}
}

// CardLost implements [interact.Host]. The card cannot say which turn waits for it.
func (h *cardHost) CardLost(token string) {
	h.elicitation.CardClosed(token)
	if chat, waits := h.queue.ResumeCard(token); waits {
		h.suspender.showWaiting(h.queue.Context(), chat, false)
	}
}
