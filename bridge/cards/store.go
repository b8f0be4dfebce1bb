package cards

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/jobs"
	"oneclaw/storage"
)

// Kept is a card as the store has it.
type Kept struct {
	Card
	// Token stands in the data of its buttons. It can not be guessed.
	Token string     `json:"token"`
	Chat  chats.Chat `json:"chat"`
	// Version counts the changes of what it shows. It stands in the data of its buttons,
	// so that a press of buttons that were replaced is known for one.
	Version int `json:"version"`
	// IDs are the messages that show its text; the buttons stand under the last. They
	// are known once all were sent.
	IDs []string `json:"ids,omitempty"`
	// Twice says that there may be a copy whose id is not known.
	Twice bool `json:"twice,omitempty"`
	// Ended is when it was closed, and How says by what.
	Ended time.Time `json:"ended,omitzero"`
	How   End       `json:"how,omitempty"`
	// Press is the job of the last press that was handled, and Toast what it was told.
	Press string `json:"press,omitempty"`
	Toast string `json:"toast,omitempty"`

	rev storage.Revision
}

// End says how a card was closed.
type End string

// The ends of cards.
const (
	// Closed: somebody decided, or the bridge did.
	Closed End = "closed"
	// Expired: nobody decided in time.
	Expired End = "expired"
	// Unseen: a part of it was refused by the platform.
	Unseen End = "unseen"
	// Void: what it asked about is over.
	Void End = "void"
)

// Open reports whether the card can still be decided.
func (c *Kept) Open() bool { return c.Ended.IsZero() }

// End closes the card.
func (c *Kept) End(now time.Time, how End) {
	c.Ended, c.How, c.Choices = now, how, nil
	c.Version++
}

// Buttons are those of the choices, as a platform shows them.
func (c *Kept) Buttons() [][]chats.Button {
	var rows [][]chats.Button
	n := 0
	for _, choices := range c.Choices {
		var row []chats.Button
		for _, choice := range choices {
			row = append(row, chats.Button{Label: choice.Label, Style: choice.Style, Data: fmt.Sprintf("%s-%d-%d", c.Token, c.Version, n)})
			n++
		}
		if row != nil {
			rows = append(rows, row)
		}
	}
	return rows
}

// pressPattern takes numbers as they are written in buttons alone: no 00 for 0.
var pressPattern = regexp.MustCompile(`^([a-z2-7]{26})-(0|[1-9][0-9]{0,8})-(0|[1-9][0-9]{0,2})$`)

// ParsePress is the inverse of what buttons carry.
func ParsePress(data string) (token string, version, index int, ok bool) {
	match := pressPattern.FindStringSubmatch(data)
	if match == nil {
		return "", 0, 0, false
	}
	version, _ = strconv.Atoi(match[2]) // nine digits
	index, _ = strconv.Atoi(match[3])
	return match[1], version, index, true
}

// NewToken makes a token that cannot be guessed.
func NewToken() string {
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails (crypto/rand)
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(random[:]))
}

const prefix = "card/"

// Store keeps cards in a KV.
type Store struct{ KV storage.KV }

// Load returns a card; nil where there is none.
func (s Store) Load(ctx context.Context, token string) (*Kept, error) {
	entry, err := s.KV.Get(ctx, prefix+token)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read card: %w", err)
	}
	return Decode(entry)
}

// Decode reads the record of a card.
func Decode(entry storage.Entry) (*Kept, error) {
	kept := &Kept{}
	if err := jobs.Decode(entry, kept); err != nil {
		return nil, err
	}
	kept.rev = entry.Revision
	return kept, nil
}

// Put writes a card whose last version it was read from.
func (s Store) Put(ctx context.Context, kept *Kept) error {
	data, err := json.Marshal(kept)
	if err != nil {
		return fmt.Errorf("encode card: %w", err)
	}
	if kept.rev, err = s.KV.Put(ctx, prefix+kept.Token, data, kept.rev); err != nil {
		return fmt.Errorf("store card: %w", err)
	}
	return nil
}

// Update changes a card, however often others change it meanwhile. It returns the card
// as it then is; nil where there is none.
func (s Store) Update(ctx context.Context, token string, change func(*Kept)) (*Kept, error) {
	for {
		kept, err := s.Load(ctx, token)
		if kept == nil || err != nil {
			return nil, err
		}
		change(kept)
		if err = s.Put(ctx, kept); err == nil || !errors.Is(err, storage.ErrConflict) || ctx.Err() != nil {
			return kept, err
		}
	}
}

// Remove forgets a card.
func (s Store) Remove(ctx context.Context, token string) error {
	if err := s.KV.Delete(ctx, prefix+token, storage.Any); err != nil {
		return fmt.Errorf("remove card: %w", err)
	}
	return nil
}

// Each calls visit with every card. One that can not be read is reported to damaged.
func (s Store) Each(ctx context.Context, visit func(*Kept) error, damaged func(err error) error) error {
	for entry, err := range s.KV.List(ctx, storage.Range{Prefix: prefix}) {
		if err != nil {
			return fmt.Errorf("list cards: %w", err)
		}
		kept, err := Decode(entry)
		if err != nil {
			if err := damaged(err); err != nil {
				return err
			}
			continue
		}
		if err := visit(kept); err != nil {
			return err
		}
	}
	return nil
}

// Prune removes cards that were closed before the given time.
func (s Store) Prune(ctx context.Context, before time.Time) error {
	return s.Each(ctx, func(kept *Kept) error {
		if kept.Open() || !kept.Ended.Before(before) {
			return nil
		}
		return s.Remove(ctx, kept.Token)
	}, func(error) error { return nil })
}

// Shown reports whether there is a point in sending the card: a question that is over
// before it was sent is none.
func (c *Kept) Shown() bool { return c.Open() || c.Version == 1 }

// Take changes what the card says, and reports whether it did.
func (c *Kept) Take(result Result) bool {
	if result.Data != nil {
		c.Data = result.Data
	}
	if result.Text != "" {
		c.Text = result.Text
	}
	if result.Choices != nil {
		c.Choices = result.Choices
	}
	return result.Text != "" || result.Choices != nil
}
