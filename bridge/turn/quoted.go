package turn

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/internal/wording"
	"oneclaw/toolgroups"
)

// Bounds of the quoted messages that are added to a question.
const (
	quotedTokens = 2500
	// threadTokens and threadMessages bound the text of a thread, threadFiles its files.
	threadTokens   = 1500
	threadMessages = 20
	threadFiles    = 5
	// threadTimeout bounds the request to the platform.
	threadTimeout = 10 * time.Second
)

// gatherContext adds attachments, quotes, new messages in the thread and ambient messages to a question.
// New messages are those since the message with the id after. All but the ambient messages are stored
// with the question.
func (t *Runner) gatherContext(ctx context.Context, j *queue.Run, h *conversation.History, scope toolgroups.Scope, after string, message *agent.Message) error {
	if len(j.Message.Files) > 0 {
		if err := t.fetchFiles(ctx, j, j.Message.Files, scope, message); err != nil {
			return err
		}
	}
	var pointed []chats.Quoted
	if j.Message.InThread {
		said, err := t.readThread(ctx, j, h, after)
		if err != nil {
			t.cfg.Log.Warn("messages of a thread cannot be read", "job", j.Key(), "err", err)
			message.Text += notReceivedNote("what was said in this thread before")
		}
		pointed = append(pointed, said...)
	}
	pointed = append(pointed, j.Message.Quoted...)
	list, known := make([]conversation.Quote, len(pointed)), lettersOf(h.View(), len(pointed) > 0)
	for i, q := range pointed {
		if q.MayBeOwn() {
			q.Text = t.cfg.Redact(q.Text) // an answer may contain the secret for a [queue.SecretPlaceholder]
		}
		list[i] = conversation.Quote{Quoted: q, Known: isKnown(known, q.Text)}
		if len(q.Files) == 0 {
			continue
		}
		var with agent.Message
		if err := t.fetchFiles(ctx, j, quotedFiles(q), scope, &with); err != nil {
			return err
		}
		for n, f := range with.Files {
			list[i].Paths = append(list[i].Paths, f.Path)
			if q.MayBeOwn() {
				with.Files[n].Sum = "" // the model may have written it
			}
		}
		message.Files = append(message.Files, with.Files...)
		addNote(&list[i], with.Text)
	}
	others, err := t.holdsOthers(ctx, j, h, pointed)
	switch {
	case err != nil:
		return err
	case message.Origin != "":
	case others:
		message.Origin = agent.OriginQuoted
	case len(pointed) > 0:
		message.Origin = toolgroups.OriginOwn
	}
	message.Quoted = conversation.FormatQuotes(list, quotedTokens, message.Text != "")
	own := slices.DeleteFunc(list, func(q conversation.Quote) bool { return !q.MayBeOwn() })
	message.QuotedOwn = conversation.FormatQuotes(own, quotedTokens*max(len(own), 1), true) // no less of any than the model is shown
	t.addOverheard(ctx, j, h, after, message)
	return nil
}

// holdsOthers reports whether the attachments of a message, or its quotes, hold words of others than the sender and the
// bot. What the sender has spoken is their own. Who named the chat that a message of the bot is in may be another.
func (t *Runner) holdsOthers(ctx context.Context, j *queue.Run, h *conversation.History, quotes []chats.Quoted) (bool, error) {
	for _, q := range quotes {
		if !q.FromBot || q.From != "" || len(q.Files)+len(q.Skipped) > 0 {
			return true, nil
		}
		if own, err := t.isOwnAnswer(ctx, j, h, q.ID); !own || err != nil {
			return true, err
		}
	}
	return slices.ContainsFunc(j.Message.Files, func(a chats.Attachment) bool { return a.Sound.Kind != chats.SoundSpoken }), nil
}

// isOwnAnswer reports whether the message of the bot with an id is an answer that this conversation still has, or that
// of a task, and the model was shown no words of others than the sender, who had asked for it. Any other, such as that
// to another member, of a webhook, a card, one from before a /clear, one that has gone by its age, or one that is
// forwarded and so has no id, may repeat what others want, however short it is.
func (t *Runner) isOwnAnswer(ctx context.Context, j *queue.Run, h *conversation.History, id string) (bool, error) {
	if id == "" {
		return false, nil
	}
	found, err := findAnswer(ctx, t.cfg.Jobs, j.Message.Chat, id, func(*receipts.Receipt) bool { return true })
	if found == nil || err != nil {
		return false, err
	}
	key := found.receipt.Key()
	switch of, answered := conversation.AnsweredSession(ctx, t.cfg.Store, found.receipt); {
	case !answered, found.turn.HeldOthers, !j.Message.Direct && found.receipt.Message.SenderID() != j.Message.SenderID():
		return false, nil // it was judged for the person who asked, and what it repeats may be gone from this conversation
	case of.Log() == h.Log:
		return slices.ContainsFunc(h.View(), func(m agent.Message) bool { return m.Ref == key }), nil
	case of.Task == "":
		return false, nil
	default:
		answer, err := conversation.TaskAnswer(ctx, t.cfg.Store, of.Log(), key)
		return answer.IsAnswer() && answer.Origin == "", err
	}
}

