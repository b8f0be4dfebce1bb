package telegram_test

import (
	_ "embed"
	"testing"

	"oneclaw/internal/emulator/npmtest"
	"oneclaw/internal/emulator/telegram"
)

//go:embed testdata/clients.cjs
var clientsScript string

// The libraries of other bots find here what they find at Telegram.
func TestOtherLibrariesMakeTheirEverydayCalls(t *testing.T) {
	t.Parallel()
	for _, library := range []string{"grammy", "telegraf", "node-telegram-bot-api"} {
		t.Run(library, func(t *testing.T) {
			t.Parallel()
			f := start(t, telegram.Config{Control: true})
			group := f.chat(telegram.ChatSpec{Kind: telegram.Supergroup, Title: "Team", User: f.user, BotAdmin: true})
			npmtest.Run(t, clientsScript, map[string]any{"library": library, "url": f.url, "token": f.Token(), "user": f.user, "group": group}, library)
		})
	}
}
