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

// personas returns the profile of a turn: the model and the prompt of the agent, the list of
// skills, and the owner's memory.
type personas struct {
	models *models.Models
	skills *skills.Library
	memory *memory.Memory
	store  storage.KV
	now    func() time.Time
	log    *slog.Logger
	// begins caches when conversations began, which does not change.
	begins *cache.Cache[string, time.Time]
}

// Bounds of the cache.
const (
	maxBegins = 4096
	beginsAge = time.Hour
)

// of implements bridge.Config.Persona. An unreadable memory is no reason not to answer.
func (p *personas) of(ctx context.Context, scope toolgroups.Scope, purpose turn.Purpose) (turn.Profile, error) {
	persona, err := p.models.Persona(ctx, scope, purpose)
	if err != nil {
		return persona, err
	}
	persona.Prompt = join(persona.Prompt, p.skills.Section())
	if persona.Tail, err = p.memory.Snapshot(ctx, scope.Owner, p.begun(ctx, scope)); err != nil {
		p.log.Warn("answering without memory", "err", err)
	}
	return persona, nil
}

// recall implements bridge.Config.Recall.
func (p *personas) recall(ctx context.Context, scope toolgroups.Scope, text string) (string, error) {
	notes, err := p.memory.Recall(ctx, scope.Owner, text, p.begun(ctx, scope))
	var found []string
	for _, n := range notes {
		found = append(found, "- "+n.Text)
	}
	return strings.Join(found, "\n"), err
}

// begun returns when a conversation began: now, if unknown.
func (p *personas) begun(ctx context.Context, scope toolgroups.Scope) time.Time {
	key := scope.Owner + "\x00" + scope.Session
	if begun, ok := p.begins.Get(key); ok {
		return begun
	}
	c, err := conversation.FindConversation(ctx, p.store, scope.Owner, scope.Session)
	if err == nil {
		p.begins.Put(key, c.Begun, beginsAge)
		return c.Begun
	}
	if !errors.Is(err, storage.ErrNotFound) {
		p.log.Warn("beginning of a conversation not found", "err", err)
	}
	return p.now()
}

// join appends a section to a prompt.
func join(prompt, section string) string { return strings.TrimSpace(prompt + "\n\n" + section) }