// addOverheard adds the ambient messages of a group since the message with the id after to a question.
// They are not stored in the conversation, so they disappear when they are deleted.
func (t *Runner) addOverheard(ctx context.Context, j *queue.Run, h *conversation.History, after string, message *agent.Message) {
	heard := t.cfg.Host.AmbientMessages(ctx, j, after)
	list, known := make([]conversation.Quote, len(heard)), lettersOf(h.View(), len(heard) > 0)
	for i, q := range heard {
		list[i] = conversation.Quote{Quoted: q, Known: isKnown(known, q.Text)}
	}
	if len(heard) > 0 && message.Origin != toolgroups.OriginComputed {
		message.Origin = agent.OriginQuoted // also when they are gone
	}
	message.Overheard = conversation.PrependQuotes(list, quotedTokens, message.Quoted, message.Text != "")
}

// turnHistory returns the messages with which a turn begins. If the question was stored earlier, the
// ambient messages of the group are added to it again.
func (t *Runner) turnHistory(ctx context.Context, j *queue.Run, h *conversation.History) []agent.Message {
	view := h.View()
	at := slices.IndexFunc(view, func(m agent.Message) bool { return m.Ref == j.Key() })
	if at < 0 || len(h.Staged) > 0 {
		return view
	}
	view = slices.Clone(view)
	t.addOverheard(ctx, j, h, "", &view[at])
	return view
}

// quotedFiles returns the files of a quoted message. Unless the user forwards the message, recordings
// are not marked for transcription, because they were meant for others or are transcribed already.
func quotedFiles(q chats.Quoted) []chats.Attachment {
	if q.Kind == chats.RefForward {
		return q.Files
	}
	files := slices.Clone(q.Files)
	for i := range files {
		files[i].Sound = chats.Sound{}
	}
	return files
}

// addNote adds the transcripts of a quote's files, and the notes about missing files, to the quote.
func addNote(q *conversation.Quote, text string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		note, skipped := strings.CutPrefix(line, "[not received: ")
		if skipped || strings.HasPrefix(line, notKeptPrefix) {
			q.Skipped = append(q.Skipped, strings.TrimSuffix(note, "]"))
			continue
		}
		q.Text += "\n" + line
	}
}

// readThread returns the messages of a thread before a job's message: all at the beginning of a
// conversation, later only new ones. Messages from before a /clear are left out.
func (t *Runner) readThread(ctx context.Context, j *queue.Run, h *conversation.History, after string) ([]chats.Quoted, error) {
	archive, ok := t.cfg.Platforms[j.Message.Chat.Platform].(chats.ThreadReader)
	if !ok || h.Last > 0 && (after == "" || !j.Message.MentionsBot) {
		return nil, nil
	}
	session, err := conversation.SessionOf(ctx, t.cfg.Store, &j.Job)
	if err != nil {
		return nil, err
	}
	if h.Last == 0 && session.ClearedAt > 0 {
		if after = session.AfterID; after == "" {
			return nil, nil // the session began with a /forget
		}
	}
	ctx, cancel := context.WithTimeout(ctx, threadTimeout)
	defer cancel()
	list, err := archive.ReadThread(ctx, j.Message, after, threadMessages)
	said, failed := withoutTurn(ctx, t.cfg.Jobs, j, list)
	if err = cmp.Or(err, failed); h.Last > 0 { // the conversation contains the bot's answers
		said = slices.DeleteFunc(said, func(q chats.Quoted) bool { return q.FromBot })
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

// withoutTurn returns the messages of a thread that have no turn of their own, and will not get one.
func withoutTurn(ctx context.Context, store queue.Store, j *queue.Run, list []chats.Quoted) (others []chats.Quoted, err error) {
	const onItsWay = 5 * time.Minute // an older message without a job will not get one
	asked := false
	for _, q := range list {
		if q.Kind == chats.RefThread { // otherwise q belongs to the message before it
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

// hasTurn reports whether a message has or had a turn. It returns expected for an unknown message.
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

// lastAsked returns the id of the chat's last message in a conversation; empty if there is none.
func lastAsked(view []agent.Message, j *queue.Run) string {
	for _, v := range slices.Backward(view) {
		if m, ok := queue.MessageOf(cmp.Or(v.Ref, v.JoinedRef), ""); ok && m.Chat == j.Origin().WithoutThread() && m.Kind == chats.KindText {
			return m.ID
		}
	}
	return ""
}

// Bounds of the search for a text in a conversation: the maximum and the minimum number of compared
// letters, and the number of searched messages.
const (
	comparedLetters  = 200
	leastLetters     = 24
	searchedMessages = 30
)

// lettersOf returns the letters and digits of the last messages in a conversation, or nil if not wanted.
func lettersOf(view []agent.Message, wanted bool) (all []string) {
	for i := max(0, len(view)-searchedMessages); wanted && i < len(view); i++ {
		if m := &view[i]; m.Role == agent.RoleUser || m.Role == agent.RoleAssistant {
			all = append(all, wording.Letters(m.Text), wording.Letters(m.Quoted))
		}
	}
	return all
}

// isKnown reports whether one of the texts in said, reduced to letters, contains a text. Other
// characters are ignored, because the platform returns texts without markup.
func isKnown(said []string, text string) bool {
	wanted, _ := wording.SplitAt(wording.Letters(text), comparedLetters)
	return len(wanted) >= leastLetters && slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, wanted) })
}

// titleOf returns the title of a conversation that begins with a text.
func (t *Runner) titleOf(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(t.cfg.Redact(text)), "\n")
	return wording.Clip(line, 60)
}

// quotedText returns the text of the first quoted message that has one.
func quotedText(m chats.Message) string {
	for _, q := range m.Quoted {
		if q.Text != "" {
			return q.Text
		}
	}
	return ""
}
