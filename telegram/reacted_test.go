package telegram

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	emulator "oneclaw/internal/emulator/telegram"
)

// What a change of reactions says, and that nothing is said for a chat, whose person nobody knows, nor for a bot.
func TestReactionsAreDecoded(t *testing.T) {
	t.Parallel()
	const ann, inTeam = `"user":{"id":7,"first_name":"Ann"}`, `"chat":{"id":-5,"type":"supergroup"}`
	for name, tt := range map[string]struct{ who, chat, before, after, want string }{
		"thumbs up":               {ann, inTeam, "", "👍", "👍 good by 7 Ann in -5 false"},
		"in private":              {ann, `"chat":{"id":7,"type":"private"}`, "", "👎", "👎 bad by 7 Ann in 7 true"},
		"heart with a selector":   {ann, inTeam, "", "❤\ufe0f", "❤\ufe0f good by 7 Ann in -5 false"},
		"taken back":              {ann, inTeam, "👍", "", "👍 not good by 7 Ann in -5 false"},
		"another of one meaning":  {ann, inTeam, "👍", "❤", ""},
		"two of one meaning":      {ann, inTeam, "", "👍 ❤", "👍 good by 7 Ann in -5 false"},
		"the contrary":            {ann, inTeam, "👍", "👎", "👍 not good by 7 Ann in -5 false, 👎 bad by 7 Ann in -5 false"},
		"no feedback":             {ann, inTeam, "", "🎉", ""},
		"in the name of a chat":   {`"actor_chat":{"id":-5,"type":"supergroup"}`, inTeam, "", "👍", ""},
		"of a bot":                {`"user":{"id":7,"is_bot":true}`, inTeam, "", "👍", ""},
		"of nobody":               {`"user":{"id":0}`, inTeam, "", "👍", ""},
		"a picture of the sender": {ann, inTeam, "", "custom", ""},
	} {
		list := func(emojis string) string {
			var all []string
			for _, one := range strings.Fields(emojis) {
				if one == "custom" {
					all = append(all, `{"type":"custom_emoji","custom_emoji_id":"👍"}`)
					continue
				}
				all = append(all, fmt.Sprintf(`{"type":"emoji","emoji":%q}`, one))
			}
			return "[" + strings.Join(all, ",") + "]"
		}
		var r reactionUpdate
		raw := fmt.Sprintf(`{%s,%s,"message_id":3,"date":9,"old_reaction":%s,"new_reaction":%s}`, tt.chat, tt.who, list(tt.before), list(tt.after))
		if err := json.Unmarshal([]byte(raw), &r); err != nil {
			t.Fatal(name, err)
		}
		var got []string
		for _, m := range r.feedback() {
			got = append(got, fmt.Sprintf("%s %s by %s %s in %s %t", m.Emoji, m.Text, m.User, m.UserName, m.Chat.ID, m.Direct))
			if m.TargetID != "3" || m.Time.Unix() != 9 {
				t.Errorf("%s: %+v", name, m)
			}
		}
		if said := strings.Join(got, ", "); said != tt.want {
			t.Errorf("%s: said %q, want %q", name, said, tt.want)
		}
	}
}

// In groups Telegram reports reactions to administrators alone.
func TestReactionsArePromisedWhereTheyAreReported(t *testing.T) {
	t.Parallel()
	s := newEmulated(t)
	for name, tt := range map[string]struct {
		chat int64
		want bool
	}{
		"private":                      {s.ann, true},
		"a group that it administers":  {s.chat(t, emulator.ChatSpec{Kind: emulator.Supergroup, Title: "G", User: s.ann, BotAdmin: true}), true},
		"a group where it is a member": {s.chat(t, emulator.ChatSpec{Kind: emulator.Supergroup, Title: "H", User: s.ann}), false},
		"a group that it is not in":    {-1009, false},
	} {
		if got := s.p.ReportsReactions(t.Context(), chatOf(tt.chat)); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if s.p.ReportsReactions(t.Context(), directChat(-1009, 7)) {
		t.Error("in the messages to a channel it promises reactions")
	}
}
