package bridge

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

// keptCard is a card as the store has it.
type keptCard struct {
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
	How   cardEnd   `json:"how,omitempty"`
	// Press is the job of the last press that was handled, and Toast what it was told.
	Press string `json:"press,omitempty"`
	Toast string `json:"toast,omitempty"`

	rev storage.Revision
}

// cardEnd says how a card was closed.
type cardEnd string

const (
	cardClosed  cardEnd = "closed"
	cardExpired cardEnd = "expired"
	// cardUnseen: a part of it was refused by the platform.
	cardUnseen cardEnd = "unseen"
	// cardVoid: what it asked about is over.
	cardVoid cardEnd = "void"
)

func (c *keptCard) open() bool { return c.Ended.IsZero() }

// end closes the card.
func (c *keptCard) end(now time.Time, how cardEnd) {
	c.Ended, c.How, c.Choices = now, how, nil
	c.Version++
}

func (c *keptCard) buttons() [][]chats.Button {
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

// parsePress is the inverse of what buttons carry.
func parsePress(data string) (token string, version, index int, ok bool) {
	match := pressPattern.FindStringSubmatch(data)
	if match == nil {
		return "", 0, 0, false
	}
	version, _ = strconv.Atoi(match[2]) // nine digits
	index, _ = strconv.Atoi(match[3])
	return match[1], version, index, true
}

func newToken() string {
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails (crypto/rand)
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(random[:]))
}

const cardPrefix = "card/"

// cards keeps cards in a KV.
type cards struct{ kv storage.KV }

// load returns a card; nil where there is none.
func (s cards) load(ctx context.Context, token string) (*keptCard, error) {
	entry, err := s.kv.Get(ctx, cardPrefix+token)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read card: %w", err)
	}
	return decodeCard(entry)
}

func decodeCard(entry storage.Entry) (*keptCard, error) {
	kept := &keptCard{}
	if err := jobs.Decode(entry, kept); err != nil {
		return nil, err
	}
	kept.rev = entry.Revision
	return kept, nil
}

// put writes a card whose last version it was read from.
func (s cards) put(ctx context.Context, kept *keptCard) error {
	data, err := json.Marshal(kept)
	if err != nil {
		return fmt.Errorf("encode card: %w", err)
	}
	if kept.rev, err = s.kv.Put(ctx, cardPrefix+kept.Token, data, kept.rev); err != nil {
		return fmt.Errorf("store card: %w", err)
	}
	return nil
}

// update changes a card, however often others change it meanwhile. It returns the card
// as it then is; nil where there is none.
func (s cards) update(ctx context.Context, token string, change func(*keptCard)) (*keptCard, error) {
	for {
		kept, err := s.load(ctx, token)
		if kept == nil || err != nil {
			return nil, err
		}
		change(kept)
		if err = s.put(ctx, kept); err == nil || !errors.Is(err, storage.ErrConflict) || ctx.Err() != nil {
			return kept, err
		}
	}
}

func (s cards) remove(ctx context.Context, token string) error {
	if err := s.kv.Delete(ctx, cardPrefix+token, storage.Any); err != nil {
		return fmt.Errorf("remove card: %w", err)
	}
	return nil
}

// each calls visit with every card. One that can not be read is reported to damaged.
func (s cards) each(ctx context.Context, visit func(*keptCard) error, damaged func(err error) error) error {
	for entry, err := range s.kv.List(ctx, storage.Range{Prefix: cardPrefix}) {
		if err != nil {
			return fmt.Errorf("list cards: %w", err)
		}
		kept, err := decodeCard(entry)
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

// prune removes cards that were closed before the given time.
func (s cards) prune(ctx context.Context, before time.Time) error {
	return s.each(ctx, func(kept *keptCard) error {
		if kept.open() || !kept.Ended.Before(before) {
			return nil
		}
		return s.remove(ctx, kept.Token)
	}, func(error) error { return nil })
}

// shown reports whether there is a point in sending the card: a question that is over
// before it was sent is none.
func (c *keptCard) shown() bool { return c.open() || c.Version == 1 }
