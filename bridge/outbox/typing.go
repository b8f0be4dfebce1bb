package outbox

import (
	"context"
	"sync/atomic"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/internal/rescue"
)

// typingDelay is how long an answer may take before the bot shows that it is at work:
// an instant answer needs no sign. typingInterval is how often it is shown again
// (Telegram shows it for about five seconds).
const (
	typingDelay    = 200 * time.Millisecond
	typingInterval = 4 * time.Second
)

// ShowTyping shows that the bot is at work until the returned function is called,
// however the work ends; that clears the sign and waits until it is cleared.
func (s *Sender) ShowTyping(ctx context.Context, to chats.Address) (stop func()) {
	typer, ok := s.cfg.Platforms[to.Chat.Platform].(chats.TypingIndicator)
	if !ok {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		rescue.Go(s.cfg.Log, "a sign of work", func() { keepTyping(ctx, typer, &s.breakers[to.Chat.Platform].out, to) })
	}()
	return func() { cancel(); <-done }
}

// keepTyping returns when ctx has ended and the sign, if it was shown, is cleared. A
// sign that cannot be shown is no reason to do anything else differently. While the
// platform is out of order there is none.
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
