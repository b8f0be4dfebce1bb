package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/internal/retry"
)

// deadLetterAfter is how long a part waits for a platform that is down before its answer becomes a dead
// letter. By then the question is old, and the user gets a notice and can ask again.
const deadLetterAfter = 24 * time.Hour

// lastChance is the minimum wait for the platform after a restart, even if deadLetterAfter has passed
// already.
const lastChance = time.Minute

// noticeChance is lastChance for the notice about a dead letter, whose day ended while the platform was down.
const noticeChance = time.Hour

// errOverdue is returned when a part has waited for its platform for deadLetterAfter.
var errOverdue = errors.New("outbox: the platform has not accepted the message for a day")

// RestoreOutage trips the breaker for a job from an earlier run that waits for its platform, because the
// outage may continue.
func (s *Sender) RestoreOutage(j *queue.Run) {
	if k := s.breakers[j.Message.Chat.Platform]; k != nil && !DeliveryOf(j).OutageSince.IsZero() {
		k.report(false, &chats.SendError{Outcome: chats.Later, Outage: true, Err: errors.New("the platform was down when the program ended")})
	}
}

// awaitPlatform waits until the breaker allows a request to the platform of a job. The caller reports
// probe to the breaker, with the outcome of the request.
func (s *Sender) awaitPlatform(ctx context.Context, j *queue.Run, k *breaker) (probe bool, err error) {
	if k.isTripped.Load() {
		if d := DeliveryOf(j); d.firstRecorded {
			d.Parts[0].State, d.firstRecorded = receipts.PartPending, false
		}
		if err := s.recordOutage(ctx, j); err != nil {
			return false, err
		}
	}
	bounded, cancel := s.withOutageLimit(ctx, j)
	defer cancel()
	begun := s.cfg.Now()
	probe, err = k.awaitPass(bounded)
	// A wait that is longer than one for the next probe means that the platform could not be reached. The
	// day of a notice stands still meanwhile: its user should not miss it because the outage went on.
	if d, waited := DeliveryOf(j), s.cfg.Now().Sub(begun); d.DeadLetter != "" && waited > lastChance {
		d.OutageSince = d.OutageSince.Add(waited)
	}
	return probe, err
}

// recordOutage stores the time since which the platform does not accept the next part, unless it is
// stored already, so that the wait continues after a restart.
func (s *Sender) recordOutage(ctx context.Context, j *queue.Run) error {
	if !DeliveryOf(j).OutageSince.IsZero() {
		return nil
	}
	DeliveryOf(j).OutageSince = s.cfg.Now()
	if err := s.cfg.Jobs.SaveAlways(ctx, j); err != nil {
		DeliveryOf(j).OutageSince = time.Time{}
		return fmt.Errorf("record an outage: %w", err)
	}
	return nil
}

// waitBeforeRetry waits before a part that the platform did not accept is sent once more. begun is when this
// process began to send the part. The waits can all be short, so each attempt is followed by a look at the time.
func (s *Sender) waitBeforeRetry(ctx context.Context, j *queue.Run, begun time.Time, d time.Duration) error {
	if err := s.recordOutage(ctx, j); err != nil {
		return err
	}
	now, w := s.cfg.Now(), DeliveryOf(j)
	chance := lastChance
	if w.DeadLetter != "" {
		chance = noticeChance
	}
	if now.Sub(w.OutageSince) >= deadLetterAfter && now.Sub(begun) >= chance {
		return errOverdue
	}
	bounded, cancel := s.withOutageLimit(ctx, j)
	defer cancel()
	return retry.Wait(bounded, d)
}

// withOutageLimit bounds how long a delayed job waits. A notice about a dead letter waits for as long as the
// platform cannot be reached.
func (s *Sender) withOutageLimit(ctx context.Context, j *queue.Run) (context.Context, context.CancelFunc) {
	d := DeliveryOf(j)
	if d.OutageSince.IsZero() || d.DeadLetter != "" {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, max(lastChance, deadLetterAfter-s.cfg.Now().Sub(d.OutageSince)), errOverdue)
}

// giveUp stores a dead letter for a job, and replaces the parts from the index from on by a notice. The notice
// has a day of its own; then the chat goes on without it.
func (s *Sender) giveUp(ctx context.Context, j *queue.Run, from int) error {
	d := DeliveryOf(j)
	if d.Parts[from].RemovesButtons {
		d.Parts[from].State = receipts.PartSent // a button that stays is no loss for users
		return nil
	}
	if d.DeadLetter != "" {
		d.Parts[from].State = receipts.PartFailed
		s.cfg.Log.Error("the notice about a dead letter could not be sent", "incident", d.DeadLetter, "job", j.Key())
		return nil
	}
	incident, what, doubt := queue.NewIncident(), "this answer", ""
	if from > 0 {
		what = "the rest of this answer"
	}
	if err := s.addDeadLetter(ctx, j, incident); err != nil {
		return err
	}
	if p := d.Parts[from]; p.Repeat || p.State == receipts.PartUnknown || p.State == receipts.PartSending {
		doubt = ", or was not told that it arrived"
	}
	d.DeadLetter, d.OutageSince = incident, s.cfg.Now()
	instead := newNotice(
		"I could not send %s for a day%s, so I have stopped trying. Please ask me again if you still need it.\n\nIncident %s", what, doubt, incident)
	instead.ReplacesID = d.Parts[from].ReplacesID
	d.Parts = append(d.Parts[:from:from], instead)
	return s.cfg.Jobs.SaveAlways(ctx, j)
}

func (s *Sender) addDeadLetter(ctx context.Context, j *queue.Run, incident string) error {
	left := j.Clone()
	if d := DeliveryOf(left); d.QuotesOthers {
		d.Parts = withoutTexts(d.Parts)
	}
	data, err := json.Marshal(&left.Job)
	if err != nil {
		return fmt.Errorf("encode job %s: %w", j.Key(), err)
	}
	writing, cancel := context.WithTimeout(context.WithoutCancel(ctx), queue.WriteTimeout)
	defer cancel()
	return s.cfg.DeadLetters.Add(writing, queue.DeadLetter{
		Key: queue.OpenPrefix + j.Key(), Chat: Address(j).Chat.String(), Incident: incident, Data: data, QuotedUser: DeliveryOf(j).QuotedUser,
		Reason: "not sent: " + j.Message.Chat.Platform + " has not accepted it since " + DeliveryOf(j).OutageSince.UTC().Format(time.DateTime),
	})
}
