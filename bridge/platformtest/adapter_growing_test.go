package platformtest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"oneclaw/bridge/chats"
)

var _ chats.Previewer = (*adapter)(nil)

// noted is the text of a part with its note.
func noted(part chats.Part) string {
	if part.Note == "" {
		return part.Text
	}
	return strings.TrimSpace(part.Text + "\n\n" + part.Note)
}

func (a *adapter) Room(chats.Address, string) time.Duration { return 0 }

func (a *adapter) Begin(ctx context.Context, to chats.Address, show chats.Preview) (string, error) {
	if streams(to) {
		show.Part.Buttons = nil
	}
	id, err := a.Send(ctx, to, show.Part)
	a.stream(id, streams(to))
	failure, is := errors.AsType[*chats.SendError](err)
	switch {
	case is && failure.RetryAfter > 0 && a.has("calls floods of previews unknown"):
		failure.Outcome = chats.Unknown
	case is && failure.Outcome == chats.Unknown && a.has("calls lost previews not sent"):
		failure.Outcome = chats.Later
	}
	return id, err
}

func (a *adapter) Update(ctx context.Context, to chats.Address, id string, show chats.Preview) error {
	if streams(to) {
		show.Part.Buttons = nil
	}
	return a.change(ctx, to, id, show.Part)
}

// streams reports whether an answer streams by means of the service.
func streams(to chats.Address) bool { return strings.HasPrefix(to.Chat.ID, "dm-") }

// stream has a message stream, or do so no more.
func (a *adapter) stream(id string, on bool) {
	a.m.change(func() {
		for i := range a.m.view.Messages {
			if s := &a.m.view.Messages[i]; s.ID == id {
				s.Streams = on
			}
		}
	})
}

// Stop implements [Stopper].
func (m *memory) Stop(in Place, by, message string) {
	(&adapter{m: m}).stream(message, false)
	if m.bug != "does not hear the service's button" {
		m.send(in, by, "/stop", func(*chats.Message) {})
	}
}

func (a *adapter) Finish(ctx context.Context, to chats.Address, id string, part chats.Part) error {
	switch {
	case a.has("ends previews by posting"), a.restarted && a.has("forgets its previews"):
		_, err := a.Send(ctx, to, part)
		return err
	case a.has("leaves the button"):
		part.Buttons = [][]chats.Button{laterButton()}
	}
	err := a.change(ctx, to, id, part)
	if !a.has("leaves streams open") {
		a.stream(id, false)
	}
	if failure, is := errors.AsType[*chats.SendError](err); is && failure.Outcome == chats.Refused {
		failure.MessageRemains = streams(to)
	}
	if failure, is := errors.AsType[*chats.SendError](err); is && failure.Outcome == chats.Refused && a.has("takes what is gone for shown") {
		return nil
	}
	return err
}

// change edits a message, unless a fault is met.
func (a *adapter) change(ctx context.Context, to chats.Address, id string, part chats.Part) error {
	a.m.mu.Lock()
	fault := a.m.edits[to.Chat.ID]
	delete(a.m.edits, to.Chat.ID)
	a.m.mu.Unlock()
	failure := &chats.SendError{Err: errors.New(string(fault.Effect)), RetryAfter: fault.RetryAfter}
	switch fault.Effect {
	case RateLimited:
		failure.Outcome = chats.Later
		return failure
	case ServerError:
		return failure
	case Refused:
		failure.Outcome = chats.Refused
		return failure
	}
	part.Text = noted(part)
	err := a.Edit(ctx, to, id, part)
	if fault.Effect == AnswerDropped && err == nil {
		return failure
	}
	return err
}

// Remove implements [Remover].
func (m *memory) Remove(in Place, message string) {
	m.change(func() {
		m.view.Messages = slices.DeleteFunc(slices.Clone(m.view.Messages), func(s Shown) bool { return s.Place == in && s.ID == message })
	})
}
