package interact

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// Jobs inserts the jobs of cards.
type Jobs interface {
	// New returns a new job for a message.
	New(m chats.Message) *queue.Run
	// Find returns the record of a job, open or closed; nil if there is none.
	Find(ctx context.Context, key string) (*receipts.Receipt, error)
	// InsertWith stores a new job, in one write with more operations, and queues it. It returns the revision
	// of that write; the job belongs to its worker from then on. ErrConflict means that the job exists
	// already, or that one of the operations conflicts.
	InsertWith(ctx context.Context, j *queue.Run, more ...storage.Op) (storage.Revision, error)
	// Adopt queues the open job under a key, unless a worker has it already.
	Adopt(ctx context.Context, key string) error
	// Go runs f concurrently with the jobs, with a context that ends with theirs. During shutdown it may
	// not run f.
	Go(f func(ctx context.Context))
}

// Sender sends texts to chats.
type Sender interface {
	// Render returns the parts of a text whose secrets are masked.
	Render(j *queue.Run, text string) []receipts.Part
	// Edit edits messages of a chat to show other parts. It waits while the platform is down; after an
	// error the job has to be retried.
	Edit(ctx context.Context, j *queue.Run, chat chats.Chat, ids []string, parts []receipts.Part) error
}

// Host gives cards access to the bridge.
type Host interface {
	// Check rejects a message from an unknown platform, or with invalid ids.
	Check(m chats.Message) error
	// RoleOf returns the current role of a message's sender.
	RoleOf(m chats.Message) toolgroups.Role
	// ScopeOf returns the scope in which the handler of a press acts.
	ScopeOf(ctx context.Context, press *queue.Run) (toolgroups.Scope, error)
	// IsNeeded reports whether a job waits for an open card, or updates it.
	IsNeeded(kept *StoredCard) bool
	// OnCardClosed is called when a card is closed, possibly more than once.
	OnCardClosed(kept *StoredCard)
	// OnCardLost is called when the record of an open card is gone.
	OnCardLost(token string)
}

// CardsConfig configures [Cards]. All fields are required.
type CardsConfig struct {
	// Platforms are all platforms, by name.
	Platforms map[string]chats.Platform
	// Owns reports whether this process owns a chat.
	Owns func(chat chats.Chat) bool
	// Redact masks secrets in outgoing text.
	Redact func(text string) string
	// FormatCommands rewrites the commands in a text for a platform.
	FormatCommands func(platform, text string) string
	Log            *slog.Logger
	Now            func() time.Time
	// Store holds the cards.
	Store storage.Store
	// Handlers handle presses, by [Card.Kind].
	Handlers map[string]Handler
	Jobs     Jobs
	Sender   Sender
	Host     Host
	// RedactCards masks secrets in what cards show.
	RedactCards func(text string) string
}

// Cards posts cards, handles presses and closes cards. The store holds all state; memory only tracks
// which cards to check and when.
type Cards struct {
	cfg CardsConfig
	// toastSlots bounds the presses that are being answered without a job.
	toastSlots chan struct{}

	mu     sync.Mutex
	due    map[string]dueCard // the open cards, by their tokens
	shown  map[string]int     // the versions to which messages were edited, by the tokens of at most maxShown cards
	opened chan struct{}      // signals a newly opened card
}

// NewCards returns cards; call Load next.
func NewCards(cfg CardsConfig) *Cards {
	return &Cards{cfg: cfg, toastSlots: make(chan struct{}, maxToasts), shown: make(map[string]int), due: make(map[string]dueCard), opened: make(chan struct{}, 1)}
}

