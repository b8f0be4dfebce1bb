package learning

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/storage"
)

// What is kept, one record for each chat that was told and for each person who said no, and
// the key of the pseudonyms.
const (
	prefix     = "learning/"
	toldPrefix = prefix + "told/"
	noPrefix   = prefix + "no/"
	saltKey    = prefix + "salt"
)

// notice is what a chat is told when the first answer is judged there.
const notice = "Thank you. Please note: my operator may export conversations that were rated here with 👍 or 👎, to test how I answer. Names, ids and secrets are replaced first, and quotes of other people are left out. If you do not want that for your messages, send /learning no."

// Consent knows which chats were told of exports, and who has said no. All of it is in the
// store, so every process that shares that agrees.
type Consent struct {
	Store storage.KV
	Now   func() time.Time
}

// Judged is told that a user has judged an answer in a chat. It returns what the chat has to
// be told, and what notes that it was; empty where it knows.
func (c Consent) Judged(ctx context.Context, chat chats.Chat) (text string, told func(context.Context) error, err error) {
	key := toldPrefix + chat.WithoutThread().String()
	if known, err := c.has(ctx, key); known || err != nil {
		return "", nil, err
	}
	return notice, func(ctx context.Context) error { return c.note(ctx, key) }, nil
}

// Commands is the command by which people say no, and yes again.
func (c Consent) Commands() []bridge.Command {
	return []bridge.Command{{
		CommandInfo: chats.CommandInfo{Name: "learning", Description: "Whether your conversations may be exported for tests: yes or no"},
		Alone:       true, Run: c.command,
	}}
}

func (c Consent) command(ctx context.Context, call bridge.CommandCall) (string, error) {
	switch strings.ToLower(strings.TrimSpace(call.Args)) {
	case "no":
		if err := c.note(ctx, noPrefix+call.User); err != nil {
			return "", err
		}
		return "Your conversations will not be exported, here or elsewhere. I cannot take back earlier exports. `/learning yes` allows it again.", nil
	case "yes":
		if err := c.Store.Delete(ctx, noPrefix+call.User, storage.Any); err != nil {
			return "", fmt.Errorf("note a consent: %w", err)
		}
	}
	no, err := c.Refused(ctx, call.User)
	if err != nil {
		return "", err
	}
	if no {
		return "You have said no: your conversations are not exported. `/learning yes` allows it again.", nil
	}
	return "My operator may export conversations with answers that were rated 👍 or 👎, to test how I answer. Names, ids and secrets are replaced first. `/learning no` keeps your conversations out of it.", nil
}

// Refused reports whether a user, as platform:id, has said no.
func (c Consent) Refused(ctx context.Context, user string) (bool, error) {
	return c.has(ctx, noPrefix+user)
}

// anyRefused reports whether any user of a platform has.
func (c Consent) anyRefused(ctx context.Context, platform string) (bool, error) {
	for _, err := range c.Store.List(ctx, storage.Range{Prefix: noPrefix + platform + ":", Limit: 1}) {
		if err != nil {
			return false, fmt.Errorf("look for who said no: %w", err)
		}
		return true, nil
	}
	return false, nil
}

func (c Consent) has(ctx context.Context, key string) (bool, error) {
	_, err := c.Store.Get(ctx, key)
	if errors.Is(err, storage.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read a consent: %w", err)
	}
	return true, nil
}

// note keeps that something was said, and when. Said again it is as it was.
func (c Consent) note(ctx context.Context, key string) error {
	_, err := c.Store.Put(ctx, key, []byte(c.Now().UTC().Format(time.RFC3339)), storage.Absent)
	if err != nil && !errors.Is(err, storage.ErrConflict) {
		return fmt.Errorf("note a consent: %w", err)
	}
	return nil
}
