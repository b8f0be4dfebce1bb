package turn

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"oneclaw/agent"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/storage"
)

// SetFeedback stores a user's rating of the answer that contains the message with the given id. The
// rating is stored in the receipt, or in the job if it is open, concurrently with its turn; see
// [queue.Store.Refresh]. It reports whether the rating changed. If no answer in the chat that passes
// accepts contains the message, it returns false.
func SetFeedback(ctx context.Context, jobs queue.Store, chat chats.Chat, id string, o receipts.Feedback, passes func(*receipts.Receipt) bool) (changed bool, err error) {
	o.At = o.At.UTC().Round(0) // equal to the decoded value
	err = storage.Retry(ctx, func() error {
		changed = false
		found, err := findAnswer(ctx, jobs, chat, id, passes)
		if found == nil || err != nil {
			return err
		}
		var write bool
		if write, changed = found.turn.AddFeedback(o); write {
			_, err = storage.Save(ctx, jobs.Store, found.key, found.record, found.rev)
		}
		return err
	})
	return changed && err == nil, err
}

// answerRecord is the record of a job or a receipt, the receipt of either, and the turn in the record.
type answerRecord struct {
	key     string
	rev     storage.Revision
	record  any
	receipt *receipts.Receipt
	turn    *receipts.Turn
}

// findAnswer returns the record of the answer that contains the message with the given id, or nil.
func findAnswer(ctx context.Context, jobs queue.Store, chat chats.Chat, id string, passes func(*receipts.Receipt) bool) (*answerRecord, error) {
	quoted := []byte(`"` + id + `"`)
	// If a job is closed between the two listings, its receipt is found in the second.
	for _, prefix := range []string{queue.OpenPrefix, receipts.Prefix} {
		for entry, err := range jobs.Store.List(ctx, storage.Range{Prefix: prefix + chat.WithoutThread().String() + "/"}) {
			if err != nil {
				return nil, fmt.Errorf("find the answer %s in %s: %w", id, chat, err)
			}
			if !bytes.Contains(entry.Value, quoted) {
				continue
			}
			found, r := &answerRecord{key: entry.Key, rev: entry.Revision}, new(receipts.Receipt)
			if prefix == receipts.Prefix {
				err = json.Unmarshal(entry.Value, r)
				found.record, found.turn = r, &r.Turn
			} else if j, broken := jobs.DecodeJob(entry); broken == nil {
				r, found.record, found.turn = j.Receipt(), &j.Job, &WorkOf(j).Turn
			} else {
				err = broken
			}
			if err == nil && r.HasSent(id) && passes(r) {
				found.receipt = r
				return found, nil
			}
		}
	}
	return nil, nil
}

// Question is a question with which an answer of the bot ends.
type Question struct {
	// Chat is the chat of the answer, with its thread.
	Chat chats.Chat
	// Text is the last line of the answer.
	Text string
}

// QuestionAt returns the question with which the answer ends whose last message has the given id; nil if there is none.
// It has to be an answer of the current conversation, or of a task in its chat, that passes accepts and that is complete.
func QuestionAt(ctx context.Context, jobs queue.Store, chat chats.Chat, id string, passes func(*receipts.Receipt) bool) (*Question, error) {
	found, err := findAnswer(ctx, jobs, chat, id, passes)
	if found == nil || err != nil {
		return nil, err
	}
	r := found.receipt
	if _, closed := found.record.(*receipts.Receipt); !closed || len(r.Answer.Parts) == 0 || r.Answer.Parts[len(r.Answer.Parts)-1].ID != id {
		return nil, nil
	}
	of, answered := conversation.AnsweredSession(ctx, jobs.Store, r)
	now, err := conversation.Current(ctx, jobs.Store, r.Message.Chat)
	if err != nil || !answered || of.Task == "" && of.Log() != now.Log() {
		return nil, err
	}
	text, err := answerTo(ctx, jobs.Store, of.Log(), r.Key())
	text = strings.TrimSpace(text)
	if !strings.HasSuffix(strings.TrimRight(text, "*_`~\"”’»)"), "?") {
		return nil, err
	}
	return &Question{Chat: r.Message.Chat, Text: text[strings.LastIndexByte(text, '\n')+1:]}, nil
}

// answerTo returns the text of the answer to the question with a Ref; empty if there is none.
func answerTo(ctx context.Context, store storage.Log, log, ref string) (string, error) {
	var answer string
	for m, err := range conversation.RecentMessages(ctx, store, log) {
		switch {
		case queue.IsDamaged(err):
			continue
		case err != nil:
			return "", fmt.Errorf("look for the answer in %s: %w", log, err)
		case m.Role == agent.RoleAssistant && m.Final:
			answer = m.Text
		case m.Ref == ref:
			return answer, nil
		}
	}
	return "", nil
}
