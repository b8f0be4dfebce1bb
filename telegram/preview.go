package telegram

import (
	"context"
	"fmt"
	"strings"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/internal/retry"
)

// Rate limits of previews, from the rate that messages leave unused. Edits count like messages, and
// half of the total rate is reserved for answers.
const (
	previewGap      = 1200 * time.Millisecond
	previewGapGroup = 5 * time.Second
	previewRate     = 15
	previewBurst    = 25
	// reservedBeginnings is the part of the burst that is reserved for new previews.
	reservedBeginnings = 15
	// endRate and endBurst bound how many previews become answers in a second, and at once. Telegram
	// would refuse more, and then all of them would wait longer.
	endRate, endBurst = 25, 25
)

// Room implements [chats.Previewer]. There is no room while messages to the chat wait for their turn.
func (p *platform) Room(to chats.Address, id string) time.Duration {
	if !p.pacer.isIdle(chatID(to.Chat)) {
		return chatGap
	}
	gap, leave := previewGap, 0
	if strings.HasPrefix(to.Chat.ID, "-") {
		gap = previewGapGroup
	}
	if id != "" {
		leave = reservedBeginnings
	}
	return p.previewLimiter.Take(chatID(to.Chat), gap, leave)
}

// Begin implements [chats.Previewer].
func (p *platform) Begin(ctx context.Context, to chats.Address, show chats.Preview) (string, error) {
	return p.Send(ctx, to, show.Part)
}

// Update implements [chats.Previewer].
func (p *platform) Update(ctx context.Context, to chats.Address, id string, show chats.Preview) error {
	return p.Edit(ctx, to, id, show.Part)
}

// Finish implements [chats.Previewer].
func (p *platform) Finish(ctx context.Context, to chats.Address, id string, part chats.Part) error {
	for wait := p.finishLimiter.Take(chatID(to.Chat), 0, 0); wait > 0; wait = p.finishLimiter.Take(chatID(to.Chat), 0, 0) {
		if err := retry.Wait(ctx, wait); err != nil {
			return &chats.SendError{Outcome: chats.Later, Err: fmt.Errorf("telegram: finish a preview: %w", err)}
		}
	}
	return p.Edit(ctx, to, id, part)
}
