package turn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
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

// Recording is a sound to be transcribed.
type Recording struct {
	// Name is its file name, which need not match the content.
	Name string
	// Size is the length of Content in bytes, Length the duration; 0 if unknown.
	Size   int64
	Length time.Duration
	// Content is open only until the call returns.
	Content io.Reader
}

// TranscriptionError says why a recording has no transcript, as the rest of a sentence for users that
// begins with the recording. A retry would not help.
type TranscriptionError struct {
	Why string
	// Never says that no recording is transcribed here.
	Never bool
}

// Error returns the reason.
func (e *TranscriptionError) Error() string { return e.Why }

// Reasons for a missing transcript if the transcriber gives none.
const (
	whyLost  = "could not be fetched"
	whyLarge = "is too large for me"
	whyFull  = "could not be saved: there is no room for it among your files"
	whyNever = "was not listened to: voice notes are not heard here until an administrator sets `voice.model`"
	whyLater = "could not be written down now: please send it again in a minute"
)

// addTranscript adds the transcript of a sound to a message. The job's record holds it before it is shown, so
// that a sound is transcribed once; if the write fails, memory keeps it until one succeeds. saved is
// the path of the file; fetched is the error if there is none.
func (t *Runner) addTranscript(ctx context.Context, j *queue.Run, scope toolgroups.Scope, a chats.Attachment, saved string, fetched error) (receipts.Transcript, error) {
	keeper := recordOwner(j)
	heard, known := Of(keeper).transcriptOf(a.Ref)
	if !known {
		key := unheardKey(keeper, a)
		unstored, kept := t.unheard.Get(key)
		if heard = unstored; !kept {
			var err error
			if heard, err = t.transcript(ctx, j, scope, a, saved, fetched); err != nil {
				return heard, err
			}
		}
		if heard.Text == "" && heard.Why == "" {
			return heard, nil // it is an ordinary file
		}
		Of(keeper).Transcripts = append(Of(keeper).Transcripts, heard)
		if err := t.cfg.Jobs.Save(ctx, keeper); err != nil {
			Of(keeper).Transcripts = Of(keeper).Transcripts[:len(Of(keeper).Transcripts)-1]
			t.unheard.Put(key, heard, cache.Forever)
			return heard, err
		}
		t.unheard.Forget(key)
	}
	if heard.Text == "" {
		return heard, nil
	}
	under := j.Message.ID
	if j.From != "" {
		under = "" // that message is in the old chat
	}
	line := "🎤 “" + wording.Escape(wording.OneLine(t.cfg.Redact(heard.Text), maxShownChars)) + "”"
	return heard, t.cfg.Host.PostLine(ctx, "heard/"+j.Key()+"/"+a.Ref, j, under, line)
}

func unheardKey(keeper *queue.Run, a chats.Attachment) string { return keeper.Key() + " " + a.Ref }

// transcript returns the transcript of a sound, or why there is none. No model is asked while the store is
// down.
func (t *Runner) transcript(ctx context.Context, j *queue.Run, scope toolgroups.Scope, a chats.Attachment, saved string, fetched error) (receipts.Transcript, error) {
	heard := receipts.Transcript{Ref: a.Ref}
	var err error
	switch {
	case errors.Is(fetched, chats.ErrTooLarge):
		heard.Why = whyLarge
	case workspace.NoRoom(fetched):
		heard.Why = whyFull
	case fetched != nil:
		heard.Why = whyLost
	default:
		if err := t.writable(ctx, recordOwner(j)); err != nil {
			return heard, err
		}
		heard.Text, err = t.transcribe(ctx, scope, a, saved)
	}
	if cause := context.Cause(ctx); cause != nil {
		return heard, cause
	}
	if err != nil {
		heard.Why = whyUnheard(t.cfg.Log, j, a, err)
	}
	return heard, nil
}

// whyUnheard returns why a sound has no transcript; empty if that does not matter.
func whyUnheard(log *slog.Logger, j *queue.Run, a chats.Attachment, err error) string {
	why, told := errors.AsType[*TranscriptionError](err)
	switch {
	case !told:
		log.Error("a recording could not be written down", "job", j.Key(), "err", err)
		return whyLater
	case !why.Never:
		return why.Why
	case a.Sound.Kind == chats.SoundSpoken:
		return whyNever
	}
	return ""
}

// transcribe transcribes a saved sound.
func (t *Runner) transcribe(ctx context.Context, scope toolgroups.Scope, a chats.Attachment, saved string) (text string, err error) {
	if t.cfg.Transcribe == nil {
		return "", &TranscriptionError{Never: true}
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
		return "", fmt.Errorf("size of a recording: %w", err)
	}
	text, err = t.cfg.Transcribe(ctx, scope, Recording{Name: saved, Size: info.Size(), Length: a.Sound.Length, Content: file})
	if text = strings.TrimSpace(text); err == nil && !wording.Visible(text) {
		err = &TranscriptionError{Why: "has no words in it that I could hear"}
	}
	return text, err
}

// transcriptText returns the transcript as a message contains it.
func transcriptText(heard receipts.Transcript, name string) string {
	switch {
	case heard.Text != "":
		return "\n[spoken in " + name + ", as a machine wrote it down]\n" + heard.Text
	case heard.Why != "":
		return notReceived(name + ": it " + heard.Why)
	}
	return ""
}

// unheardText tells the sender of a recording why it was not transcribed.
func (t *Runner) unheardText(j *queue.Run, scope toolgroups.Scope, why string) string {
	switch {
	case why != whyNever:
		return "Your recording " + why + "."
	case scope.Role >= toolgroups.RoleAdmin:
		return "I can't hear voice notes yet. Set `voice.model`, and I can."
	}
	return "I can't hear voice notes yet; " + t.cfg.Host.Administrator(j.Message.By()) + " can switch that on (`voice.model`)."
}

// take gathers the attachments of a message. A message that holds only recordings without a transcript
// is answered at once: the model would have nothing to answer.
func (t *Runner) take(ctx context.Context, j *queue.Run, h *conversation.History, scope toolgroups.Scope, message *agent.Message) (string, error) {
	if err := t.gather(ctx, j, h, scope, lastAsked(h.View(), j), message); err != nil {
		return "", err
	}
	if asked(j) != "" || len(j.Message.Skipped) > 0 || len(j.Message.Files) == 0 {
		return "", nil
	}
	answer := ""
	for _, a := range j.Message.Files {
		heard, known := Of(j).transcriptOf(a.Ref)
		if !known || heard.Text != "" {
			return "", nil
		}
		answer += t.unheardText(j, scope, heard.Why) + "\n"
	}
	answer = strings.TrimSpace(answer)
	if h.Last == 0 {
		if err := t.List(ctx, j, scope); err != nil {
			return "", err
		}
	}
	h.Staged = []agent.Message{*message}
	return answer, t.keep(context.WithoutCancel(ctx), j, h, agent.Message{Role: agent.RoleAssistant, Time: t.cfg.Now(), Text: answer, Final: true})
}
