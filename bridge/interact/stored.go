package interact

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/storage"
)

// StoredCard is the stored form of a card.
type StoredCard struct {
	Card
	// Token is in the data of its buttons. Users cannot guess it.
	Token string     `json:"token"`
	Chat  chats.Chat `json:"chat"`
	// Version counts the changes of what the card shows, Progress those that leave its buttons as they are.
	// The difference is in the data of its buttons, so that a press of replaced buttons is recognized.
	Version  int `json:"version"`
	Progress int `json:"progress,omitempty"`
	// IDs are the messages that show the card's text; the last one has the buttons. They are set once
	// all were sent.
	IDs []string `json:"ids,omitempty"`
	// Ephemeral is set if the card answers one person, whom alone it is shown to.
	Ephemeral bool `json:"ephemeral,omitempty"`
	// Reactions is set if reactions were reported in the chat when the card was made, so that its text says
	// what they do.
	Reactions bool `json:"reactions,omitempty"`
	// PossiblyDuplicated is set if there may be a copy of the card whose id is unknown.
	PossiblyDuplicated bool `json:"twice,omitempty"`
	// ClosedAt is when the card was closed, Reason why.
	ClosedAt time.Time   `json:"ended,omitzero"`
	Reason   CloseReason `json:"how,omitempty"`
	// LastPress is the job of the last handled press, LastToast the answer to that press.
	LastPress string `json:"press,omitempty"`
	LastToast string `json:"toast,omitempty"`

	rev storage.Revision
}

// CloseReason is why a card was closed.
type CloseReason string

// Values of [CloseReason].
const (
	open CloseReason = ""
	// closed: a user decided, or the bridge closed it.
	closed CloseReason = "closed"
	// expired: no user decided in time.
	expired CloseReason = "expired"
	// notShown: the platform refused a part of it.
	notShown CloseReason = "unseen"
	// obsolete: it is no longer needed.
	obsolete CloseReason = "void"
)

// IsOpen reports whether the card can still be decided.
func (c *StoredCard) IsOpen() bool { return c.ClosedAt.IsZero() }

func (c *StoredCard) markClosed(now time.Time, how CloseReason) {
	c.ClosedAt, c.Reason, c.Choices = now, how, nil
}

// applyResult applies a result to the card, and reports whether it changed what is shown.
func (c *StoredCard) applyResult(result Result) bool {
	if result.Data != nil {
		c.Data = result.Data
	}
	if result.Text != "" {
		c.Text = result.Text
	}
	if result.Choices != nil {
		c.Choices = result.Choices
	}
	if result.AlsoQuoted != nil {
		c.AlsoQuoted = result.AlsoQuoted
	}
	return result.Text != "" || result.Choices != nil
}

func (c *StoredCard) buttonDataAt(n int) string {
	return fmt.Sprintf("%s-%d-%d", c.Token, c.Version-c.Progress, n)
}

// buttonData returns the data of the button with a value; empty if there is none.
func (c *StoredCard) buttonData(value string) string {
	for n, choice := range slices.Concat(c.Choices...) {
		if choice.Value == value {
			return c.buttonDataAt(n)
		}
	}
	return ""
}

func (c *StoredCard) buttons() [][]chats.Button {
	var rows [][]chats.Button
	n := 0
	for _, choices := range c.Choices {
		var row []chats.Button
		for _, choice := range choices {
			row = append(row, chats.Button{Label: choice.Label, Style: choice.Style, Data: c.buttonDataAt(n), URL: choice.URL})
			n++
		}
		if row != nil {
			rows = append(rows, row)
		}
	}
	return rows
}

// parseToken returns the token in a button's data, and whether it has the form of a token.
func parseToken(data string) (token string, ok bool) {
	token, _, ok = strings.Cut(data, "-")
	return token, ok && len(token) == tokenLength
}

// tokenLength is the length of 16 random bytes in base32.
const tokenLength = 26

func newToken() string {
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails (crypto/rand)
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(random[:]))
}

const cardPrefix = "card/"

// Get returns a card; nil if there is none.
func (d *Cards) Get(ctx context.Context, token string) (*StoredCard, error) {
	entry, err := storage.Find(ctx, d.cfg.Store, cardPrefix+token)
	if err != nil || entry.Revision == storage.Absent {
		return nil, err
	}
	return decodeCard(entry)
}