// Post sends a card to a chat and returns its token. When it returns, the card is on disk and is
// delivered like an answer, without waiting for a turn. The key identifies it in its chat: within
// [receipts.Age] of the delivery of a card, another one under the same key is dropped, and the token of
// the first is returned.
func (d *Cards) Post(ctx context.Context, key string, to chats.Chat, card Card) (string, error) {
	m := chats.Message{Chat: to, ID: queue.Hash(key), Kind: showPosted, User: "bot", TargetID: card.ReplyTo, Time: d.cfg.Now()}
	if err := d.cfg.Host.Check(m); err != nil {
		return "", err
	}
	for {
		known, err := d.cfg.Jobs.Find(ctx, queue.KeyOf(m))
		if err != nil {
			return "", err
		}
		if known != nil {
			return known.Answer.CardToken, d.cfg.Jobs.Adopt(ctx, known.Key())
		}
		kept, err := d.newStoredCard(ctx, to, card)
		if err != nil {
			return "", err
		}
		d.track(kept) // before it is shown, because a user may answer at once
		if err = d.put(ctx, kept, d.newJob(kept, m)); errors.Is(err, storage.ErrConflict) {
			d.untrack(kept.Token)
			continue
		}
		return kept.Token, err // tracked after another error too: the write may have happened
	}
}

// PostAnywhere posts a card like [Cards.Post], without its choices if the platform has no buttons.
func (d *Cards) PostAnywhere(ctx context.Context, key string, to chats.Chat, card Card) (string, error) {
	token, err := d.Post(ctx, key, to, card)
	if errors.Is(err, ErrNoButtons) {
		card.Choices = nil
		return d.Post(ctx, key, to, card)
	}
	return token, err
}

// Answer makes a card the answer of a job. If the platform has no buttons, it returns the text of the
// card.
func (d *Cards) Answer(ctx context.Context, j *queue.Run, card Card) (string, error) {
	if slices.ContainsFunc(card.AlsoQuoted, func(user string) bool { return user != j.Message.SenderID() }) {
		outbox.DeliveryOf(j).QuotesOthers = true
	}
	kept, err := d.newStoredCard(ctx, j.Message.Chat, card)
	if errors.Is(err, ErrNoButtons) {
		return card.Lead + "\n\n" + card.Text, nil
	}
	if err != nil {
		return "", err
	}
	kept.Ephemeral = outbox.DeliveryOf(j).Ephemeral
	outbox.DeliveryOf(j).CardToken, err = kept.Token, d.put(ctx, kept, nil)
	d.track(kept)
	return "", err
}

func (d *Cards) newStoredCard(ctx context.Context, chat chats.Chat, card Card) (*StoredCard, error) {
	now := d.cfg.Now()
	if card.Expires.IsZero() {
		card.Expires = now.Add(DefaultAge)
	}
	kept := &StoredCard{Card: card, Token: newToken(), Chat: chat, Version: 1}
	if len(card.Choices) == 0 {
		kept.markClosed(now, closed)
		return kept, nil
	}
	if _, ok := d.cfg.Platforms[chat.Platform].(chats.Editor); !ok {
		return nil, fmt.Errorf("card for %s: %w", chat, ErrNoButtons)
	}
	if d.cfg.Handlers[card.Kind] == nil {
		return nil, fmt.Errorf("card for %s: no handler takes cards of the kind %q", chat, card.Kind)
	}
	kept.Reactions = d.reportsReactions(ctx, kept)
	return kept, checkChoices(card.Choices)
}

// Kinds of the jobs of cards: a card to be sent, and one whose message shows an older version.
const (
	KindCard    chats.Kind = "card"
	KindRefresh chats.Kind = "card-refresh"
)

// How a change of a card reaches the chat, as the kind of the job that shows it.
const (
	showNone   chats.Kind = ""
	showEdited            = KindRefresh
	showPosted            = KindCard
)

// message returns the message of the job that shows the current version of a card.
func (d *Cards) message(kept *StoredCard, kind chats.Kind) chats.Message {
	return chats.Message{Chat: kept.Chat, ID: kept.Token + "-" + strconv.Itoa(kept.Version), Kind: kind, User: "bot", Time: d.cfg.Now()}
}

func (d *Cards) newJob(kept *StoredCard, m chats.Message) *queue.Run {
	j := d.cfg.Jobs.New(m)
	outbox.DeliveryOf(j).CardToken, outbox.DeliveryOf(j).QuotedUser = kept.Token, kept.QuotedUser
	return j
}

// formatCommands rewrites the commands in a text of the bot for a platform.
func (d *Cards) formatCommands(platform, text string) string {
	return d.cfg.FormatCommands(platform, text)
}

