package turn

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge/queue"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// Failed logs why a job has no answer and returns what its sender is told: a sentence
// from a closed set, and the incident under which the log has the rest. That a budget is
// used up is no incident.
func (t *Runner) Failed(j *queue.Run, err error) string {
	var failure *agent.ModelError
	if errors.As(err, &failure) && failure.Kind == agent.KindBudget && failure.Notice != "" {
		Of(j).Refused = true
		t.cfg.Log.Info("no budget for an answer", "chat", j.Message.Chat.String(), "job", j.Key(), "err", err)
		return failure.Notice
	}
	j.Incident = queue.NewIncident()
	t.cfg.Log.Error("no answer", "incident", j.Incident, "chat", j.Message.Chat.String(), "job", j.Key(), "err", err)
	return fmt.Sprintf("%s\n\n_Incident %s_", t.cfg.Spell(j.Message.Chat.Platform, sentence(err, t.cfg.Timeout)), j.Incident)
}

// unanswered is what is told where a turn failed: where there was no budget for it, what the
// house makes of that.
func (t *Runner) unanswered(ctx context.Context, j *queue.Run, scope toolgroups.Scope, failure error) (string, error) {
	Of(j).Refused = false
	text := t.Failed(j, failure)
	if Of(j).Refused {
		return t.cfg.Host.Refused(ctx, j, scope, failure, text)
	}
	return text, nil
}

// sentence says in words what a person can know and do about a failed turn.
func sentence(err error, timeout time.Duration) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("I gave up on this after %s. What I found out so far is kept: ask again, or for a smaller step.", timeout)
	}
	if errors.Is(err, storage.ErrInvalid) {
		return "This became too long for me to keep, so I stopped and left it out of our conversation. Please ask for less at once."
	}
	var failure *agent.ModelError
	if !errors.As(err, &failure) {
		return "Something went wrong inside me, and I could not answer. Please try again; if it happens again, give the number below to whoever runs me."
	}
	switch failure.Kind {
	case agent.KindAuth:
		return "I can't answer right now: the language model rejects my key. Whoever runs me has to check it (OPENAI_API_KEY)."
	case agent.KindRateLimit:
		if failure.Status == http.StatusPaymentRequired || strings.Contains(failure.Error(), "insufficient_quota") {
			return "The model account has run out of credit. Whoever runs me has to top it up."
		}
		if failure.RetryAfter > 0 {
			return fmt.Sprintf("The language model is busy. Please try again in %s.", failure.RetryAfter.Round(time.Second))
		}
		return "The language model is busy. Please try again in a minute or two."
	case agent.KindUnavailable:
		if errors.Is(failure, agent.ErrNoAnswer) {
			return "The model gave no answer. Please try again."
		}
		return "I could not reach the language model. Please try again in a minute."
	case agent.KindOverflow:
		return "This conversation has grown too long for the language model. /new begins a fresh one; files and memory are kept."
	case agent.KindRejected:
		if refused(err) {
			return "The language model did not accept your message. I removed it so that we can go on."
		}
		return "The language model does not accept my requests. Whoever runs me finds the reason in the log."
	case agent.KindRounds:
		return "I went in circles and stopped without an answer. Please put it differently, or ask for a smaller step."
	case agent.KindBudget:
		return "The budget for this does not allow another answer now."
	}
	return "I could not answer. Please try again."
}
