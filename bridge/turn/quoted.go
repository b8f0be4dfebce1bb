package turn

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"
	"unicode"

	"oneclaw/agent"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/internal/wording"
	"oneclaw/toolgroups"
)

// Bounds of what is added to a question from others' messages.
const (
	quotedTokens = 2500
	// threadTokens and threadMessages bound the text of a thread, threadFiles its files.
	threadTokens   = 1500
	threadMessages = 20
	threadFiles    = 5
	// threadTimeout bounds the request to the platform.
	threadTimeout = 10 * time.Second
)

// gather adds to a question its attachments and quotes, and what was said after the message with the id
// after. All is stored with the question, once, so that what a model was shown stays the same.
func (t *Runner) gather(ctx context.Context, j *queue.Run, h *conversation.History, scope toolgroups.Scope, after string, message *agent.Message) error {
	if len(j.Message.Files) > 0 {
		if err := t.fetchFiles(ctx, j, j.Message.Files, scope, message); err != nil {
			return err
		}
	}
	var pointed []chats.Quoted
	if j.Message.Inside {
		said, err := t.said(ctx, j, h, after)
		if err != nil {
			t.cfg.Log.Warn("what was said in a thread is not known", "job", j.Key(), "err", err)
			message.Text += notReceived("what was said in this thread before")
		}
		pointed = append(pointed, said...)
	}
	pointed = append(pointed, j.Message.Quoted...)
	list, known := make([]conversation.Quote, len(pointed)), lettersOf(h.View(), len(pointed) > 0)
	for i, q := range pointed {
		if q.Own {
			q.Text = t.cfg.Redact(q.Text) // it may contain a [queue.SecretPlaceholder]
		}
		list[i] = conversation.Quote{Quoted: q, Known: isKnown(known, q.Text)}
		if len(q.Files) == 0 {
			continue
		}
		var with agent.Message
		if err := t.fetchFiles(ctx, j, sounds(q), scope, &with); err != nil {
			return err
		}
		for _, f := range with.Files {
			list[i].Paths = append(list[i].Paths, f.Path)
		}
		message.Files = append(message.Files, with.Files...)
		addNote(&list[i], with.Text)
	}
	message.Quoted = conversation.QuoteText(list, quotedTokens, message.Text != "")
	t.overhear(ctx, j, h, after, message)
	return nil
}

// overhear shows the model what was said in a group, not to the bot, after the message with the id
// after. No conversation stores it, so it is deleted with its source.
func (t *Runner) overhear(ctx context.Context, j *queue.Run, h *conversation.History, after string, message *agent.Message) {
	heard := t.cfg.Host.Heard(ctx, j, after)
	list, known := make([]conversation.Quote, len(heard)), lettersOf(h.View(), len(heard) > 0)
	for i, q := range heard {
		list[i] = conversation.Quote{Quoted: q, Known: isKnown(known, q.Text)}
	}
	message.Overheard = conversation.QuotedAhead(list, quotedTokens, message.Quoted, message.Text != "")
}

// view returns the messages that a turn begins with. A turn that continues, whose question was stored
// before, is shown the group's messages again.
func (t *Runner) view(ctx context.Context, j *queue.Run, h *conversation.History) []agent.Message {
	view := h.View()
	at := slices.IndexFunc(view, func(m agent.Message) bool { return m.Ref == j.Key() })
	if at < 0 || len(h.Staged) > 0 {
		return view
	}
	view = slices.Clone(view)
	t.overhear(ctx, j, h, "", &view[at])
	return view
}

// sounds returns the sounds of a quoted message that are transcribed: only those that the user
// forwards. The rest was said to others, or was transcribed when it was said.
func sounds(q chats.Quoted) []chats.Attachment {
	if q.How == chats.PointForward {
		return q.Files
	}
	files := slices.Clone(q.Files)
	for i := range files {
		files[i].Sound = chats.Sound{}
	}
	return files
}

// addNote adds to a quote the results of its files: transcripts, and failures.
func addNote(q *conversation.Quote, text string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		note, skipped := strings.CutPrefix(line, "[not received: ")
		if skipped || strings.HasPrefix(line, unkept) {
			q.Skipped = append(q.Skipped, strings.TrimSuffix(note, "]"))
			continue
		}
		q.Text += "\n" + line
	}
}

