package admin

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge/audit"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/internal/admin/frame"
	"oneclaw/internal/wording"
)

const (
	// readingWindow is how long an administrator may read a conversation after announcing it.
	readingWindow = time.Hour
	// readAction is the action of the audit entries.
	readAction = "read"
	// maxAuditEntries bounds the audit entries that are searched for an announcement.
	maxAuditEntries = 500
	// maxQuote bounds a quoted text, in characters.
	maxQuote = 4000
)

// textPage is a page that can show texts: a view with a query value, and the log of the texts.
type textPage struct{ view, name, value, log string }

// textSection returns a section with the texts if the administrator
// has asked for them, else with the form to ask for them.
func (p *page) textSection(ctx context.Context, r frame.Request, at textPage, texts func() []frame.Quote) (frame.Section, error) {
	s := frame.Section{Title: "What was said"}
	switch {
	case at.log == "":
		s.Text = []string{"It is part of no conversation."}
		return s, nil
	case !p.Texts.Allowed:
		s.Text = []string{"Texts, titles and names of files are not shown. The setting admin_texts (ONECLAW_ADMIN_TEXTS) allows it."}
		return s, nil
	}
	looks, err := p.mayRead(ctx, r.Visitor.Person, at.log)
	if err != nil {
		return s, err
	}
	if looks && r.Query.Get("texts") == "1" {
		s.Quotes = texts()
		if len(s.Quotes) == 0 {
			s.Text = []string{"Nothing is on record."}
		}
		return s, nil
	}
	s.Text = []string{"Who reads what was said is named in the chat and in the audit."}
	s.Forms = []frame.Form{{View: at.view, Submit: "Read this conversation", Fields: []frame.Field{{Name: at.name, Value: at.value}}}}
	return s, nil
}

// mayRead reports whether an administrator has recently announced reading a conversation.
func (p *page) mayRead(ctx context.Context, person, log string) (bool, error) {
	entries, err := audit.List(ctx, p.Store, maxAuditEntries)
	if err != nil {
		return false, err
	}
	for _, e := range entries {
		if e.Action == readAction && e.By == person && e.About == log {
			return p.Now().Sub(e.At) < readingWindow, nil
		}
	}
	return false, nil
}

// announceReading announces to the chat, and records, that an administrator reads a conversation.
func (p *page) announceReading(ctx context.Context, r frame.Request, chat chats.Chat, at textPage) (string, error) {
	if !p.Texts.Allowed {
		return "", frame.ErrNotFound
	}
	v := r.Visitor
	// A name must not contain Markdown.
	name := removeMarkup(cmp.Or(v.Name, v.Person))
	text := fmt.Sprintf("%s, an administrator, reads this conversation on the administrators' page.", name)
	if err := p.Texts.Announce(ctx, chat, "look/"+v.Person+"/"+at.log, text); err != nil {
		return "", fmt.Errorf("announce in %s that an administrator reads it: %w", chat, err)
	}
	// The entry permits reading, so it comes last.
	entry := audit.Entry{At: p.Now(), Action: readAction, By: v.Person, Name: v.Name, Chat: audit.PageChat, About: at.log}
	if err := audit.Append(ctx, p.Store, queue.Hash(v.Person, at.log), entry); err != nil {
		return "", err
	}
	return frame.ViewURL(at.view, at.name, at.value, "texts", "1"), nil
}

func removeMarkup(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("\\`*_[]<>~|&!@", r) {
			return ' '
		}
		return r
	}, name)
}

func (p *page) readMessage(ctx context.Context, r frame.Request) (string, error) {
	key := r.Form.Get("key")
	told, err := p.explain(ctx, key)
	if err != nil {
		return "", err
	}
	log := conversationLog(told.Receipt)
	if log == "" {
		return "", frame.ErrNotFound
	}
	return p.announceReading(ctx, r, told.Receipt.Message.Chat, textPage{view: messageView, name: "key", value: key, log: log})
}

// quotes returns the texts of a conversation's messages.
func quotes(turn []agent.Message) []frame.Quote {
	var all []frame.Quote
	add := func(by, text string) {
		if short := wording.Clip(strings.TrimSpace(text), maxQuote); short != "" {
			all = append(all, frame.Quote{By: by, Text: short})
		}
	}
	for _, m := range turn {
		switch m.Role {
		case agent.RoleUser:
			add("Quoted", m.Quoted)
			add(cmp.Or(m.Sender, "Asked"), m.Text)
			for _, f := range m.Files {
				add("File", f.Path)
			}
		case agent.RoleAssistant:
			add(cmp.Or(m.Model, "Model"), m.Text)
			for _, call := range m.Calls {
				add("Calls "+call.EffectiveTool(), call.EffectiveArguments())
			}
		case agent.RoleTool:
			add("Result of "+m.Tool, m.Text)
		case agent.RoleSummary:
			add("Summary", m.Text)
		}
	}
	return all
}
