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

// deadLetterAfter is how long what is to be sent waits for a platform that is out of order
// before it is set aside: by then a question is old, and a person who is told can ask again.
const deadLetterAfter = 24 * time.Hour

// lastChance is what a program gets to find the platform in order that comes back after
// more than deadLetterAfter.
const lastChance = time.Minute

// errOverdue says that something has waited for its platform for deadLetterAfter.
var errOverdue = errors.New("outbox: the platform has not taken it for a day")

// Resume trips the breaker where a former run left a job that waits for its platform: the
// outage may last.
func (s *Sender) Resume(j *queue.Run) {
	if k := s.breakers[j.Message.Chat.Platform]; k != nil && !Of(j).OutageSince.IsZero() {
		k.report(false, &chats.SendError{Outcome: chats.Later, Outage: true, Err: errors.New("it was when the program ended")})
	}
}

// waitInOrder waits until the platform of a job is in order, and returns what the breaker is
// to be told with what becomes of the request.
func (s *Sender) waitInOrder(ctx context.Context, j *queue.Run, k *breaker) (probe bool, err error) {
	if k.out.Load() {
		if d := Of(j); d.ready {
			d.Parts[0].State, d.ready = receipts.PartPending, false
		}
		if err := s.noteHeld(ctx, j); err != nil {
			return false, err
		}
	}
	bounded, cancel := s.bounded(ctx, j)
	defer cancel()
	return k.pass(bounded)
}

// noteHeld notes that the platform has not taken what is to be sent. It is on disk, so that a
// restart goes on with the same wait.
func (s *Sender) noteHeld(ctx context.Context, j *queue.Run) error {
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

// waitAgain waits before what the platform did not take is sent once more.
func (s *Sender) waitAgain(ctx context.Context, j *queue.Run, d time.Duration) error {
	if err := s.noteHeld(ctx, j); err != nil {
		return err
	}
	bounded, cancel := s.bounded(ctx, j)
	defer cancel()
	return retry.Wait(bounded, d)
}

// bounded limits how long a job that is held up waits. What says that an answer was set
// aside waits for as long as it takes.
func (s *Sender) bounded(ctx context.Context, j *queue.Run) (context.Context, context.CancelFunc) {
	d := Of(j)
	if d.OutageSince.IsZero() || d.DeadLetter != "" {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, max(lastChance, deadLetterAfter-s.cfg.Now().Sub(d.OutageSince)), errOverdue)
}

// giveUp sets an answer aside from a part on, and has a line that says so wait in its place.
func (s *Sender) giveUp(ctx context.Context, j *queue.Run, from int) error {
	d := Of(j)
	if d.Parts[from].Last {
		d.Parts[from].State = receipts.PartSent // no user misses that a button goes away
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
