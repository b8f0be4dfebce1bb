package outbox

import (
	"context"
	"sync/atomic"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/internal/rescue"
)

// typingDelay is how long a turn runs before the typing indicator is shown, because an instant answer
// needs none. typingInterval is the time between refreshes (Telegram shows it for about five seconds).
const (
	typingDelay    = 200 * time.Millisecond
	typingInterval = 4 * time.Second
)

// ShowTyping shows the typing indicator until stop is called. stop returns when the indicator is
// cleared.
func (s *Sender) ShowTyping(ctx context.Context, to chats.Address) (stop func()) {
	typer, ok := s.cfg.Platforms[to.Chat.Platform].(chats.TypingIndicator)
	if !ok {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		rescue.Go(s.cfg.Log, "a typing indicator", func() { keepTyping(ctx, typer, &s.breakers[to.Chat.Platform].isTripped, to) })
	}()
	return func() { cancel(); <-done }
}

// keepTyping refreshes the typing indicator until ctx ends, and then clears it. It ignores errors. While
// the platform is down, it does nothing.
func keepTyping(ctx context.Context, typer chats.TypingIndicator, out *atomic.Bool, to chats.Address) {
	timer := time.NewTimer(typingDelay)
	defer timer.Stop()
	shown := false
	for {
		select {
		case <-timer.C:
			if !out.Load() {
				call, cancel := context.WithTimeout(context.WithoutCancel(ctx), typingInterval)
				_ = typer.SetTyping(call, to, true)
				cancel()
				shown = true
			}
			timer.Reset(typingInterval)
		case <-ctx.Done():
			if shown {
				call, cancel := context.WithTimeout(context.WithoutCancel(ctx), typingInterval)
				defer cancel()
				_ = typer.SetTyping(call, to, false)
			}
			return
		}
	}
}
