package slack_test

import (
	"testing"
	"time"

	api "github.com/slack-go/slack"

	"oneclaw/internal/emulator/slack"
)

// What is refused of streams is what apps have met.
func TestStreams(t *testing.T) {
	now := time.Now()
	f := start(t, slack.Config{Now: func() time.Time { return now }})
	root, shared := f.say("D1", "tell", nil).TS, f.say("C1", "tell", nil).TS
	client := api.New(slack.DefaultBotToken, api.OptionAPIURL(f.url))
	begin := func(channel, thread string, more ...api.MsgOption) (string, error) {
		_, ts, err := client.StartStreamContext(t.Context(), channel, append(more, api.MsgOptionTS(thread))...)
		return ts, err
	}
	ts, err := begin("D1", root, api.MsgOptionChunks(api.NewMarkdownTextChunk("one")))
	if err != nil {
		t.Fatal(err)
	}
	add := func(more ...api.MsgOption) error {
		_, _, err := client.AppendStreamContext(t.Context(), "D1", ts, more...)
		return err
	}
	end := func() error {
		_, _, err := client.StopStreamContext(t.Context(), "D1", ts)
		return err
	}
	edit := func() error {
		_, _, _, err := client.UpdateMessageContext(t.Context(), "D1", ts, api.MsgOptionText("all", false))
		return err
	}
	text, chunk := api.MsgOptionMarkdownText("two"), api.MsgOptionChunks(api.NewMarkdownTextChunk("two"))
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"a channel wants a reader", second(begin("C1", shared, text)), "missing_recipient_user_id"},
		{"and their workspace", second(begin("C1", shared, text, api.MsgOptionRecipientUserID(f.user))), "missing_recipient_team_id"},
		{"no thread", second(begin("D1", "", text)), "invalid_arguments"},
		{"an edit while it is open", edit(), "streaming_state_conflict"},
		{"text where chunks began", add(text), "streaming_mode_mismatch"},
		{"both", add(text, chunk), "cannot_provide_both_markdown_text_and_chunks"},
		{"a task without a title", add(api.MsgOptionChunks(api.NewTaskUpdateChunk("1", ""))), "invalid_chunks"},
		{"more", add(chunk), ""},
		{"the end", end(), ""},
		{"more behind the end", add(chunk), "message_not_in_streaming_state"},
		{"the end twice", end(), "message_not_in_streaming_state"},
		{"an edit behind the end", edit(), ""},
	} {
		if got := ""; c.err != nil {
			if got = c.err.Error(); got != c.want {
				t.Errorf("%s: %s, want %q", c.name, got, c.want)
			}
		} else if c.want != "" {
			t.Errorf("%s passes", c.name)
		}
	}
	if ts, err = begin("D1", root, chunk); err != nil {
		t.Fatal(err)
	}
	now = now.Add(6 * time.Minute)
	if err := add(chunk); err == nil {
		t.Error("a stream lasts for ever")
	}
}

func second(_ string, err error) error { return err }
