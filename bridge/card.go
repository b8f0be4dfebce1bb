package bridge

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"oneclaw/bridge/cards"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/jobs"
)

// addCards puts the bridge's own handlers beside the others.
func (b *Bridge) addCards(more map[string]cards.Handler) {
	b.handlers = map[string]cards.Handler{cardAdmit: b.admit, cardPeople: b.peoplePressed, cardTools: b.pressTools}
	maps.Copy(b.handlers, more)
	b.handlers[kindApproval] = b.pressApproval
}

// Post sends a card to a chat. When it returns nil, the card is on disk and is delivered
// like an answer; it waits for no turn. The key identifies it in its chat: a second card
// under the same key is dropped, for [ReceiptAge] after the first was delivered.
//
// Post waits until Run has found what a former run left open.
func (b *Bridge) Post(ctx context.Context, key string, to chats.Chat, card cards.Card) error {
	_, err := b.post(ctx, key, to, card)
	return err
}

// post returns the token of the card that stands under the key.
func (b *Bridge) post(ctx context.Context, key string, to chats.Chat, card cards.Card) (string, error) {
	select {
	case <-b.resumed:
	case <-ctx.Done():
		return "", fmt.Errorf("post card: %w", context.Cause(ctx))
	}
	return b.postNow(ctx, key, to, card)
}

// postNow posts while what a former run left open is still being looked for.
func (b *Bridge) postNow(ctx context.Context, key string, to chats.Chat, card cards.Card) (string, error) {
	m := chats.Message{Chat: to, ID: jobs.Hash(key), Kind: jobs.KindCard, User: "bot", On: card.ReplyTo, Time: b.cfg.Now()}
	if err := b.check(m); err != nil {
		return "", fmt.Errorf("%w: %w", ErrUnwelcome, err)
	}
	known, err := b.findJob(ctx, jobs.KeyOf(m))
	if known != nil || err != nil {
		return tokenOf(known), err
	}
	kept, err := b.keepCard(ctx, to, card)
	if err != nil {
		return "", err
	}
	j := &jobs.Job{Message: m, Card: kept.Token, Seq: b.nextSeq(), State: jobs.StateOpen, Accepted: b.cfg.Now()}
	added, err := b.jobs.Add(ctx, j)
	if err != nil {
		return "", fmt.Errorf("post card to %s: %w", to, err)
	}
	if added {
		b.lanes.Queue(j)
		return kept.Token, nil
	}
	if err := b.cards.Remove(ctx, kept.Token); err != nil {
		return "", err
	}
	if err := b.adopt(ctx, j.Key()); err != nil {
		return "", err
	}
	known, err = b.findJob(ctx, j.Key())
	return tokenOf(known), err
}

// findJob returns a job, open or closed; one that does not decode is set aside.
func (b *Bridge) findJob(ctx context.Context, key string) (*jobs.Job, error) {
	j, err := b.jobs.Find(ctx, key)
	if d, is := errors.AsType[*jobs.DamagedError](err); is {
		if _, err := b.mend(ctx, d, chats.Chat{}, ""); err != nil {
			return nil, err
		}
		return b.jobs.Find(ctx, key)
	}
	return j, err
}

func tokenOf(j *jobs.Job) string {
	if j == nil {
		return ""
	}
	return j.Card
}

// keepCard checks a card and stores it, open, before it is shown anywhere.
func (b *Bridge) keepCard(ctx context.Context, chat chats.Chat, card cards.Card) (*cards.Kept, error) {
	if err := b.checkCard(chat, card); err != nil {
		return nil, err
	}
	now := b.cfg.Now()
	if card.Expires.IsZero() {
		card.Expires = now.Add(cards.DefaultAge)
	}
	kept := &cards.Kept{Card: card, Token: cards.NewToken(), Chat: chat, Version: 1}
	if len(card.Choices) == 0 {
		kept.Ended, kept.How = now, cards.Closed
	}
	if err := b.cards.Put(ctx, kept); err != nil {
		return nil, err
	}
	if kept.Open() {
		b.expiry.add(kept)
	}
	return kept, nil
}

func (b *Bridge) checkCard(chat chats.Chat, card cards.Card) error {
	if len(card.Choices) == 0 {
		return nil
	}
	if _, ok := b.platforms[chat.Platform].(chats.Editor); !ok {
		return fmt.Errorf("card for %s: %w", chat, cards.ErrNoButtons)
	}
	if b.handlers[card.Kind] == nil {
		return fmt.Errorf("card for %s: nobody handles cards of the kind %q", chat, card.Kind)
	}
	return cards.CheckChoices(card.Choices)
}

// renderCard makes the parts of a card: its lead, its text, and the buttons under the
// last part. Lead says how many of them belong to the lead. Only known secrets are
// masked: a text that has merely the shape of one may be what somebody decides about.
func (b *Bridge) renderCard(j *jobs.Job, kept *cards.Kept) (parts []jobs.SentPart, lead int) {
	if kept.Lead != "" {
		parts = b.sender.Render(j, b.cfg.RedactCards(kept.Lead))
		lead = len(parts)
	}
	text := kept.Text
	if kept.Kind != kindApproval { // shows arguments, exactly
		text = b.spelled(kept.Chat.Platform, text)
	}
	parts = append(parts, b.sender.Render(j, b.cfg.RedactCards(text))...)
	if _, ok := b.platforms[kept.Chat.Platform].(chats.Editor); ok && len(parts) > lead {
		parts[len(parts)-1].Buttons = kept.Buttons()
	}
	return parts, lead
}

// cardSent keeps which messages show a card, once all of it was sent. One that could not
// be shown whole is closed: nobody is to decide about what they have not seen.
func (b *Bridge) cardSent(ctx context.Context, j *jobs.Job) error {
	var ids []string
	failed, repeated := false, false
	for _, p := range j.Parts {
		ids = append(ids, p.ID)
		failed = failed || p.State == jobs.PartFailed
		repeated = repeated || p.Repeat
	}
	if j.Aside != "" {
		failed, ids = true, nil // what stands there says that the card is not shown
	}
	kept, err := b.cards.Update(ctx, j.Card, func(kept *cards.Kept) {
		_, lead := b.renderCard(j, kept)
		kept.IDs = ids[min(lead, len(ids)):]
		kept.Chat, kept.Twice = j.Address().Chat, repeated
	})
	if err != nil || kept == nil {
		return err
	}
	if failed && kept.Open() {
		return b.lapse(ctx, kept, cards.Unseen)
	}
	if kept.Version > 1 {
		// It changed while it was on its way.
		return b.refreshLater(ctx, kept, "-sent")
	}
	return nil
}
