package slack

import (
	"context"
	"errors"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/internal/retry"
)

// Rate limits of previews. Slack allows 50 chat.update a minute for all channels together, and
// tolerates short bursts (docs.slack.dev, rate limits, tier 3). The final edit of a preview is one of
// them, and is reserved when the preview begins.
const (
	previewGap   = 1200 * time.Millisecond
	previewRate  = 0.5
	previewBurst = 20
	// reservedBeginnings is the part of the burst that is reserved for new previews.
	reservedBeginnings = 5
)

// previews implements [chats.Previewer] for a platform.
type previews struct {
	platform *platform
	limiter  *retry.OptionalLimiter
}

// Room implements [chats.Previewer]. There is no room while messages to the channel wait.
func (v *previews) Room(to chats.Address, id string) time.Duration {
	if wait, streams := v.platform.surface.Room(to.Chat.ID, id); streams {
		return wait
	}
	if v.platform.api.pacer.Busy(apiCall{method: postMessage, channel: to.Chat.ID}.key(), apiCall{method: updateMessage}.key()) {
		return time.Second
	}
	if id == "" {
		return v.limiter.Take(to.Chat.String(), previewGap, 0)
	}
	return v.limiter.Take(to.Chat.String(), previewGap, reservedBeginnings)
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
	v.platform.statuses.RecordAnswer(to.Chat, begun)
	v.platform.join(ctx, to.Chat, "")
	return ts, nil
}

// begin starts a stream if possible, and otherwise posts a message to be edited.
func (v *previews) begin(ctx context.Context, to chats.Address, show chats.Preview) (string, error) {
	p := v.platform
	if p.surface.CanStream(to.Chat) {
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
	if !is || failure.Outcome != chats.Refused || !isDirectID(to.Chat.ID) || to.Chat.Thread == "" || hasErrorCode(err, "message_not_found") {
		return err
	}
	// A message of an earlier process may still be a stream.
	ending := v.platform.surface.End(ctx, to.Chat.ID, id)
	if ending != nil {
		if later := v.platform.sendError(to, ending); later.Outcome == chats.Later {
			return later // a part sent now would stand behind the stream
		}
		v.platform.log.Warn("a stream may still be open", "chat", to.Chat.String(), "err", ending)
	}
	// Whether or not the stream has ended, its text stands above the part that is sent now.
	failure.MessageRemains = ending != nil || v.platform.surface.WasStream(id)
	return err
}

// SetWaiting implements [chats.WaitIndicator].
func (v *previews) SetWaiting(ctx context.Context, chat chats.Chat, on bool) {
	v.platform.surface.SetWaiting(ctx, chat, on)
}
