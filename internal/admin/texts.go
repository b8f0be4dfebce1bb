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
	// lookTime is for how long an administrator who said so may read a conversation.
	lookTime = time.Hour
	// read is the action of the audit.
	read = "read"
	// maxEntries bounds the entries of the audit in which a look is searched for.
	maxEntries = 500
	// maxQuote bounds a text that is shown, in characters.
	maxQuote = 4000
)

// place is a page on which texts can be shown: a view with a query, and the log that they are of.
type place struct{ view, name, value, log string }

// said is the section with what was said: the texts where the administrator has asked for them, else how
// to ask.
func (p *page) said(ctx context.Context, r frame.Request, at place, texts func() []frame.Quote) (frame.Section, error) {
	s := frame.Section{Title: "What was said"}
	switch {
	case at.log == "":
		s.Text = []string{"It is part of no conversation."}
		return s, nil
	case !p.Texts.Shown:
		s.Text = []string{"Texts, titles and names of files are not shown. The setting admin_texts (ONECLAW_ADMIN_TEXTS) allows it."}
		return s, nil
	}
	looks, err := p.looks(ctx, r.Visitor.Person, at.log)
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

// looks reports whether an administrator has said lately that they read a conversation.
func (p *page) looks(ctx context.Context, person, log string) (bool, error) {
	entries, err := audit.List(ctx, p.Store, maxEntries)
	if err != nil {
		return false, err
	}
	for _, e := range entries {
		if e.Action == read && e.By == person && e.About == log {
			return p.Now().Sub(e.At) < lookTime, nil
		}
	}
	return false, nil
}

// look records, and tells the chat, that an administrator reads a conversation.
func (p *page) look(ctx context.Context, r frame.Request, chat chats.Chat, at place) (string, error) {
	if !p.Texts.Shown {
		return "", frame.ErrNotFound
	}
	v := r.Visitor
	// Markdown has no part in a name.
	name := plainName(cmp.Or(v.Name, v.Person))
	text := fmt.Sprintf("%s, an administrator, reads this conversation on the administrators' page.", name)
	if err := p.Texts.Announce(ctx, chat, "look/"+v.Person+"/"+at.log, text); err != nil {
		return "", fmt.Errorf("say in %s that somebody reads it: %w", chat, err)
	}
	// The entry is what lets them read, so it comes last.
	entry := audit.Entry{At: p.Now(), Action: read, By: v.Person, Name: v.Name, Chat: audit.Page, About: at.log}
	if err := audit.Append(ctx, p.Store, queue.Hash(v.Person, at.log), entry); err != nil {
		return "", err
	}
	return frame.To(at.view, at.name, at.value, "texts", "1"), nil
}

func plainName(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("\\`*_[]<>~|&!@", r) {
			return ' '
		}
		return r
	}, name)
}

func (p *page) readMessage(ctx context.Context, r frame.Request) (string, error) {
	key := r.Form.Get("key")
	told, err := p.told(ctx, key)
	if err != nil {
		return "", err
	}
	log := logOf(told.Receipt)
	if log == "" {
		return "", frame.ErrNotFound
	}
	return p.look(ctx, r, told.Receipt.Message.Chat, place{view: messageView, name: "key", value: key, log: log})
}

// quotes are the texts of messages of a conversation.
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
				add("Calls "+call.Runs(), call.Arg())
			}
		case agent.RoleTool:
			add("Result of "+m.Tool, m.Text)
		case agent.RoleSummary:
			add("Summary", m.Text)
		}
	}
	return all
}
