package slack

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"oneclaw/bridge/chats"
	emulator "oneclaw/internal/emulator/slack"
)

func TestTablesOfAnswers(t *testing.T) {
	f := setup(t, quick(), nil)
	f.run()
	root := f.say(f.dm, "tell", nil)
	f.in.wait(t, 1)
	to := chats.Address{Chat: chatOf(f.dm, root.TS)}
	part := f.p.Render("Prices:\n\n| what | price |\n|---|---|\n| tea | 3 |\n\n```go\nx()\n```\n")[0]
	part.Note = "by the way"
	laid, text := "Prices:\nwhat | price\ntea | 3\n```go\nx()\n```\n_by the way_", partText(part, false)
	ts, err := f.send(to.Chat, part)
	if err != nil {
		t.Fatal(err)
	}
	if m := f.message(f.dm, ts); m.Shown != laid || m.Text != text {
		t.Errorf("there stands %q with the text %q, want %q and %q", m.Shown, m.Text, laid, text)
	}
	part.Buttons = [][]chats.Button{{{Label: "Yes", Data: "x"}}}
	if err := f.p.Edit(t.Context(), to, ts, part); err != nil {
		t.Fatal(err)
	}
	if m := f.message(f.dm, ts); m.Shown != laid || len(m.Buttons) != 1 {
		t.Errorf("there stands %+v", m)
	}
	// What is no layout of ours is a text, and what a workspace does not take it gets once.
	part.Buttons, part.Repeat = nil, true
	part.Layout = append(slices.Clip(part.Layout), '!')
	if err := f.p.Edit(t.Context(), to, ts, part); err != nil {
		t.Fatal(err)
	}
	if m := f.message(f.dm, ts); m.Shown != m.Text || !strings.Contains(m.Text, chats.RepeatNotice) {
		t.Errorf("there stands %+v", m)
	}
	long := f.p.Render(strings.Repeat(strings.Repeat("word ", 150)+"\n\n| a |\n|---|\n| b |\n\n", 6))
	for _, part := range long {
		if part.Layout == nil || strings.Count(part.Text, "b\n```") != 1 {
			t.Errorf("of %d parts one is %q, laid out as %s", len(long), part.Text, part.Layout)
		}
	}
	if len(long) != 6 {
		t.Errorf("%d parts, want one for each table", len(long))
	}
	part = f.p.Render("| what |\n|---|\n| tea |\n")[0]
	f.inject(emulator.Fault{Method: "chat.postMessage", Times: 1, Effect: emulator.Refuse, Error: "invalid_blocks"})
	for range 2 {
		if ts, err = f.send(to.Chat, part); err != nil {
			t.Fatal(err)
		}
		if m := f.message(f.dm, ts); m.Shown != part.Text || len(m.Blocks) != 0 {
			t.Errorf("there stands %+v, want the plain text", m)
		}
	}
}

// Slack refuses tables with codes that no page lists. The answer goes without its table, and the next one has it.
func TestAnAnswerGoesWithoutATableThatIsRefusedWithAnyCode(t *testing.T) {
	t.Parallel()
	f := start(t, quick(), nil)
	to := chats.Address{Chat: chatOf(f.dm, "")}
	part := f.p.Render("*x*\n\n| what |\n|---|\n| tea |\n")[0]
	part.Buttons = [][]chats.Button{{{Label: "Yes", Data: "y"}}}
	for _, code := range []string{"table_too_wide", "invalid_table", "blocks_too_large"} {
		f.inject(emulator.Fault{Method: "chat.postMessage", Times: 1, Effect: emulator.Refuse, Error: code})
		ts, err := f.send(to.Chat, part)
		if err != nil {
			t.Fatalf("%s: %v", code, err)
		}
		if m := f.message(f.dm, ts); strings.Contains(string(m.Blocks), `"table"`) || len(m.Buttons) != 1 || m.Text != part.Text {
			t.Errorf("%s: there stands %+v", code, m)
		}
		if err := f.p.Edit(t.Context(), to, ts, part); err != nil {
			t.Fatal(err)
		}
		if m := f.message(f.dm, ts); !strings.Contains(string(m.Blocks), `"table"`) {
			t.Errorf("%s: no table is shown any more: %+v", code, m)
		}
		f.inject(emulator.Fault{Method: "chat.update", Times: 2, Effect: emulator.Refuse, Error: code})
		if err := f.p.Edit(t.Context(), to, ts, part); err != nil {
			t.Fatal(err)
		}
		if m := f.message(f.dm, ts); m.Text != unescape(partText(part, true)) {
			t.Errorf("%s: there stands %q, want the plain text", code, m.Text)
		}
	}
	f.inject(emulator.Fault{Method: "chat.postMessage", Effect: emulator.Refuse, Error: "table_too_wide"})
	_, err := f.send(to.Chat, part)
	if failure, is := errors.AsType[*chats.SendError](err); !is || failure.Outcome != chats.Refused || !failure.ContentRefused {
		t.Errorf("refused in every form it is %v", err)
	}
}
