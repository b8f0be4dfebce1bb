package turn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/queue"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// Failed logs why a job has no answer and returns the text for its sender: a sentence from a closed
// set, and the incident under which the rest is logged. A used-up budget is not an incident.
func (t *Runner) Failed(ctx context.Context, j *queue.Run, err error) string {
	text, incident := t.explain(ctx, j, err)
	if !incident {
		return text.told
	}
	return WithIncident(text.told, j.Incident)
}

// WithIncident returns the text about a failure if no button shows its incident.
func WithIncident(told, incident string) string {
	return fmt.Sprintf("%s\n\n_Incident %s_", told, incident)
}

// explain is [Runner.Failed] with the incident separate.
func (t *Runner) explain(ctx context.Context, j *queue.Run, err error) (text failureText, incident bool) {
	var failure *agent.ModelError
	if errors.As(err, &failure) && failure.Kind == agent.KindBudget && failure.Notice != "" {
		Of(j).Refused = true
		t.cfg.Log.Info("no budget for an answer", "chat", j.Message.Chat.String(), "job", j.Key(), "err", err)
		return failureText{told: failure.Notice}, false
	}
	j.Incident = queue.NewIncident()
	text = failureTextOf(err, t.cfg.Timeout)
	log := t.cfg.Log
	if text.remedy != "" && text.remedy != seeLog {
		log = log.With("remedy", text.remedy)
	}
	log.Error("no answer", "incident", j.Incident, "chat", j.Message.Chat.String(), "job", j.Key(), "user", j.Message.By(), "err", err)
	if text.remedy != "" {
		text.told += " " + t.cfg.Host.Report(ctx, j, text.told, text.remedy)
	}
	text.told = t.cfg.FormatCommands(j.Message.Chat.Platform, text.told)
	return text, true
}

// failureAnswer returns the text for a failed turn: if there was no budget, the host's; else a card,
// unless files are sent with it.
func (t *Runner) failureAnswer(ctx context.Context, j *queue.Run, h *conversation.History, scope toolgroups.Scope, failure error) (string, error) {
	Of(j).Refused = false
	text, incident := t.explain(ctx, j, failure)
	switch {
	case Of(j).Refused:
		return t.cfg.Host.Refused(ctx, j, scope, failure, text.told)
	case incident && len(t.createdFiles(ctx, h, j.Key())) == 0:
		return t.cfg.Host.Failed(ctx, j, text.told, text.again), nil
	}
	return WithIncident(text.told, j.Incident), nil
}

// failureText is the text about a failed turn; remedy is the advice to an administrator if the sender
// can do nothing, and again says that asking once more may help.
type failureText struct {
	told, remedy string
	again        bool
}

// seeLog is the remedy if only the logged cause tells one.
const seeLog = "The log and the admin pages say why."

// filtered reports whether a provider refused the content of a message.
func filtered(failure *agent.ModelError) bool {
	why := strings.ToLower(failure.Error())
	return slices.ContainsFunc([]string{"content_filter", "content filter", "content_policy", "content policy", "content management policy", "moderation"}, func(word string) bool {
		return strings.Contains(why, word)
	})
}

// failureTextOf returns in words what a user can know and do about a failed turn.
func failureTextOf(err error, timeout time.Duration) failureText {
	told := func(text string) failureText { return failureText{told: text} }
	again := func(text string) failureText { return failureText{told: text, again: true} }
	if errors.Is(err, context.DeadlineExceeded) {
		return again(fmt.Sprintf("I gave up on this after %s. My results so far are kept: ask again, or ask for a smaller step.", timeout))
	}
	if errors.Is(err, storage.ErrInvalid) {
		return told("This became too long for me to keep, so I stopped and left it out of our conversation. Please ask for less at once.")
	}
	var failure *agent.ModelError
	if !errors.As(err, &failure) {
		return failureText{told: "Something went wrong inside me, and I could not answer. Please try again.", remedy: seeLog, again: true}
	}
	switch failure.Kind {
	case agent.KindAuth:
		return failureText{told: "I can't answer right now.", remedy: cmp.Or(failure.Remedy, "The model's server rejects the key.")}
	case agent.KindRateLimit:
		if failure.Status == http.StatusPaymentRequired || strings.Contains(failure.Error(), "insufficient_quota") {
			return failureText{told: "The model account has run out of credit.", remedy: "Top it up at the provider."}
		}
		if failure.RetryAfter > 0 {
			return again(fmt.Sprintf("The language model is busy. Please try again in %s.", failure.RetryAfter.Round(time.Second)))
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
		if refused(err) && filtered(failure) {
			return told("The provider's filter blocked your message. I removed it so that we can go on.")
		}
		if refused(err) {
			return told("The language model did not accept your message. I removed it so that we can go on.")
		}
		return failureText{told: "I can't answer right now.", remedy: "The model's server does not accept my requests: the admin pages say why, oneclaw doctor checks the settings."}
	case agent.KindRounds:
		return told("I went in circles and stopped without an answer. Please put it differently, or ask for a smaller step.")
	case agent.KindBudget:
		return told("The budget for this does not allow another answer now.")
	}
	return again("I could not answer. Please try again.")
}
