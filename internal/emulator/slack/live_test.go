package slack_test

import (
	"fmt"
	"slices"
	"testing"

	api "github.com/slack-go/slack"

	"oneclaw/internal/emulator/slack"
)

// A history with oldest alone begins at its oldest end; with an end of its own at that.
//
// A history that is asked for by its oldest end begins there.
func TestHistoryBeginsAtItsOldestEnd(t *testing.T) {
	f := start(t, slack.Config{})
	var said []string
	for i := range 5 {
		said = append(said, f.say(f.channel, fmt.Sprint(i), nil).TS)
	}
	read := func(params api.GetConversationHistoryParameters) (all []string) {
		t.Helper()
		params.ChannelID, params.Limit = f.channel, 2
		for {
			page, err := f.bot.GetConversationHistoryContext(t.Context(), &params)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range page.Messages {
				all = append(all, m.Text)
			}
			if params.Cursor = page.ResponseMetaData.NextCursor; params.Cursor == "" {
				return all
			}
		}
	}
	if got, want := read(api.GetConversationHistoryParameters{Oldest: said[0]}), []string{"2", "1", "4", "3"}; !slices.Equal(got, want) {
		t.Errorf("with oldest alone: %v, want %v", got, want)
	}
	if got, want := read(api.GetConversationHistoryParameters{Oldest: said[0], Latest: "9999999999.000000"}), []string{"4", "3", "2", "1"}; !slices.Equal(got, want) {
		t.Errorf("with both: %v, want %v", got, want)
	}
}

// The root of a thread comes with its replies however old it is.
//
// A history that is asked for by its oldest end begins there.
func TestTheRootComesHoweverOldItIs(t *testing.T) {
	f := start(t, slack.Config{})
	root := f.say(f.channel, "root", nil)
	var last slack.Sent
	for i := range 3 {
		last = f.say(f.channel, fmt.Sprint(i), &slack.SayOptions{Thread: root.TS})
	}
	page, _, _, err := f.bot.GetConversationRepliesContext(t.Context(), &api.GetConversationRepliesParameters{ChannelID: f.channel, Timestamp: root.TS, Oldest: last.TS, Inclusive: true})
	if err != nil || len(page) != 2 || page[0].Timestamp != root.TS || page[1].Timestamp != last.TS {
		t.Errorf("got %+v, %v", page, err)
	}
}
