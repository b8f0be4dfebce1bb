package turn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/internal/cache"
	"oneclaw/internal/wording"
	"oneclaw/internal/workspace"
	"oneclaw/toolgroups"
)

// maxShownChars bounds the shown part of a transcript, in characters.
const maxShownChars = 300

// Recording is an audio file to transcribe.
type Recording struct {
	// Name is the file name, whose extension need not match the content.
	Name string
	// Size is the size of Content in bytes. Length is the duration; 0 if unknown.
	Size   int64
	Length time.Duration
	// Content is open only until the call returns.
	Content io.Reader
}

// TranscriptionError is a permanent failure to transcribe a recording. Reason completes a sentence for
// users that begins with the recording.
type TranscriptionError struct {
	Reason string
	// NotConfigured says that no model for transcription is configured.
	NotConfigured bool
}

// Error returns the reason.
func (e *TranscriptionError) Error() string { return e.Reason }

// Reasons for a missing transcript if the transcriber gives none.
const (
	whyLost  = "could not be fetched"
	whyLarge = "is too large for me"
	whyFull  = "could not be saved: there is no room for it among your files"
	whyNever = "was not listened to: voice notes are not heard here until an administrator sets `voice.model`"
	whyLater = "could not be written down now: please send it again in a minute"
)

// addTranscript returns the transcript of a recording, and posts it in the chat. It first stores the
// transcript in the job's record, so that a recording is transcribed only once. If the write fails, the
// transcript is kept in memory. saved is the path of the file, fetched the error if there is no file.
func (t *Runner) addTranscript(ctx context.Context, j *queue.Run, scope toolgroups.Scope, a chats.Attachment, saved string, fetched error) (receipts.Transcript, error) {
	keeper := recordOwner(j)
	heard, known := WorkOf(keeper).transcriptOf(a.Ref)
	if !known {
		key := transcriptKey(keeper, a)
		unstored, kept := t.unstoredTranscripts.Get(key)
		if heard = unstored; !kept {
			var err error
			if heard, err = t.makeTranscript(ctx, j, scope, a, saved, fetched); err != nil {
				return heard, err
			}
		}
		if heard.Text == "" && heard.FailureReason == "" {
			return heard, nil // the recording is treated as an ordinary file
		}
		WorkOf(keeper).Transcripts = append(WorkOf(keeper).Transcripts, heard)
		if err := t.cfg.Jobs.Save(ctx, keeper); err != nil {
			WorkOf(keeper).Transcripts = WorkOf(keeper).Transcripts[:len(WorkOf(keeper).Transcripts)-1]
			t.unstoredTranscripts.Put(key, heard, cache.Forever)
			return heard, err
		}
		t.unstoredTranscripts.Forget(key)
	}
	if heard.Text == "" {
		return heard, nil
	}
	under := j.Message.ID
	if j.From != "" {
		under = "" // that message is in the old chat
	}
	line := "🎤 “" + wording.EscapeMarkdown(wording.OneLine(t.cfg.Redact(heard.Text), maxShownChars)) + "”"
	return heard, t.cfg.Host.PostLine(ctx, "heard/"+j.Key()+"/"+a.Ref, j, under, line)
}

func transcriptKey(keeper *queue.Run, a chats.Attachment) string { return keeper.Key() + " " + a.Ref }

// makeTranscript returns the transcript of a recording, or the reason why there is none. While the store
// is down, it returns an error without asking a model.
func (t *Runner) makeTranscript(ctx context.Context, j *queue.Run, scope toolgroups.Scope, a chats.Attachment, saved string, fetched error) (receipts.Transcript, error) {
	heard := receipts.Transcript{Ref: a.Ref}
	var err error
	switch {
	case errors.Is(fetched, chats.ErrTooLarge):
		heard.FailureReason = whyLarge
	case workspace.IsFull(fetched):
		heard.FailureReason = whyFull
	case fetched != nil:
		heard.FailureReason = whyLost
	default:
		if err := t.checkWritable(ctx, recordOwner(j)); err != nil {
			return heard, err
		}
		heard.Text, err = t.transcribe(ctx, scope, a, saved)
	}
	if cause := context.Cause(ctx); cause != nil {
		return heard, cause
	}
	if err != nil {
		heard.FailureReason = transcriptionFailure(t.cfg.Log, j, a, err)
	}
	return heard, nil
}

