package telegram

import (
	"encoding/json"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneclaw/bridge/chats"
	"oneclaw/internal/cache"
)

var rewrite = flag.Bool("update", false, "rewrite the golden files")

func newDecoder(commands ...string) *decoder {
	d := &decoder{
		self:     user{ID: 42, IsBot: true, FirstName: "OneClaw", Username: "oneclaw_bot"},
		commands: map[string]bool{},
		albums:   newAlbumStore(nil),
		forums:   cache.New[int64, bool](maxForums),
		log:      slog.New(slog.DiscardHandler),
	}
	for _, c := range commands {
		d.commands[c] = true
	}
	return d
}

func readBatch(t testing.TB, file string) []json.RawMessage {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var raws []json.RawMessage
	if err := json.Unmarshal(data, &raws); err != nil {
		t.Fatal(err)
	}
	return raws
}

// shown is an event in a golden file.
type shown struct {
	Message *chats.Message `json:"message,omitempty"`
	Moved   string         `json:"moved,omitempty"`
	Dead    string         `json:"dead,omitempty"`
}

// TestUpdates decodes batches in the shapes that the Bot API documents. B07 is in
// text.json and photo.json: the caption counts where the text is blank.
func TestUpdates(t *testing.T) {
	files, err := filepath.Glob("testdata/updates/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal("no batches", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			raws := readBatch(t, file)
			events, _, known, _ := newDecoder("clear").decodeBatch(t.Context(), raws)
			if !known {
				t.Error("no update id found")
			}
			list := []shown{}
			for _, e := range events {
				s := shown{Message: e.message, Dead: e.deadPress}
				if e.moved != nil {
					s.Moved = e.moved.from.String() + " " + e.moved.to.String()
				}
				list = append(list, s)
			}
			got, err := json.MarshalIndent(list, "", " ")
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, '\n')
			golden := strings.TrimSuffix(file, ".json") + ".golden"
			if *rewrite {
				if err := os.WriteFile(golden, got, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("events differ from %s (-want +got):\n%s", golden, diff)
			}
		})
	}
}

func TestBatchRemembersAlbums(t *testing.T) {
	d := newDecoder()
	raws := readBatch(t, "testdata/updates/album.json")
	if events, _, _, _ := d.decodeBatch(t.Context(), raws[:1]); len(events) != 0 {
		t.Errorf("an item without a mention gave %v", events)
	}
	if events, _, _, _ := d.decodeBatch(t.Context(), raws[1:2]); len(events) != 2 || events[0].message.ID != "20" || events[1].message.ID != "21" {
		t.Errorf("the item with the mention gave %v, not the one before it as well", events)
	}
	// The rest of an album that is for the bot may come with a later poll.
	if events, _, _, _ := d.decodeBatch(t.Context(), raws[:1]); len(events) != 1 {
		t.Errorf("a later item gave %v", events)
	}
}

func FuzzUpdate(f *testing.F) {
	files, err := filepath.Glob("testdata/updates/*.json")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		for _, raw := range readBatch(f, file) {
			f.Add([]byte(raw))
		}
	}
	f.Add([]byte(`{"update_id":1,"message":{"text":"@x","entities":[{"type":"mention","offset":-1,"length":9223372036854775807}]}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		events, last, known, _ := newDecoder("clear").decodeBatch(t.Context(), []json.RawMessage{raw})
		if known != (last > 0) {
			t.Errorf("last %d, known %v", last, known)
		}
		if len(events) > 1 {
			t.Errorf("%d events of one update", len(events))
		}
		for _, e := range events {
			m := e.message
			if m == nil {
				continue
			}
			if m.Chat.ID == "" || m.Chat.ID == "0" || m.User == "" || m.User == "0" || m.ID == "" || m.Kind == "" {
				t.Errorf("message without chat, user, id or kind: %+v", m)
			}
			if m.Text == "" && len(m.Files) == 0 && len(m.Skipped) == 0 && len(m.Quoted) == 0 {
				t.Errorf("empty message: %+v", m)
			}
			if back, err := chats.ParseChat(m.Chat.String()); err != nil || back != m.Chat {
				t.Errorf("chat %+v does not survive: %+v, %v", m.Chat, back, err)
			}
		}
	})
}
