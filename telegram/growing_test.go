package telegram

import (
	"errors"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"testing"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/platformtest"
	emulator "oneclaw/internal/emulator/telegram"
	"oneclaw/internal/redact"
)

func TestAnyAnswerInAnyChunks(t *testing.T) {
	s := newEmulated(t)
	p := s.platform(t, s.Token())
	var refusals strings.Builder
	p.log = slog.New(slog.NewTextHandler(&refusals, nil))
	secrets := []string{"correct horse battery staple", "ghp" + "_" + strings.Repeat("a1B2c3", 6)}
	known, id := redact.New(secrets[0]), ""
	platformtest.CheckGrowth(t, platformtest.Growth{
		Platform: p, Mask: known.Text, Growing: known.MaskUnfinished, Secrets: secrets,
		Show: func(part chats.Part, anew bool) (shown string, err error) {
			show := chats.Preview{Part: part}
			if anew {
				id, err = p.Begin(t.Context(), to(s.ann, 0, 0), show)
			} else {
				err = p.Update(t.Context(), to(s.ann, 0, 0), id, show)
			}
			if err == nil && refusals.Len() > 0 {
				err = errors.New(refusals.String())
			}
			s.View(func(st emulator.State) {
				n, _ := strconv.ParseInt(id, 10, 64)
				m, _ := st.Message(s.ann, n)
				shown = m.Text
			})
			return shown, err
		},
	})
}

// What is measured is in docs/measured.md.
func TestStreams(t *testing.T) {
	s := newEmulated(t, emulator.Config{Limits: emulator.ServiceLimits()})
	platformtest.MeasureStreams(t, harnessOver(t, s), os.Getenv("TEST_ONECLAW_STREAMS"), func() (n int) {
		s.View(func(st emulator.State) { n = st.CallCount("editmessagetext") })
		return n
	})
}