// said returns what was said in a thread before a message: everything if the conversation begins, later
// what is new. What a /clear has closed does not return.
func (t *Runner) said(ctx context.Context, j *queue.Run, h *conversation.History, after string) ([]chats.Quoted, error) {
	archive, ok := t.cfg.Platforms[j.Message.Chat.Platform].(chats.ThreadReader)
	if !ok || h.Last > 0 && (after == "" || !j.Message.Called) {
		return nil, nil
	}
	session, err := conversation.Of(ctx, t.cfg.Store, &j.Job)
	if err != nil {
		return nil, err
	}
	if h.Last == 0 && session.ClearedAt > 0 {
		if after = session.After; after == "" {
			return nil, nil // a user was forgotten
		}
	}
	ctx, cancel := context.WithTimeout(ctx, threadTimeout)
	defer cancel()
	list, err := archive.ReadThread(ctx, j.Message, after, threadMessages)
	said, failed := withoutTurn(ctx, t.cfg.Jobs, j, list)
	if err = cmp.Or(err, failed); h.Last > 0 { // the conversation has the bot's answers
		said = slices.DeleteFunc(said, func(q chats.Quoted) bool { return q.Own })
	}
	said = conversation.LastQuotes(said, threadTokens)
	files := 0
	for i := len(said) - 1; i >= 0; i-- {
		q := &said[i]
		for len(q.Files) > threadFiles-files {
			last := len(q.Files) - 1
			q.Skipped = append(q.Skipped, q.Files[last].Name+": there are too many files in this thread")
			q.Files = q.Files[:last]
		}
		files += len(q.Files)
	}
	return said, err
}

// withoutTurn returns the messages of a job's thread that have no turn of their own, and never will.
func withoutTurn(ctx context.Context, store queue.Store, j *queue.Run, list []chats.Quoted) (others []chats.Quoted, err error) {
	const onItsWay = 5 * time.Minute // for a message accepted by a process that died
	asked := false
	for _, q := range list {
		if q.How == chats.PointThread { // else it belongs to the one before it
			expected := q.Addressed && j.Message.Time.Sub(q.Time) < onItsWay
			if asked, err = hasTurn(ctx, store, chats.Message{Chat: j.Origin(), ID: q.ID, Kind: chats.KindText}, expected); err != nil {
				return others, err
			}
		}
		if !asked {
			others = append(others, q)
		}
	}
	return others, nil
}

// hasTurn reports whether a message has or had a turn; expected is the result if it has not arrived.
func hasTurn(ctx context.Context, store queue.Store, m chats.Message, expected bool) (bool, error) {
	known, err := store.Find(ctx, queue.KeyOf(m))
	switch {
	case queue.IsDamaged(err):
		return true, nil
	case err != nil:
		return false, err
	case known == nil:
		return expected, nil
	case known.Answer.Notice != "":
		return false, nil
	}
	switch known.State {
	case receipts.Open, receipts.Waiting, receipts.Done, receipts.Failed, receipts.Joined:
		return true, nil
	}
	return false, nil
}

// lastAsked returns the id of the last message of the chat in the conversation; empty if there is none.
func lastAsked(view []agent.Message, j *queue.Run) string {
	for _, v := range slices.Backward(view) {
		if m, ok := queue.MessageOf(cmp.Or(v.Ref, v.Joined), ""); ok && m.Chat == j.Origin().WithoutThread() && m.Kind == chats.KindText {
			return m.ID
		}
	}
	return ""
}

// Bounds of the comparison that finds a text in a conversation: the letters compared, the least number
// of them, and the messages searched.
const (
	comparedLetters = 200
	leastLetters    = 24
	lookedThrough   = 30
)

// lettersOf returns the letters of the last messages of a conversation, if wanted.
func lettersOf(view []agent.Message, wanted bool) (all []string) {
	for i := max(0, len(view)-lookedThrough); wanted && i < len(view); i++ {
		if m := &view[i]; m.Role == agent.RoleUser || m.Role == agent.RoleAssistant {
			all = append(all, letters(m.Text), letters(m.Quoted))
		}
	}
	return all
}

// isKnown reports whether a text is among those with these letters. Other characters may differ: the
// platform shows the text without markup.
func isKnown(said []string, text string) bool {
	wanted, _ := wording.Split(letters(text), comparedLetters)
	return len(wanted) >= leastLetters && slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, wanted) })
}

func letters(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, text)
}

func title(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return wording.Clip(line, 60)
}

// quotedText returns the text of the first quoted message.
func quotedText(m chats.Message) string {
	for _, q := range m.Quoted {
		if q.Text != "" {
			return q.Text
		}
	}
	return ""
}
