package slack

import (
	"context"
	"errors"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/internal/retry"
)

// Rate limits of previews. Slack takes 50 chat.update a minute, of all channels together, and tolerates
// short bursts (docs.slack.dev, rate limits, tier 3). The final edit of a preview is one of them, and
// is reserved when it begins.
const (
	previewGap   = 1200 * time.Millisecond
	previewRate  = 0.5
	previewBurst = 20
	// beginnings is the part of the burst for previews that have not begun.
	beginnings = 5
)

// previews implements [chats.Previewer] for a platform.
type previews struct {
	platform *Platform
	room     *retry.OptionalLimiter
}

// Room implements [chats.Previewer]. There is none while messages to the channel wait.
func (v *previews) Room(to chats.Address, id string) time.Duration {
	if wait, streams := v.platform.surface.Room(to.Chat.ID, id); streams {
		return wait
	}
	if v.platform.api.paces.Busy(request{method: postMessage, place: to.Chat.ID}.key(), request{method: updateMessage}.key()) {
		return time.Second
	}
	if id == "" {
		return v.room.Take(to.Chat.String(), previewGap, 0)
	}
	return v.room.Take(to.Chat.String(), previewGap, beginnings)
}

// Begin implements [chats.Previewer]. Responses to a command are too few for previews.
func (v *previews) Begin(ctx context.Context, to chats.Address, show chats.Preview) (string, error) {
	if err := checkAddress(to); err != nil {
		return "", err
	}
	begun := time.Now()
	ts, err := v.begin(ctx, to, show)
	if err != nil {
		return "", err
	}
	v.platform.statuses.Answered(to.Chat, begun)
	v.platform.join(ctx, to.Chat, "")
	return ts, nil
}

// begin starts a stream if that is possible, and else posts a message to be edited.
func (v *previews) begin(ctx context.Context, to chats.Address, show chats.Preview) (string, error) {
	p := v.platform
	if p.surface.Streams(to.Chat) {
		ts, err := p.surface.Begin(ctx, to.Chat, show)
		if err == nil {
			return ts, nil
		}
		if failure := p.sendError(to, err); failure.Outcome == chats.Unknown || failure.Outage {
			return "", failure
		}
	}
	ts, err := p.post(ctx, to, show.Part, show.Part.Text == "")
	if err != nil {
		return "", p.sendError(to, err)
	}
	return ts, nil
}

// Update implements [chats.Previewer].
func (v *previews) Update(ctx context.Context, to chats.Address, id string, show chats.Preview) error {
	if streams, err := v.platform.surface.Append(ctx, to.Chat.ID, id, show); streams {
		if err != nil {
			return v.platform.sendError(to, err)
		}
		return nil
	}
	if err := v.platform.update(ctx, to, id, show.Part, show.Part.Text == ""); err != nil {
		return v.platform.sendError(to, err)
	}
	return nil
}

// Finish implements [chats.Previewer].
func (v *previews) Finish(ctx context.Context, to chats.Address, id string, part chats.Part) error {
	err := v.platform.Edit(ctx, to, id, part)
	failure, is := errors.AsType[*chats.SendError](err)
	if !is || failure.Outcome != chats.Refused || !isDirectID(to.Chat.ID) || to.Chat.Thread == "" || refused(err, "message_not_found") {
		return err
	}
	// A message of a former process may still be a stream.
	if ending := v.platform.surface.End(ctx, to.Chat.ID, id); ending != nil {
		v.platform.log.Warn("a stream may not be ended", "chat", to.Chat.String(), "err", ending)
	}
	failure.Stands = v.platform.surface.Was(id)
	return err
}

// SetWaiting implements [chats.WaitIndicator].
func (v *previews) SetWaiting(ctx context.Context, chat chats.Chat, on bool) {
	v.platform.surface.SetWaiting(ctx, chat, on)
}
