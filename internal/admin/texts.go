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
	"oneclaw/internal/admin/signin"
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

// textSection returns a section with the texts of a turn if the visitor has announced reading the conversation,
// else with the form that does.
func (p *Pages) textSection(ctx context.Context, v signin.Session, key, log string, turn []agent.Message) (section, error) {
	s := section{Title: "What was said"}
	switch {
	case log == "":
		s.Text = []string{"It is part of no conversation."}
		return s, nil
	case !p.Texts.Allowed:
		s.Text = []string{"Texts, titles and names of files are not shown. The setting admin_texts (ONECLAW_ADMIN_TEXTS) allows it."}
		return s, nil
	}
	may, err := p.mayRead(ctx, v.User, log)
	switch {
	case err != nil:
		return s, err
	case !may:
		s.Text = []string{"Who reads what was said is named in the chat and in the audit."}
		s.Forms = []form{{View: messageView, Submit: "Read this conversation", Fields: []field{{Name: "key", Value: key}}}}
		return s, nil
	}
	if s.Quotes = p.quotes(turn); len(s.Quotes) == 0 {
		s.Text = []string{"Nothing is on record."}
	}
	return s, nil
}

// mayRead reports whether an administrator has recently announced reading a conversation.
func (p *Pages) mayRead(ctx context.Context, person, log string) (bool, error) {
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
func (p *Pages) announceReading(ctx context.Context, v signin.Session, chat chats.Chat, log string) error {
	if !p.Texts.Allowed || log == "" {
		return errNotFound
	}
	// A name must not contain Markdown.
	name := removeMarkup(cmp.Or(v.Name, v.User))
	said := fmt.Sprintf("%s, an administrator, reads this conversation on the administrators' page.", name)
	if err := p.Texts.Announce(ctx, chat, fmt.Sprintf("look/%s/%s/%d", v.User, log, p.Now().Unix()), said); err != nil {
		return fmt.Errorf("announce in %s that an administrator reads it: %w", chat, err)
	}
	// The entry permits reading, so it comes last.
	entry := audit.Entry{At: p.Now(), Action: readAction, By: v.User, Name: v.Name, Chat: audit.PageChat, About: log}
	return audit.Append(ctx, p.Store, queue.Hash(v.User, log), entry)
}

func removeMarkup(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("\\`*_[]<>~|&!@", r) {
			return ' '
		}
		return r
	}, name)
}

// quotes returns the texts of a conversation's messages, with secrets masked: half of one is not recognized.
func (p *Pages) quotes(turn []agent.Message) []quote {
	var all []quote
	add := func(by, text string) {
		if short := wording.Clip(strings.TrimSpace(p.Redact(text)), maxQuote); short != "" {
			all = append(all, quote{By: by, Text: short})
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

// plainText returns a line of the bridge's Markdown as text, without marks and escapes.
func plainText(line string) string {
	if italic, is := strings.CutPrefix(line, "_"); is {
		line = strings.TrimSuffix(italic, "_")
	}
	var out strings.Builder
	escaped := false
	for _, r := range strings.ReplaceAll(line, "**", "") {
		switch {
		case !escaped && r == '\\':
			escaped = true
			continue
		case !escaped && r == '`':
			continue
		}
		out.WriteRune(r)
		escaped = false
	}
	return out.String()
}
