package app

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"oneclaw/bridge/conversation"
	"oneclaw/bridge/turn"
	"oneclaw/internal/cache"
	"oneclaw/internal/models"
	"oneclaw/storage"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/memory"
	"oneclaw/toolgroups/skills"
)

// profileBuilder builds the profile of a turn: the model and the prompt of the agent, the list of
// skills, and the owner's memory.
type profileBuilder struct {
	models *models.Models
	skills *skills.Library
	memory *memory.Memory
	store  storage.KV
	now    func() time.Time
	log    *slog.Logger
	// starts caches the start times of conversations.
	starts *cache.Cache[string, time.Time]
}

// Bounds of the cache of start times.
const (
	maxStarts = 4096
	startTTL  = time.Hour
)

// profile implements turn.Settings.Profile. If the memory cannot be read, the turn runs without it.
func (p *profileBuilder) profile(ctx context.Context, scope toolgroups.Scope, purpose turn.Purpose) (turn.Profile, error) {
	persona, err := p.models.Profile(ctx, scope, purpose)
	if err != nil {
		return persona, err
	}
	persona.Prompt = joinPrompt(persona.Prompt, p.skills.Section())
	if scope.Outsider {
		return persona, nil // the facts are the owner's
	}
	notes, err := p.memory.Notes(ctx, scope.Owner)
	if err != nil {
		p.log.Warn("answering without memory", "err", err)
		persona.PromptOthers = true // what is recalled may be of others
		return persona, nil
	}
	persona.Tail = memory.Snapshot(notes, p.conversationStart(ctx, scope))
	for _, n := range notes {
		if n.IsOthers(scope.User, scope.Direct) {
			persona.PromptOthers, persona.PromptShown = true, persona.PromptShown && n.WasShownTo(scope.User)
		}
		if n.Outside {
			persona.PromptOutside = append(persona.PromptOutside, n.Text)
		}
	}
	return persona, nil
}

// recall implements turn.Settings.Recall.
func (p *profileBuilder) recall(ctx context.Context, scope toolgroups.Scope, text string) (found string, own, shown bool, err error) {
	if scope.Outsider {
		return "", true, true, nil
	}
	notes, err := p.memory.Recall(ctx, scope.Owner, text, p.conversationStart(ctx, scope))
	var lines []string
	own, shown = true, true
	for _, n := range notes {
		others := n.IsOthers(scope.User, scope.Direct)
		lines, own, shown = append(lines, p.memory.Line(n)), own && !others, shown && (!others || n.WasShownTo(scope.User))
	}
	return strings.Join(lines, "\n"), own, shown, err
}

// conversationStart returns when a conversation began, or the current time if that is unknown.
func (p *profileBuilder) conversationStart(ctx context.Context, scope toolgroups.Scope) time.Time {
	key := scope.Owner + "\x00" + scope.Session
	if begun, ok := p.starts.Get(key); ok {
		return begun
	}
	c, err := conversation.FindConversation(ctx, p.store, scope.Owner, scope.Session)
	if err == nil {
		p.starts.Put(key, c.StartedAt, startTTL)
		return c.StartedAt
	}
	if !errors.Is(err, storage.ErrNotFound) {
		p.log.Warn("cannot read the start time of a conversation", "err", err)
	}
	return p.now()
}

// joinPrompt appends a section to a prompt.
func joinPrompt(prompt, section string) string { return strings.TrimSpace(prompt + "\n\n" + section) }
