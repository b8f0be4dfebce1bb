package surface

import (
	"strings"
	"testing"

	"github.com/slack-go/slack"
	"pgregory.net/rapid"

	"oneclaw/bridge/chats"
)

// However a text is cut, what is streamed of it never has to be taken back, calls nobody and has no pictures.
func TestWhatIsStreamedStays(t *testing.T) {
	pieces := []string{"word ", "**", "*", "_", "`", "```\n", "[", "](https://a.test)", "\n", "\n\n", "| a | b |\n", "|---|---|\n", "- ", "<", "!", "@U1", "!channel", ">", "é"}
	rapid.Check(t, func(t *rapid.T) {
		whole := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 40).Draw(t, "text"), "")
		var st stream
		shown := ""
		for at := 0; at < len(whole); {
			at = min(len(whole), at+rapid.IntRange(1, 9).Draw(t, "step"))
			next, chunks := st.grow(chats.Preview{UnclosedText: strings.ToValidUTF8(whole[:at], "")})
			for _, chunk := range chunks {
				shown += chunk.(slack.MarkdownTextChunk).Text
			}
			st = next
		}
		said, links := strings.ReplaceAll(shown, "\u2060", ""), picturePattern.ReplaceAllString(whole, "[")
		if !strings.HasPrefix(links, said) || mentionPattern.MatchString(shown) || picturePattern.MatchString(shown) {
			t.Fatalf("%q is streamed of %q", shown, whole)
		}
	})
}

func TestTasks(t *testing.T) {
	var st stream
	var told []string
	for _, show := range []chats.Preview{
		{Part: chats.Part{Note: "reading a.pdf"}},
		{Part: chats.Part{Note: "reading a.pdf"}},
		{Part: chats.Part{Note: "searching"}, UnclosedText: "It says"},
		{UnclosedText: "Another reply"},
		{Part: chats.Part{Note: chats.NoteMore}, UnclosedText: "Another reply " + strings.Repeat("x", maxStreamed)},
	} {
		next, chunks := st.grow(show)
		for _, chunk := range chunks {
			switch c := chunk.(type) {
			case slack.MarkdownTextChunk:
				told = append(told, c.Text)
			case slack.TaskUpdateChunk:
				told = append(told, c.ID+" "+c.Title+" "+string(c.Status))
			}
		}
		st = next
	}
	want := "1 reading a.pdf in_progress|1 reading a.pdf complete|2 searching in_progress|It says|2 searching complete|\n\nAnother reply"
	if got := strings.Join(told, "|"); got != want {
		t.Errorf("told %q, want %q", got, want)
	}
}
