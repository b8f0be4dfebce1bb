package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/jobs"
	"oneclaw/internal/retry"
)

// asideAfter is how long what is to be sent waits for a platform that is out of order
// before it is set aside: by then a question is old, and a person who is told can ask again.
const asideAfter = 24 * time.Hour

// lastChance is what a program gets to find the platform in order that comes back after
// more than asideAfter.
const lastChance = time.Minute

// errOverdue says that something has waited for its platform for asideAfter.
var errOverdue = errors.New("bridge: the platform has not taken it for a day")

// stillHeld trips the breaker where a former run left something that waits for its
// platform: the outage may last.
func (b *Bridge) stillHeld(j *jobs.Job) {
	if k := b.breakers[j.Message.Chat.Platform]; k != nil && !j.Held.IsZero() {
		k.report(false, &chats.SendError{Outcome: chats.Later, Outage: true, Err: errors.New("it was when the program ended")})
	}
}

// noteHeld notes that the platform has not taken what is to be sent. It is on disk, so that a
// restart goes on with the same wait.
func (b *Bridge) noteHeld(j *jobs.Job) error {
	if !j.Held.IsZero() {
		return nil
	}
	j.Held = b.cfg.Now()
	if err := b.saveAlways(j); err != nil {
		j.Held = time.Time{}
		return fmt.Errorf("record that a send waits: %w", err)
	}
	return nil
}

// pass waits until something of a job may be sent.
func (b *Bridge) pass(ctx context.Context, j *jobs.Job) (probe bool, err error) {
	k := b.breakers[j.Message.Chat.Platform]
	if k.down() {
		for i := range j.Parts {
			if p := &j.Parts[i]; p.Ready {
				p.State, p.Ready = jobs.PartPending, false
			}
		}
		if err := b.noteHeld(j); err != nil {
			return false, err
		}
	}
	patient, cancel := b.patience(ctx, j)
	defer cancel()
	return k.pass(patient)
}

// waitAgain waits before what the platform did not take is sent once more.
func (b *Bridge) waitAgain(ctx context.Context, j *jobs.Job, failure *chats.SendError, d time.Duration) error {
	if isOutage(failure) {
		if err := b.noteHeld(j); err != nil {
			return err
		}
	}
	patient, cancel := b.patience(ctx, j)
	defer cancel()
	return retry.Wait(patient, d)
}

// patience bounds how long a job that is held up waits. What says that an answer was set
// aside waits for as long as it takes.
func (b *Bridge) patience(ctx context.Context, j *jobs.Job) (context.Context, context.CancelFunc) {
	if j.Held.IsZero() || j.Aside != "" {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, max(lastChance, asideAfter-b.cfg.Now().Sub(j.Held)), errOverdue)
}

// giveUp sets an answer aside from a part on, and has a line that says so wait in its place.
func (b *Bridge) giveUp(j *jobs.Job, from int) error {
	incident, what := jobs.NewIncident(), "this answer"
	if from > 0 {
		what = "the rest of this answer"
	}
	if err := b.asideJob(j, incident); err != nil {
		return err
	}
	text := fmt.Sprintf("I could not send %s for a day, and I have set it aside. Please ask me again if you still need it.", what)
	if p := j.Parts[from]; p.Repeat || p.State == jobs.PartUnknown || p.State == jobs.PartSending {
		text = fmt.Sprintf("I could not send %s for a day, or was not told that it arrived, and I have set it aside. Please ask me again if you still need it.", what)
	}
	j.Aside = incident
	j.Parts = append(j.Parts[:from:from], notice("%s\n\nIncident %s", text, incident))
	return b.saveAlways(j)
}

// asideJob sets aside what a job was to send.
func (b *Bridge) asideJob(j *jobs.Job, incident string) error {
	data, err := json.Marshal(j)
	if err != nil {
		return fmt.Errorf("encode job %s: %w", j.Key(), err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(b.lanes.Work()), jobs.StoreTimeout)
	defer cancel()
	return b.asides.Add(ctx, jobs.Aside{
		Key: jobs.OpenPrefix + j.Key(), Chat: j.Address().Chat.String(), Incident: incident, Data: data,
		Reason: "not sent: " + j.Message.Chat.Platform + " has not taken it since " + j.Held.UTC().Format(time.DateTime),
	})
}