// transcriptionFailure returns why a recording has no transcript; empty if the user need not know.
func transcriptionFailure(log *slog.Logger, j *queue.Run, a chats.Attachment, err error) string {
	why, told := errors.AsType[*TranscriptionError](err)
	switch {
	case !told:
		log.Error("a recording cannot be transcribed", "job", j.Key(), "err", err)
		return whyLater
	case !why.NotConfigured:
		return why.Reason
	case a.Sound.Kind == chats.SoundSpoken:
		return whyNever
	}
	return ""
}

// transcribe transcribes a recording that is saved in the workspace.
func (t *Runner) transcribe(ctx context.Context, scope toolgroups.Scope, a chats.Attachment, saved string) (text string, err error) {
	if t.cfg.Transcribe == nil {
		return "", &TranscriptionError{NotConfigured: true}
	}
	root, err := workspace.Open(scope.Workspace)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	file, err := root.Open(saved)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return "", fmt.Errorf("get the size of a recording: %w", err)
	}
	text, err = t.cfg.Transcribe(ctx, scope, Recording{Name: saved, Size: info.Size(), Length: a.Sound.Length, Content: file})
	if text = strings.TrimSpace(text); err == nil && !wording.HasVisible(text) {
		err = &TranscriptionError{Reason: "has no words in it that I could hear"}
	}
	return text, err
}

// transcriptText returns the text about a recording that is added to the message for the model.
func transcriptText(heard receipts.Transcript, name string) string {
	switch {
	case heard.Text != "":
		return "\n[spoken in " + name + ", as a machine wrote it down]\n" + heard.Text
	case heard.FailureReason != "":
		return notReceivedNote(name + ": it " + heard.FailureReason)
	}
	return ""
}

// noTranscriptText returns the answer that says why a recording was not transcribed.
func (t *Runner) noTranscriptText(j *queue.Run, scope toolgroups.Scope, why string) string {
	switch {
	case why != whyNever:
		return "Your recording " + why + "."
	case scope.Role >= toolgroups.RoleAdmin:
		return "I can't hear voice notes yet. Set `voice.model`, and I can."
	}
	return "I can't hear voice notes yet; " + t.cfg.Host.Administrator(j.Message.SenderID()) + " can switch that on (`voice.model`)."
}

// gatherOrAnswer adds the attachments and the context to a message. If the message consists only of
// recordings without a transcript, it stores and returns an answer that needs no model.
func (t *Runner) gatherOrAnswer(ctx context.Context, j *queue.Run, h *conversation.History, scope toolgroups.Scope, message *agent.Message) (string, error) {
	if err := t.gatherContext(ctx, j, h, scope, lastAsked(h.View(), j), message); err != nil {
		return "", err
	}
	if questionText(j) != "" || len(j.Message.Skipped) > 0 || len(j.Message.Files) == 0 {
		return "", nil
	}
	answer := ""
	for _, a := range j.Message.Files {
		heard, known := WorkOf(j).transcriptOf(a.Ref)
		if !known || heard.Text != "" {
			return "", nil
		}
		answer += t.noTranscriptText(j, scope, heard.FailureReason) + "\n"
	}
	answer = strings.TrimSpace(answer)
	if h.Last == 0 {
		if err := t.addToList(ctx, j, scope); err != nil {
			return "", err
		}
	}
	h.Staged = []agent.Message{*message}
	return answer, t.saveMessage(context.WithoutCancel(ctx), j, h, agent.Message{Role: agent.RoleAssistant, Time: t.cfg.Now(), Text: answer, Final: true})
}

// wasSpoken reports whether the user spoke the message of a job, or a part of it.
func wasSpoken(j *queue.Run) bool {
	return slices.ContainsFunc(WorkOf(j).Transcripts, func(heard receipts.Transcript) bool {
		file := func(a chats.Attachment) bool { return a.Ref == heard.Ref }
		i := slices.IndexFunc(j.Message.Files, file)
		quoted := slices.ContainsFunc(j.Message.Quoted, func(q chats.Quoted) bool { return slices.ContainsFunc(q.Files, file) })
		return heard.Text != "" && !quoted && (i < 0 || j.Message.Files[i].Sound.Kind == chats.SoundSpoken) // i < 0: it is in a message that joined
	})
}
