package slack

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/platformtest"
	emulator "oneclaw/internal/emulator/slack"
	"oneclaw/internal/redact"
)

func TestAnyAnswerInAnyChunks(t *testing.T) {
	f := setup(t, quick(), nil)
	p, err := newPlatform(config{Settings: Settings{BotToken: redact.Secret(f.BotToken()), AppToken: redact.Secret(f.AppToken()), APIURL: f.url}})
	if err != nil {
		t.Fatal(err)
	}
	var refusals strings.Builder
	p.log = slog.New(slog.NewTextHandler(&refusals, nil))
	secrets := []string{"correct horse battery staple", "ghp" + "_" + strings.Repeat("a1B2c3", 6)}
	known, id := redact.New(secrets[0]), ""
	to := chats.Address{Chat: chatOf(f.dm, "")}
	platformtest.CheckGrowth(t, platformtest.Growth{
		Platform: p, Mask: known.Text, Growing: known.MaskUnfinished, Secrets: secrets,
		Show: func(part chats.Part, anew bool) (shown string, err error) {
			show := chats.Preview{Part: part}
			if anew {
				id, err = p.Begin(t.Context(), to, show)
			} else {
				err = p.Update(t.Context(), to, id, show)
			}
			if err != nil || refusals.Len() > 0 || !p.surface.CanUseLayouts() {
				return "", errors.Join(err, fmt.Errorf("refused: %s, laid out: %v", refusals.String(), p.surface.CanUseLayouts()))
			}
			return f.message(f.dm, id).Shown, nil
		},
	})
}

// What is measured is in docs/measured.md.
func TestStreams(t *testing.T) {
	cfg := quick()
	cfg.MessagesPerSecond, cfg.Burst, cfg.EditsPerMinute = 1, 3, 50
	h := harnessOver(t, cfg, "", nil)
	server := h.Service.(interface{ View(func(emulator.State)) })
	platformtest.MeasureStreams(t, h, os.Getenv("TEST_ONECLAW_STREAMS"), func() (n int) {
		server.View(func(st emulator.State) { n = st.CallCount("chat.update") })
		return n
	})
}