// Parts returns the messages that show the card of a job. There are none if the card was closed before
// it was sent, or is gone.
func (d *Cards) Parts(ctx context.Context, j *queue.Run) ([]receipts.Part, error) {
	kept, err := d.Get(ctx, outbox.DeliveryOf(j).CardToken)
	if err != nil {
		return nil, err
	}
	if kept == nil || !kept.IsOpen() && kept.Version > 1 {
		return []receipts.Part{}, nil
	}
	parts, _ := d.render(j, kept)
	for i := range parts {
		parts[i].Once = kept.Once
	}
	return parts, nil
}

// render returns the parts of a card: its lead, its text, and the buttons below the last part. The
// result lead is the number of parts that show the lead. Only known secrets are masked: a text that
// merely looks like a secret may be the subject of the decision.
func (d *Cards) render(j *queue.Run, kept *StoredCard) (parts []receipts.Part, lead int) {
	if kept.Lead != "" {
		parts = d.cfg.Sender.Render(j, d.cfg.RedactCards(kept.Lead))
		lead = len(parts)
	}
	text := kept.Text
	for _, more := range []string{kept.Footer, kept.reactionHint()} {
		if kept.IsOpen() && more != "" {
			text += "\n\n" + more
		}
	}
	if !kept.KeepCommands {
		text = d.cfg.FormatCommands(kept.Chat.Platform, text)
	}
	parts = append(parts, d.cfg.Sender.Render(j, d.cfg.RedactCards(text))...)
	for i := range parts {
		parts[i].Layout = nil // the subject of a decision is shown literally
	}
	if len(parts) > lead {
		parts[len(parts)-1].Buttons = kept.buttons()
	}
	return parts, lead
}

// RecordDelivery records which messages show the card of a job, once all were sent. A card that could
// not be shown completely is closed: users must not decide on what they have not seen.
func (d *Cards) RecordDelivery(ctx context.Context, j *queue.Run) error {
	var ids []string
	failed, repeated := outbox.DeliveryOf(j).DeadLetter != "", false
	parts := outbox.DeliveryOf(j).Parts
	for i, p := range parts {
		ids = append(ids, p.ID)
		failed = failed || p.IsUndelivered() || p.Bare && i == len(parts)-1 // its buttons were refused
		repeated = repeated || p.Repeat
	}
	if outbox.DeliveryOf(j).DeadLetter != "" {
		ids = nil // the sent message is the notice of the dead letter
	}
	kept, err := d.change(ctx, outbox.DeliveryOf(j).CardToken, func(kept *StoredCard) chats.Kind {
		now, lead := d.render(j, kept)
		kept.IDs = ids[min(lead, len(ids)):]
		kept.Chat, kept.PossiblyDuplicated = outbox.Address(j).Chat, repeated
		if slices.EqualFunc(now, outbox.DeliveryOf(j).Parts, equalPart) {
			return showNone
		}
		kept.Progress++ // the card changed while it was being sent: its buttons are those of that change
		return showEdited
	})
	if err != nil || kept == nil || !failed || !kept.IsOpen() {
		return err
	}
	return d.closeUndecided(ctx, kept, notShown)
}

func equalPart(a, b receipts.Part) bool {
	return a.Text == b.Text && a.Plain == b.Plain && slices.EqualFunc(a.Buttons, b.Buttons, slices.Equal)
}

// Update applies the Text, Choices and Data of a result to an open card.
func (d *Cards) Update(ctx context.Context, token string, result Result) error {
	_, err := d.Revise(ctx, token, func(Card) (Result, bool) { return result, true })
	return err
}

// Revise does what [Cards.Update] does with a result that is decided on the card as it is; false leaves the card alone.
// After a conflict it is decided again. open is whether the card is open then: what is closed is not decided.
func (d *Cards) Revise(ctx context.Context, token string, decide func(Card) (Result, bool)) (open bool, err error) {
	kept, err := d.change(ctx, token, func(kept *StoredCard) chats.Kind {
		if !kept.IsOpen() {
			return showNone
		}
		result, ok := decide(kept.Card)
		if !ok || !kept.applyResult(result) {
			return showNone
		}
		if result.Choices == nil {
			kept.Progress++
		}
		return showEdited
	})
	return kept != nil && kept.IsOpen(), err
}

