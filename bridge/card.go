package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/jobs"
	"oneclaw/toolgroups"
)

// DefaultCardAge is how long the buttons of a [Card] can be pressed that names no other
// time.
const DefaultCardAge = 24 * time.Hour

// Limits of a [Card].
const (
	// MaxChoices bounds its buttons.
	MaxChoices = 60
	// MaxLabel bounds the label of a button, in characters.
	MaxLabel = 40
)

// Card is a message with buttons: a question, or a list to choose from. It is kept in
// the store, so that its buttons outlive the program. A card without choices is a notice.
type Card struct {
	// Kind says who handles it: an entry of [Config.Cards].
	Kind string `json:"kind"`
	// Lead is Markdown of any length that stands in front of the card, in messages of
	// its own that are never edited.
	Lead string `json:"lead,omitempty"`
	// Text is Markdown; it should fit into one message.
	Text string `json:"text"`
	// Choices are the rows of buttons.
	Choices [][]Choice `json:"choices,omitempty"`
	// Data is for the handler.
	Data json.RawMessage `json:"data,omitempty"`
	// Expires is until when it can be pressed. The zero value means [DefaultCardAge]
	// from now.
	Expires time.Time `json:"expires,omitzero"`
	// ReplyTo is the message that the card is about; it shows in shared chats.
	ReplyTo string `json:"reply_to,omitempty"`
}

// Choice is a button of a [Card].
type Choice struct {
	// Label is what the button says: plain text of at most [MaxLabel] characters.
	Label string `json:"label"`
	// Value is what the handler is told. It never leaves the bot.
	Value string            `json:"value"`
	Style chats.ButtonStyle `json:"style,omitempty"`
}

// CardPress is the press of a button, or the end of a card that nobody has decided.
type CardPress struct {
	// Scope is that of who pressed, with the role of this moment. Of an expired card it
	// has the chat alone.
	toolgroups.Scope
	// UserName is what the platform calls who pressed.
	UserName string
	// Place is the chat as a value.
	Place chats.Chat
	// Choice is the value of the button.
	Choice string
	// Expired says that nobody pressed in time: there is no Choice, and the card is
	// closed whatever the handler returns.
	Expired bool
	Card    Card

	token string // of the card
}

// CardResult is what becomes of a card and what its presser is told.
type CardResult struct {
	// Toast is shown to whoever pressed and to nobody else: plain text of at most 200
	// characters.
	Toast string
	// Text replaces the card's text, unless it is empty.
	Text string
	// Close takes the buttons away: nothing can be pressed any more.
	Close bool
	// Choices, if not nil, replace the buttons of a card that is not closed.
	Choices [][]Choice
	// Data, if not nil, replaces that of the card.
	Data json.RawMessage
}

// CardHandler decides what a press does. Anybody in the chat can press: the handler has
// to look who did. It is called again after a crash, or where the store had trouble, so
// what it does beside its result must bear repeating. Presses of one chat are handled
// one after another, beside the messages; it should be quick. An error is retried for a
// few seconds.
type CardHandler func(ctx context.Context, press CardPress) (CardResult, error)

// ErrNoButtons is returned by [Bridge.Post] for a platform that is no [Editor].
var ErrNoButtons = errors.New("bridge: the platform has no buttons")

// addCards puts the bridge's own handlers beside the others.
func (b *Bridge) addCards(more map[string]CardHandler) {
	b.handlers = map[string]CardHandler{cardAdmit: b.admit, cardPeople: b.peoplePressed, cardTools: b.pressTools}
	maps.Copy(b.handlers, more)
	b.handlers[kindApproval] = b.pressApproval
}

// Post sends a card to a chat. When it returns nil, the card is on disk and is delivered
// like an answer; it waits for no turn. The key identifies it in its chat: a second card
// under the same key is dropped, for [ReceiptAge] after the first was delivered.
//
// Post waits until Run has found what a former run left open.
func (b *Bridge) Post(ctx context.Context, key string, to chats.Chat, card Card) error {
	_, err := b.post(ctx, key, to, card)
	return err
}