// FindByButton returns the card that has a button with this data; nil if there is none.
func (d *Cards) FindByButton(ctx context.Context, data string) (*StoredCard, error) {
	token, ok := parseToken(data)
	if !ok {
		return nil, nil
	}
	return d.Get(ctx, token)
}

func decodeCard(entry storage.Entry) (*StoredCard, error) {
	kept := &StoredCard{}
	if err := queue.Decode(entry, kept); err != nil {
		return nil, err
	}
	kept.rev = entry.Revision
	return kept, nil
}

// put writes a changed card, and with it the job that shows the change, if any, and more operations.
// ErrConflict means that the card has changed, or that the job exists already.
func (d *Cards) put(ctx context.Context, kept *StoredCard, j *queue.Run, more ...storage.Op) error {
	data, err := json.Marshal(kept)
	if err != nil {
		return fmt.Errorf("encode card: %w", err)
	}
	ops := append([]storage.Op{storage.Put(cardPrefix+kept.Token, data, kept.rev)}, more...)
	var rev storage.Revision
	if j == nil {
		rev, err = d.cfg.Store.Write(ctx, ops...)
	} else {
		rev, err = d.cfg.Jobs.InsertWith(ctx, j, ops...)
	}
	if err != nil {
		return fmt.Errorf("store card: %w", err)
	}
	kept.rev = rev
	return nil
}

// all yields the cards; the error for a card that does not decode is a [queue.DamagedError].
func (d *Cards) all(ctx context.Context) iter.Seq2[*StoredCard, error] {
	return func(yield func(*StoredCard, error) bool) {
		for entry, err := range d.cfg.Store.List(ctx, storage.Range{Prefix: cardPrefix}) {
			var kept *StoredCard
			if err == nil {
				kept, err = decodeCard(entry)
			} else {
				err = fmt.Errorf("list cards: %w", err)
			}
			if !yield(kept, err) {
				return
			}
		}
	}
}

// Forget deletes the cards that quote a user, platform:id, or belong to the chats in the given set, except
// the one with the token but, open ones that a job needs, and open ones that quote only others.
func (d *Cards) Forget(ctx context.Context, person string, of map[chats.Chat]bool, but string) error {
	for kept, err := range d.all(ctx) {
		if _, broken := errors.AsType[*queue.DamagedError](err); broken {
			continue
		}
		if err == nil && kept.Token != but && d.concerns(kept, person, of) {
			if err = d.cfg.Store.Delete(ctx, cardPrefix+kept.Token, storage.Any); err == nil {
				d.handleLost(kept.Token)
			}
		}
		if err != nil {
			return fmt.Errorf("forget cards: %w", err)
		}
	}
	return nil
}

func (d *Cards) concerns(kept *StoredCard, person string, of map[chats.Chat]bool) bool {
	if kept.IsOpen() && d.cfg.Host.IsNeeded(kept) {
		return false
	}
	return kept.QuotedUser == person || slices.Contains(kept.AlsoQuoted, person) || of[kept.Chat.WithoutThread()] && (!kept.IsOpen() || kept.QuotedUser == "")
}

// AllOpen yields the open cards. It skips those that do not decode, which [Cards.Prune] handles.
func (d *Cards) AllOpen(ctx context.Context) iter.Seq2[*StoredCard, error] {
	return func(yield func(*StoredCard, error) bool) {
		for kept, err := range d.all(ctx) {
			if _, broken := errors.AsType[*queue.DamagedError](err); broken || err == nil && (!kept.IsOpen() || len(kept.Choices) == 0) {
				continue
			}
			if !yield(kept, err) {
				return
			}
		}
	}
}

// Prune deletes cards that were closed before a time, and calls damaged with those that do not decode.
func (d *Cards) Prune(ctx context.Context, before time.Time, damaged func(context.Context, *queue.DamagedError) error) error {
	for kept, err := range d.all(ctx) {
		if broken, is := errors.AsType[*queue.DamagedError](err); is {
			err = damaged(ctx, broken)
		} else if err == nil && !kept.IsOpen() && kept.ClosedAt.Before(before) {
			err = d.cfg.Store.Delete(ctx, cardPrefix+kept.Token, kept.rev)
		}
		if err != nil && !errors.Is(err, storage.ErrConflict) {
			return fmt.Errorf("prune cards: %w", err)
		}
	}
	return nil
}
