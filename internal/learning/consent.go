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

// Keys: one record for each notified chat and for each
// user who opted out, and the key of the pseudonyms.
const (
	prefix         = "learning/"
	notifiedPrefix = prefix + "told/"
	optOutPrefix   = prefix + "no/"
	saltKey        = prefix + "salt"
)

// notice is sent to a chat with the first feedback there.
const notice = "Thank you. Please note: my operator may export conversations that were rated here with 👍 or 👎, to test how I answer. Names, ids and secrets are replaced first, and quotes of other people are left out. If you do not want that for your messages, send /learning no."

// Consent records which chats were notified of exports, and
// which users opted out, in the store that all replicas share.
type Consent struct {
	Store storage.KV
	Now   func() time.Time
}

// FeedbackNotice is called when a user has given feedback in a chat, at the given time. It returns the
// notice for the chat and a function that records the notice as sent, with that time, because earlier
// feedback is not exported; empty if the chat was notified before.
func (c Consent) FeedbackNotice(ctx context.Context, chat chats.Chat, rated time.Time) (text string, told func(context.Context) error, err error) {
	key := notifiedPrefix + chat.WithoutThread().String()
	if known, err := c.has(ctx, key); known || err != nil {
		return "", nil, err
	}
	return notice, func(ctx context.Context) error { return c.recordOnce(ctx, key, rated) }, nil
}

// Commands returns the command to opt out, and in again.
func (c Consent) Commands() []bridge.Command {
	return []bridge.Command{{
		CommandInfo: chats.CommandInfo{Name: "learning", Description: "Whether your conversations may be exported for tests: yes or no"},
		Ephemeral:   true, Run: c.runCommand,
	}}
}

func (c Consent) runCommand(ctx context.Context, call bridge.CommandCall) (string, error) {
	switch strings.ToLower(strings.TrimSpace(call.Args)) {
	case "no":
		if err := c.recordOnce(ctx, optOutPrefix+call.User, c.Now()); err != nil {
			return "", err
		}
		return "Your conversations will not be exported, here or elsewhere. I cannot take back earlier exports. `/learning yes` allows it again.", nil
	case "yes":
		if err := c.Store.Delete(ctx, optOutPrefix+call.User, storage.Any); err != nil {
			return "", fmt.Errorf("record a consent: %w", err)
		}
	}
	no, err := c.HasOptedOut(ctx, call.User)
	if err != nil {
		return "", err
	}
	if no {
		return "You have said no: your conversations are not exported. `/learning yes` allows it again.", nil
	}
	return "My operator may export conversations with answers that were rated 👍 or 👎, to test how I answer. Names, ids and secrets are replaced first. `/learning no` keeps your conversations out of it.", nil
}

// HasOptedOut reports whether a user, as platform:id, has opted out.
func (c Consent) HasOptedOut(ctx context.Context, user string) (bool, error) {
	return c.has(ctx, optOutPrefix+user)
}

// anyOptedOut reports whether any user of a platform has opted out.
func (c Consent) anyOptedOut(ctx context.Context, platform string) (bool, error) {
	for _, err := range c.Store.List(ctx, storage.Range{Prefix: optOutPrefix + platform + ":", Limit: 1}) {
		if err != nil {
			return false, fmt.Errorf("look for users who opted out: %w", err)
		}
		return true, nil
	}
	return false, nil
}

func (c Consent) has(ctx context.Context, key string) (bool, error) {
	_, known, err := c.read(ctx, key)
	return known, err
}

// read returns the value of a key, and false if it is not stored.
func (c Consent) read(ctx context.Context, key string) (value string, known bool, err error) {
	entry, err := c.Store.Get(ctx, key)
	if errors.Is(err, storage.ErrNotFound) {
		return "", false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("read a consent: %w", err)
	}
	return string(entry.Value), true, nil
}

// notifiedSince returns from when on the feedback in a chat may be exported, and false if none may.
func (c Consent) notifiedSince(ctx context.Context, chat chats.Chat) (since time.Time, notified bool, err error) {
	at, known, err := c.read(ctx, notifiedPrefix+chat.WithoutThread().String())
	if !known || err != nil {
		return since, false, err
	}
	since, err = time.Parse(time.RFC3339, at)
	return since, err == nil, nil
}

// recordOnce stores a key with a time. Repeating it changes nothing.
func (c Consent) recordOnce(ctx context.Context, key string, at time.Time) error {
	_, err := c.Store.Put(ctx, key, []byte(at.UTC().Format(time.RFC3339)), storage.Absent)
	if err != nil && !errors.Is(err, storage.ErrConflict) {
		return fmt.Errorf("record a consent: %w", err)
	}
	return nil
}
