package turn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/queue"
	"oneclaw/internal/wording"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// ReportFailure logs why a job has no answer, and returns the text for the sender: a fixed sentence for
// the kind of failure, and the incident under which the cause is logged. A used-up budget has no
// incident.
func (t *Runner) ReportFailure(ctx context.Context, j *queue.Run, err error) string {
	text, incident := t.explainFailure(ctx, j, err)
	if !incident {
		return text.message
	}
	return WithIncident(text.message, j.Incident)
}

// WithIncident adds the incident to the text about a failure, for texts without a details button.
func WithIncident(told, incident string) string {
	return fmt.Sprintf("%s\n\n_Incident %s_", told, incident)
}

// explainFailure is [Runner.ReportFailure], but returns the text without the incident.
func (t *Runner) explainFailure(ctx context.Context, j *queue.Run, err error) (text failureText, incident bool) {
	return t.explain(ctx, j, err, failureTextOf(err, t.timeoutOf(j)))
}

// explain is [Runner.explainFailure] with a given text.
func (t *Runner) explain(ctx context.Context, j *queue.Run, err error, text failureText) (_ failureText, incident bool) {
	WorkOf(j).Speak = nil // an answer that failed is not spoken
	var failure *agent.ModelError
	if errors.As(err, &failure) && failure.Kind == agent.KindBudget && failure.Notice != "" {
		WorkOf(j).Refused = true
		t.cfg.Log.Info("no budget for an answer", "chat", j.Message.Chat.String(), "job", j.Key(), "err", err)
		return failureText{message: failure.Notice}, false
	}
	j.Incident = queue.NewIncident()
	log := t.cfg.Log
	if text.remedy != "" && text.remedy != seeLog {
		log = log.With("remedy", text.remedy)
	}
	log.Error("no answer", "incident", j.Incident, "chat", j.Message.Chat.String(), "job", j.Key(), "user", j.Message.SenderID(), "err", err)
	if text.remedy != "" && WorkOf(j).Deep {
		text.message = deepFailedText
	}
	if text.remedy != "" {
		text.message += " " + t.cfg.Host.Report(ctx, j, text.message, text.remedy)
	}
	text.message = t.cfg.FormatCommands(j.Message.Chat.Platform, text.message)
	return text, true
}

// timeoutOf returns the time that the turn of a job may take.
func (t *Runner) timeoutOf(j *queue.Run) time.Duration {
	if IsBackground(j) {
		return t.cfg.Background.Timeout
	}
	return t.cfg.Timeout
}

// failureAnswer returns the answer of a failed turn, as a text or a card. If files are sent with the
// answer, it is a text.
func (t *Runner) failureAnswer(ctx context.Context, j *queue.Run, h *conversation.History, scope toolgroups.Scope, failure error) (string, error) {
	WorkOf(j).Refused = false
	text, incident := t.explainFailure(ctx, j, failure)
	noFiles := len(t.createdFiles(ctx, j, h)) == 0
	switch {
	case WorkOf(j).Refused && noFiles:
		return t.cfg.Host.RefusalAnswer(ctx, j, scope, failure, text.message)
	case WorkOf(j).Refused:
		return text.message, nil
	case incident && noFiles:
		return t.cfg.Host.FailureAnswer(ctx, j, text.message, text.retryHelps), nil
	}
	return WithIncident(text.message, j.Incident), nil
}

// failureText is the text about a failed turn. remedy is the advice to an administrator if the sender
// can do nothing. retryHelps says that asking again may help.
type failureText struct {
	message, remedy string
	retryHelps      bool
}

// deepFailedText is the message if the strong model fails for a reason that an administrator has to mend.
const deepFailedText = "The strong model can't answer right now. Without /deep, the usual model answers."

// NoticeLeftOut ends the text about a message that the language model does not accept. The message stays on
// record.
const NoticeLeftOut = "From now on I leave it out, so that we can go on. It is not deleted."

// seeLog is the remedy if only the logged cause can suggest one.
const seeLog = "The log and the admin pages say why."

// neverAccepted is the text about a message that the model's server rejects before it has answered any in the
// conversation: the cause is rather in the settings than in the message.
func neverAccepted() failureText {
	return failureText{
		message: "I can't answer right now.", retryHelps: true,
		remedy: "The model's server does not accept my requests: the admin pages say why, oneclaw doctor checks the settings.",
	}
}

// isContentFiltered reports whether a provider's content filter refused a message.
func isContentFiltered(failure *agent.ModelError) bool {
	why := strings.ToLower(failure.Error())
	return slices.ContainsFunc([]string{"content_filter", "content filter", "content_policy", "content policy", "content management policy", "moderation"}, func(word string) bool {
		return strings.Contains(why, word)
	})
}

// failureTextOf returns the text about an error of a turn, with what the user can do.
func failureTextOf(err error, timeout time.Duration) failureText {
	told := func(text string) failureText { return failureText{message: text} }
	again := func(text string) failureText { return failureText{message: text, retryHelps: true} }
	if errors.Is(err, context.DeadlineExceeded) {
		return again(fmt.Sprintf("I gave up on this after %s. My results so far are kept: ask again, or ask for a smaller step.", wording.DurationInWords(timeout)))
	}
	if errors.Is(err, storage.ErrInvalid) {
		return told("This became too long for me to keep, so I stopped and left it out of our conversation. Please ask for less at once.")
	}
	var failure *agent.ModelError
	if !errors.As(err, &failure) {
		return failureText{message: "Something went wrong inside me, and I could not answer. Please try again.", remedy: seeLog, retryHelps: true}
	}
	switch failure.Kind {
	case agent.KindAuth:
		return failureText{message: "I can't answer right now.", remedy: cmp.Or(failure.Remedy, "The model's server rejects the key.")}
	case agent.KindCredit:
		return failureText{message: "The model account has run out of credit.", remedy: "Top it up at the provider, or raise its spending limit there."}
	case agent.KindRateLimit:
		if failure.RetryAfter > 0 {
			return again(fmt.Sprintf("The language model is busy. Please try again in %s.", wording.DurationInWords(failure.RetryAfter)))
		}
		return again("The language model is busy. Please try again in a minute or two.")
	case agent.KindUnavailable:
		if errors.Is(failure, agent.ErrNoAnswer) {
			return again("The model gave no answer. Please try again.")
		}
		return again("I could not reach the language model. Please try again in a minute.")
	case agent.KindOverflow:
		return told("This conversation has grown too long for the language model. /new begins a fresh one; files and memory are kept.")
	case agent.KindRejected:
		if isRefusal(err) && isContentFiltered(failure) {
			return told("The provider's filter blocked your message. " + NoticeLeftOut)
		}
		if isRefusal(err) {
			return told("The language model did not accept your message. " + NoticeLeftOut)
		}
		return failureText{message: "I can't answer right now.", remedy: "The model's server does not accept my requests: the admin pages say why, oneclaw doctor checks the settings."}
	case agent.KindRounds:
		return told("I went in circles and stopped without an answer. Please put it differently, or ask for a smaller step.")
	case agent.KindTokens:
		return told("This used up the tokens that one background task may take, and I stopped without an answer. Ask for a smaller step.")
	case agent.KindBudget:
		return told("The budget for this does not allow another answer now.")
	}
	return again("I could not answer. Please try again.")
}