// Invalidate closes a card that is no longer needed, with a line that says why.
func (d *Cards) Invalidate(ctx context.Context, token, note string) error {
	_, err := d.change(ctx, token, func(kept *StoredCard) chats.Kind {
		if !kept.IsOpen() {
			return showNone
		}
		kept.Text += "\n\n" + note
		kept.markClosed(d.cfg.Now(), obsolete)
		return showEdited
	})
	return err
}

// Close applies the Text and Data of a result to an open card and closes the card. It returns the card
// as it is then, also if it was closed before; nil if there is none.
func (d *Cards) Close(ctx context.Context, token string, result Result) (*StoredCard, error) {
	return d.change(ctx, token, func(kept *StoredCard) chats.Kind {
		if !kept.IsOpen() {
			return showNone
		}
		kept.applyResult(result)
		kept.markClosed(d.cfg.Now(), closed)
		return showEdited
	})
}

// HandleSendFailure closes a card that cannot be shown: users must not decide on what they have not
// seen.
func (d *Cards) HandleSendFailure(ctx context.Context, token string) error {
	kept, err := d.Get(ctx, token)
	if err != nil || kept == nil || !kept.IsOpen() {
		return err
	}
	return d.closeUndecided(ctx, kept, notShown)
}

// Move shows the open cards of a moved chat in the new one. Cards that are still to be sent go there
// anyway. Those for one person are closed instead, because a card that nobody has just asked for is shown to all.
func (d *Cards) Move(ctx context.Context, from, to chats.Chat) error {
	for kept, err := range d.all(ctx) {
		if queue.IsDamaged(err) {
			continue
		}
		if err != nil {
			return err
		}
		if here := kept.Chat.WithoutThread(); !kept.IsOpen() || here != from && here != to {
			continue
		}
		_, err = d.change(ctx, kept.Token, func(kept *StoredCard) chats.Kind {
			if !kept.IsOpen() || kept.Chat.ID == to.ID || len(kept.IDs) == 0 {
				return showNone
			}
			if kept.Ephemeral {
				kept.markClosed(d.cfg.Now(), obsolete)
				return showNone
			}
			kept.Chat.ID, kept.IDs = to.ID, nil
			return showPosted
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// change changes a card, retrying after conflicts, and returns the changed card; nil if there is no such
// card. The callback returns how the change reaches the chat.
func (d *Cards) change(ctx context.Context, token string, change func(*StoredCard) chats.Kind) (kept *StoredCard, err error) {
	err = storage.Retry(ctx, func() (err error) {
		if kept, err = d.Get(ctx, token); kept == nil || err != nil {
			return err
		}
		return d.save(ctx, kept, change(kept))
	})
	return kept, err
}

// save writes a changed card, together with the job that shows the change. A card that is still being
// sent needs no job: [Cards.RecordDelivery] checks what it should show. The operations are part of the
// write.
func (d *Cards) save(ctx context.Context, kept *StoredCard, show chats.Kind, ops ...storage.Op) error {
	var j *queue.Run
	if show != showNone {
		kept.Version++
	}
	if show == showPosted || show == showEdited && len(kept.IDs) > 0 {
		j = d.newJob(kept, d.message(kept, show))
	}
	if err := d.put(ctx, kept, j, ops...); err != nil {
		return err
	}
	return d.finishChange(ctx, kept)
}

// finishChange completes a stored change: it reports a closed card to the host, and makes sure that the
// job that shows the change runs. It is idempotent.
func (d *Cards) finishChange(ctx context.Context, kept *StoredCard) error {
	if !kept.IsOpen() {
		d.untrack(kept.Token)
		d.cfg.Host.OnCardClosed(kept)
	}
	shows := showEdited
	if len(kept.IDs) == 0 {
		shows = showPosted
	}
	return d.cfg.Jobs.Adopt(ctx, queue.KeyOf(d.message(kept, shows)))
}
