package bridge

import (
	"context"
	"fmt"

	"oneclaw/agent"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/jobs"
)

// watching returns what a turn is observed by: whoever the configuration names, and the
// previews, where the platform shows any.
func (b *Bridge) watching() func(j *jobs.Job) (observe func(agent.Event), end func()) {
	told := b.cfg.Turns.Observe
	return func(j *jobs.Job) (observe func(agent.Event), end func()) {
		show, chat := func(agent.Event) {}, j.Message.Chat
		end = func() {}
		if _, ok := b.platforms[chat.Platform].(chats.Previewer); ok && b.cfg.Turns.Growing != nil {
			show, end = b.previews.Watch(j)
		} else if told == nil {
			return nil, end
		}
		return func(e agent.Event) {
			if show(e); told != nil {
				told(chat, e)
			}
		}, end
	}
}

// notes stand under a preview whose answer does not come.
var notes = map[jobs.State]string{
	jobs.StateStopped: "⏹ Stopped.",
	jobs.StateCleared: "⏹ Stopped: the conversation was cleared.",
	jobs.StateBarred:  "⏹ Stopped.",
}

// endPreview has the preview of a job that is about to be closed say that no more comes. It
// bears repeating.
func (c *carrier) endPreview(ctx context.Context, j *jobs.Job) error {
	p := j.Unended()
	if p == nil || j.Message.Kind == jobs.KindPreview {
		return nil
	}
	chat := j.Message.Chat
	chat.ID = p.In
	e := c.intake.job(chats.Message{Chat: chat, ID: jobs.Hash(j.Key()), Kind: jobs.KindPreview, User: "bot", Time: c.cfg.Now()})
	part := chats.Part{}
	if shown := c.sender.Render(j, p.Said); len(shown) > 0 {
		part = shown[0].Part
	}
	part.Note = notes[j.State]
	e.Preview, e.Parts = p, []jobs.SentPart{{Part: part, State: jobs.PartPending, Edit: p.ID, Last: true}}
	if err := c.intake.put(ctx, e); err != nil {
		return fmt.Errorf("end the preview of %s: %w", j.Key(), err)
	}
	return nil
}

// pressed answers the press of a button to stop. What it does was done when it came.
func (s *stops) pressed(ctx context.Context, j *jobs.Job) error {
	session, err := s.endOlder(ctx, j)
	if err != nil {
		return err
	}
	toast := "This answer is over already."
	if j.Cut || j.Dropped > 0 || session.StoppedAt >= j.Seq {
		toast = "Stopped."
	}
	s.desk.Toast(ctx, j.Message, toast)
	s.carrier.closeLater(j, jobs.StateDone)
	return nil
}

// aims reports whether a press to stop is about an answer that is not over. Every other order
// to stop is about all there is.
func (s *stops) aims(ctx context.Context, j *jobs.Job) (bool, error) {
	token := jobs.Stops(j.Message)
	if token == "" {
		return true, nil
	}
	open, _, err := s.jobs.Open(ctx, j.Message.Chat.Whole().String()+"/", func(chats.Chat) bool { return true })
	for _, other := range open {
		if shows(other, token) && other.Seq < j.Seq {
			return true, nil
		}
	}
	return false, err
}

// shows reports whether a preview with a token is that of the answer to a message.
func shows(j *jobs.Job, token string) bool {
	return j.Preview != nil && j.Preview.Token == token && j.Message.Kind != jobs.KindPreview
}