// post returns the token of the card that stands under the key.
func (b *Bridge) post(ctx context.Context, key string, to chats.Chat, card Card) (string, error) {
	select {
	case <-b.resumed:
	case <-ctx.Done():
		return "", fmt.Errorf("post card: %w", context.Cause(ctx))
	}
	return b.postNow(ctx, key, to, card)
}

// postNow posts while what a former run left open is still being looked for.
func (b *Bridge) postNow(ctx context.Context, key string, to chats.Chat, card Card) (string, error) {
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
		b.queue(j)
		return kept.Token, nil
	}
	if err := b.cards.remove(ctx, kept.Token); err != nil {
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
func (b *Bridge) keepCard(ctx context.Context, chat chats.Chat, card Card) (*keptCard, error) {
	if err := b.checkCard(chat, card); err != nil {
		return nil, err
	}
	now := b.cfg.Now()
	if card.Expires.IsZero() {
		card.Expires = now.Add(DefaultCardAge)
	}
	kept := &keptCard{Card: card, Token: newToken(), Chat: chat, Version: 1}
	if len(card.Choices) == 0 {
		kept.Ended, kept.How = now, cardClosed
	}
	if err := b.cards.put(ctx, kept); err != nil {
		return nil, err
	}
	if kept.open() {
		b.expiry.add(kept)
	}
	return kept, nil
}

func (b *Bridge) checkCard(chat chats.Chat, card Card) error {
	if len(card.Choices) == 0 {
		return nil
	}
	if _, ok := b.platforms[chat.Platform].(chats.Editor); !ok {
		return fmt.Errorf("card for %s: %w", chat, ErrNoButtons)
	}
	if b.handlers[card.Kind] == nil {
		return fmt.Errorf("card for %s: nobody handles cards of the kind %q", chat, card.Kind)
	}
	return checkChoices(card.Choices)
}

func checkChoices(rows [][]Choice) error {
	all := slices.Concat(rows...)
	if len(all) > MaxChoices {
		return fmt.Errorf("card: %d buttons, at most %d are shown", len(all), MaxChoices)
	}
	for _, c := range all {
		if n := utf8.RuneCountInString(c.Label); n == 0 || n > MaxLabel {
			return fmt.Errorf("card: the label %q has %d characters, want 1 to %d", c.Label, n, MaxLabel)
		}
	}
	return nil
}

// renderCard makes the parts of a card: its lead, its text, and the buttons under the
// last part. Lead says how many of them belong to the lead. Only known secrets are
// masked: a text that has merely the shape of one may be what somebody decides about.
func (b *Bridge) renderCard(j *jobs.Job, kept *keptCard) (parts []jobs.SentPart, lead int) {
	if kept.Lead != "" {
		parts = b.renderMasked(j, b.cfg.RedactCards(kept.Lead))
		lead = len(parts)
	}
	text := kept.Text
	if kept.Kind != kindApproval { // shows arguments, exactly
		text = b.spelled(kept.Chat.Platform, text)
	}
	parts = append(parts, b.renderMasked(j, b.cfg.RedactCards(text))...)
	if _, ok := b.platforms[kept.Chat.Platform].(chats.Editor); ok && len(parts) > lead {
		parts[len(parts)-1].Buttons = kept.buttons()
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
	kept, err := b.cards.update(ctx, j.Card, func(kept *keptCard) {
		_, lead := b.renderCard(j, kept)
		kept.IDs = ids[min(lead, len(ids)):]
		kept.Chat, kept.Twice = j.Address().Chat, repeated
	})
	if err != nil || kept == nil {
		return err
	}
	if failed && kept.open() {
		return b.lapse(ctx, kept, cardUnseen)
	}
	if kept.Version > 1 {
		// It changed while it was on its way.
		return b.refreshLater(ctx, kept, "-sent")
	}
	return nil
}
