package access

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/internal/wording"
	"oneclaw/storage"
)

// Reasons why [Import] leaves out a person.
var (
	ErrKnown    = errors.New("is known already")
	ErrTooMany  = fmt.Errorf("more than %d requests wait: /people add lets in more", maxOpenRequests)
	ErrNoPerson = errors.New("is not the id of one person")
)

// Import stores people from elsewhere as requests, on which an administrator decides with /people. It
// lets no user in and sends no message. It uses only User and Name of a [Person]. For each person it
// returns nil, or the reason why the person was left out. If write is false, it stores nothing. The bot
// must not be running.
func Import(ctx context.Context, kv storage.KV, people []Person, now time.Time, write bool) ([]error, error) {
	r := newRegister(kv, slog.New(slog.DiscardHandler))
	if err := r.load(ctx); err != nil {
		return nil, err
	}
	reasons := make([]error, len(people))
	open := len(r.filter(func(p person) bool { return p.hasAsked(now) }))
	for i, p := range people {
		one := r.find(p.User)
		chat, err := chats.ParseChat(p.User)
		switch {
		case err != nil || chat.Thread != "" || chat.ID == "*":
			reasons[i] = ErrNoPerson
			continue
		case one.User != "" && !one.isExpired(now):
			reasons[i] = ErrKnown
			continue
		case open >= maxOpenRequests:
			reasons[i] = ErrTooMany
			continue
		}
		one = person{User: p.User, Name: wording.OneLine(p.Name, maxName), Standing: standingAsked, Since: now, Until: now.Add(requestAge), rev: one.rev}
		open++
		if !write {
			r.set(one)
		} else if err := r.put(ctx, &one); err != nil {
			return nil, err
		}
	}
	return reasons, nil
}

// FindUser returns the id of a user with any standing, or of the bot's owner if user is empty, and the
// direct chat if it is known. The id is empty if there is no such user.
func FindUser(ctx context.Context, kv storage.KV, user string) (id string, chat chats.Chat, err error) {
	r := newRegister(kv, slog.New(slog.DiscardHandler))
	if err := r.load(ctx); err != nil {
		return "", chats.Chat{}, err
	}
	one, _ := r.owner()
	if user != "" {
		one = r.find(user)
	}
	return one.User, one.Chat, nil
}
