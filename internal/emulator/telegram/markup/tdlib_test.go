package markup

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"oneclaw/internal/emulator/npmtest"
	"oneclaw/internal/emulator/telegram/botapi"
)

func TestPlainTextsHaveTheEntitiesThatTelegramFinds(t *testing.T) {
	t.Parallel()
	var given []npmtest.Text
	for _, text := range plainTexts() {
		given = append(given, npmtest.Text{Text: text})
	}
	if len(given) < 200 {
		t.Errorf("%d texts", len(given))
	}
	for i, read := range npmtest.ReadByTelegram(t, given) {
		if got, want := described(detectEntities(given[i].Text)), named(read.Found); !slices.Equal(got, want) {
			t.Errorf("%q:\n got %q\nwant %q", given[i].Text, got, want)
		}
	}
}

func TestHTMLIsStoredAsTelegramStoresIt(t *testing.T) {
	t.Parallel()
	var given []npmtest.Text
	for _, text := range htmlTexts() {
		given = append(given, npmtest.Text{Text: text, HTML: true})
	}
	compareHTML(t, given)
}

// TestTextsOfOtherTestsAreStoredAsTelegramStoresThem reads the texts that bots have sent to emulators in a run of tests, in
// which TEST_ONECLAW_TEXTS named the file that is named here.
func TestTextsOfOtherTestsAreStoredAsTelegramStoresThem(t *testing.T) {
	t.Parallel()
	name := os.Getenv("TEST_ONECLAW_TEXTS_SENT")
	if name == "" {
		t.Skip("TEST_ONECLAW_TEXTS_SENT names no file with texts")
	}
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var given []npmtest.Text
	seen := map[npmtest.Text]bool{}
	for line := range strings.Lines(string(data)) {
		var text npmtest.Text
		if err := json.Unmarshal([]byte(line), &text); err != nil {
			t.Fatal(err)
		}
		if !seen[text] && utf8.RuneCountInString(text.Text) <= 1<<16 {
			seen[text] = true
			given = append(given, text)
		}
	}
	t.Logf("%d texts", len(given))
	if len(given) < 100 {
		t.Error("too few to be those of all tests")
	}
	compareHTML(t, given)
}

// compareHTML compares what the emulator and Telegram make of texts.
func compareHTML(t *testing.T, given []npmtest.Text) {
	t.Helper()
	for i, read := range npmtest.ReadByTelegram(t, given) {
		got, want := Text{Plain: given[i].Text}, Text{Plain: read.Text, Entities: entitiesOf(append(read.Entities, read.Found...))}
		if given[i].HTML {
			var err error
			got.Plain, got.Entities, err = ParseHTML(given[i].Text)
			if err != nil || read.Error != "" {
				if err == nil || "Can't parse entities: "+err.Error() != read.Error {
					t.Errorf("%q:\n got %v\nwant %q", given[i].Text, err, read.Error)
				}
				continue
			}
		}
		got.Normalize()
		want.trim()
		if a, b := described(joined(got.Entities)), described(joined(want.Entities)); got.Plain != want.Plain || !slices.Equal(a, b) {
			t.Errorf("%q:\n got %q %q\nwant %q %q", given[i].Text, got.Plain, a, want.Plain, b)
		}
	}
}

// joined returns sorted entities with the pieces of a style joined, in which the service keeps it where others begin.
func joined(entities []botapi.Entity) (out []botapi.Entity) {
	last := map[string]int{}
	sortEntities(entities)
	for _, e := range entities {
		if i, known := last[e.Type]; known && kindOf(e.Type) == style && e.Offset <= out[i].Offset+out[i].Length {
			out[i].Length = max(out[i].Length, e.Offset+e.Length-out[i].Offset)
			continue
		}
		last[e.Type] = len(out)
		out = append(out, e)
	}
	sortEntities(out)
	return out
}

func entitiesOf(list []npmtest.Entity) (entities []botapi.Entity) {
	for _, e := range list {
		entities = append(entities, botapi.Entity{Type: e.Type, Offset: e.Offset, Length: e.Length, URL: e.About})
	}
	return entities
}

// described returns entities in the form in which they are compared.
func described(entities []botapi.Entity) []string {
	var list []npmtest.Entity
	for _, e := range entities {
		about := cmp.Or(e.URL, e.Language, e.CustomEmojiID)
		switch {
		case e.User != nil:
			about = strconv.FormatInt(e.User.ID, 10)
		case e.UnixTime != 0:
			about = strconv.FormatInt(e.UnixTime, 10)
		}
		list = append(list, npmtest.Entity{Type: e.Type, Offset: e.Offset, Length: e.Length, About: about})
	}
	return named(list)
}

func named(entities []npmtest.Entity) (names []string) {
	for _, e := range entities {
		names = append(names, fmt.Sprintf("%s %d+%d %s", e.Type, e.Offset, e.Length, e.About))
	}
	return names
}
