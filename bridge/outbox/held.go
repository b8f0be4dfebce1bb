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

// deadLetterAfter is how long a part waits for a platform that is down before it becomes a dead letter:
// by then a question is old, and a user who is told can ask again.
const deadLetterAfter = 24 * time.Hour

// lastChance is the time that a program, started again after more than deadLetterAfter, gets to find
// the platform working.
const lastChance = time.Minute

// errOverdue says that a part has waited for its platform for deadLetterAfter.
var errOverdue = errors.New("outbox: the platform has not taken it for a day")

// Resume trips the breaker for a job of a former run that waits for its platform: the outage may
// continue.
func (s *Sender) Resume(j *queue.Run) {
	if k := s.breakers[j.Message.Chat.Platform]; k != nil && !Of(j).OutageSince.IsZero() {
		k.report(false, &chats.SendError{Outcome: chats.Later, Outage: true, Err: errors.New("it was when the program ended")})
	}
}

// waitInOrder waits until the platform of a job works, and returns the probe to report to the breaker
// with the outcome of the request.
func (s *Sender) waitInOrder(ctx context.Context, j *queue.Run, k *breaker) (probe bool, err error) {
	if k.out.Load() {
		if d := Of(j); d.ready {
			d.Parts[0].State, d.ready = receipts.PartPending, false
		}
		if err := s.recordOutage(ctx, j); err != nil {
			return false, err
		}
	}
	bounded, cancel := s.bounded(ctx, j)
	defer cancel()
	return k.pass(bounded)
}

// recordOutage records that the platform has not accepted the next part. It is stored, so that a restart
// continues the same wait.
func (s *Sender) recordOutage(ctx context.Context, j *queue.Run) error {
	if !Of(j).OutageSince.IsZero() {
		return nil
	}
	Of(j).OutageSince = s.cfg.Now()
	if err := s.cfg.Jobs.SaveAlways(ctx, j); err != nil {
		Of(j).OutageSince = time.Time{}
		return fmt.Errorf("record that a send waits: %w", err)
	}
	return nil
}

// waitAgain waits before a part that the platform did not accept is sent once more.
func (s *Sender) waitAgain(ctx context.Context, j *queue.Run, d time.Duration) error {
	if err := s.recordOutage(ctx, j); err != nil {
		return err
	}
	bounded, cancel := s.bounded(ctx, j)
	defer cancel()
	return retry.Wait(bounded, d)
}

// bounded limits how long a delayed job waits. A notice about a dead letter waits as long as it takes.
func (s *Sender) bounded(ctx context.Context, j *queue.Run) (context.Context, context.CancelFunc) {
	d := Of(j)
	if d.OutageSince.IsZero() || d.DeadLetter != "" {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, max(lastChance, deadLetterAfter-s.cfg.Now().Sub(d.OutageSince)), errOverdue)
}

// giveUp makes the answer from a part on a dead letter, and puts a line that says so in its place.
func (s *Sender) giveUp(ctx context.Context, j *queue.Run, from int) error {
	d := Of(j)
	if d.Parts[from].Last {
		d.Parts[from].State = receipts.PartSent // no user misses the removal of a button
		return nil
	}
	incident, what, doubt := queue.NewIncident(), "this answer", ""
	if from > 0 {
		what = "the rest of this answer"
	}
	if err := s.keepDeadLetter(ctx, j, incident); err != nil {
		return err
	}
	if p := d.Parts[from]; p.Repeat || p.State == receipts.PartUnknown || p.State == receipts.PartSending {
		doubt = ", or was not told that it arrived"
	}
	d.DeadLetter = incident
	instead := notice(
		"I could not send %s for a day%s, so I have stopped trying. Please ask me again if you still need it.\n\nIncident %s", what, doubt, incident)
	instead.Edit = d.Parts[from].Edit
	d.Parts = append(d.Parts[:from:from], instead)
	return s.cfg.Jobs.SaveAlways(ctx, j)
}

func (s *Sender) keepDeadLetter(ctx context.Context, j *queue.Run, incident string) error {
	data, err := json.Marshal(&j.Job)
	if err != nil {
		return fmt.Errorf("encode job %s: %w", j.Key(), err)
	}
	writing, cancel := context.WithTimeout(context.WithoutCancel(ctx), queue.WriteTimeout)
	defer cancel()
	return s.cfg.DeadLetters.Add(writing, queue.DeadLetter{
		Key: queue.OpenPrefix + j.Key(), Chat: Address(j).Chat.String(), Incident: incident, Data: data,
		Reason: "not sent: " + j.Message.Chat.Platform + " has not taken it since " + Of(j).OutageSince.UTC().Format(time.DateTime),
	})
}
