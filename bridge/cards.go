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
// answer, without waiting for a turn. The key identifies the card in its chat: another card with the
// same key is dropped, for [receipts.Age] after the first was delivered.
//
// Post waits until Run has loaded the jobs of an earlier run.
func (b *Bridge) Post(ctx context.Context, key string, to chats.Chat, card interact.Card) error {
	if err := b.AwaitReady(ctx); err != nil {
		return fmt.Errorf("post card: %w", err)
	}
	_, err := b.cards.Post(ctx, key, to, card)
	return err
}

// People returns the registry of the users who may talk to the bot.
func (b *Bridge) People() *access.Registry { return b.people }

// cardHost gives cards access to the bridge.
type cardHost struct {
	inserter    *inserter
	people      *access.Registry
	scopes      *scopeResolver
	elicitation *interact.Elicitation
	background  *background
	queue       *queue.Queue
}

var _ interact.Host = (*cardHost)(nil)

// Check implements [interact.Host].
func (h *cardHost) Check(m chats.Message) error { return h.inserter.validateMessage(m) }

// RoleOf implements [interact.Host].
func (h *cardHost) RoleOf(m chats.Message) toolgroups.Role { return h.people.Role(m.SenderID()) }

// ScopeOf implements [interact.Host].
func (h *cardHost) ScopeOf(ctx context.Context, press *queue.Run) (toolgroups.Scope, error) {
	return h.scopes.current(ctx, press)
}

// IsNeeded implements [interact.Host].
func (h *cardHost) IsNeeded(kept *interact.StoredCard) bool {
	switch kept.Kind {
	case interact.ApprovalKind, interact.ElicitationKind:
		return true
	case backgroundCard:
		return len(kept.Data) > 0 // not a list
	}
	return false
}

// OnCardClosed implements [interact.Host].
func (h *cardHost) OnCardClosed(kept *interact.StoredCard) {
	h.elicitation.OnCardClosed(kept.Token)
	if kept.Kind == backgroundCard {
		h.background.onCardClosed(kept)
	}
	if job, chat, ok := interact.WaitingJob(kept); ok {
		h.queue.Resume(chat, job)
	}
}

// OnCardLost implements [interact.Host]. The queue, not the lost record, knows which turn waits.
func (h *cardHost) OnCardLost(token string) {
	h.elicitation.OnCardClosed(token)
	h.queue.ResumeCard(token)
}
