package personal_test

import (
	"archive/zip"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/internal/personal"
	"oneclaw/storage"
	"oneclaw/storage/bolt"
	"oneclaw/toolgroups"
)

// ask has a person ask for a copy, and returns the answer and what is in the copy; nil for none.
func ask(t *testing.T, store storage.Store, scope toolgroups.Scope, parts ...personal.Part) (string, map[string]string, error) {
	t.Helper()
	desk := personal.New(personal.Config{Store: store, Parts: parts, Now: func() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }})
	var copied map[string]string
	call := bridge.CommandCall{Scope: scope, Attach: func(f toolgroups.File) {
		r, err := zip.OpenReader(filepath.Join(scope.Workspace, f.Path))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = r.Close() }()
		copied = map[string]string{}
		for _, one := range r.File {
			from, err := one.Open()
			if err != nil {
				t.Fatal(err)
			}
			data, err := io.ReadAll(from)
			if err != nil {
				t.Fatal(err)
			}
			copied[one.Name] = string(data)
		}
	}}
	text, err := desk.Commands()[0].Run(t.Context(), call)
	return text, copied, err
}

func newStore(t *testing.T) storage.Store {
	t.Helper()
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "db"), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

func ann(t *testing.T) toolgroups.Scope {
	t.Helper()
	return toolgroups.Scope{User: "fake:1", Owner: "fake:1", Chat: "fake:1", Direct: true, Workspace: t.TempDir()}
}

func TestACopyHasAllThatThereIs(t *testing.T) {
	store, scope := newStore(t), ann(t)
	log := func(log string, messages ...agent.Message) {
		t.Helper()
		for i, m := range messages {
			record, err := conversation.Encode(m)
			if err == nil {
				_, err = store.Append(t.Context(), log, storage.Position(i), record)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	answer := agent.Message{Role: agent.RoleAssistant, Text: "an answer", Final: true}
	log("fake:1/1", agent.Message{Role: agent.RoleUser, Text: "alone"}, answer)
	talk := conversation.Conversation{Owner: "fake:1", Chat: chats.Chat{Platform: "fake", ID: "1"}, Generation: 1, Title: "A talk"}
	if err := talk.AddToList(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	log("fake:g/1", agent.Message{Role: agent.RoleUser, Text: "in company", AuthorKey: "fake:1"}, answer, agent.Message{Role: agent.RoleSummary, Text: "A summary of another."}, agent.Message{Role: agent.RoleUser, Text: "of another", AuthorKey: "fake:2"}, answer)
	if _, err := store.Put(t.Context(), "asked/fake:1/fake:g/1", []byte(`{"chat":{"platform":"fake","id":"g"},"log":"fake:g/1"}`), storage.Absent); err != nil {
		t.Fatal(err)
	}
	for name, size := range map[string]int64{"small.txt": 5, "folder/large.bin": personal.MaxFileBytes + 1, "export/oneclaw-2026-02-01.zip": 9, "export/table.csv": 7} {
		path := filepath.Join(scope.Workspace, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600), os.Truncate(path, size)); err != nil {
			t.Fatal(err)
		}
	}
	one := func(value any) func(context.Context, personal.Person) (any, error) {
		return func(context.Context, personal.Person) (any, error) { return value, nil }
	}
	text, copied, err := ask(t, store, scope,
		personal.Part{Name: "notes", About: "What is noted.", Data: one([]string{"tall"})}, personal.Part{Name: "none", Data: one([]string{})}, personal.Part{Name: "gone"})
	if err != nil || !strings.Contains(text, "2 conversations and 2 files") || !strings.Contains(text, "1 file did not fit") {
		t.Fatalf("%q, %v", text, err)
	}
	var names []string
	for name := range copied {
		names = append(names, name)
	}
	slices.Sort(names)
	want := []string{
		"README.txt", "conversations/0001-0001-01-01.jsonl", "conversations/0001-0001-01-01.md", "conversations/0002-0001-01-01.jsonl", "conversations/0002-0001-01-01.md",
		"files/export/table.csv", "files/small.txt", "notes.json",
	}
	if !slices.Equal(names, want) {
		t.Errorf("the copy has %q", names)
	}
	for name, has := range map[string]string{"README.txt": "folder/large.bin", "conversations/0001-0001-01-01.md": "alone", "conversations/0002-0001-01-01.md": "in company", "notes.json": "tall"} {
		if !strings.Contains(copied[name], has) {
			t.Errorf("%s says %q", name, copied[name])
		}
	}
	if strings.Contains(copied["conversations/0002-0001-01-01.jsonl"], "of another") {
		t.Error("the copy has what somebody else asked")
	}
}

// The copy and docs/privacy.md say the same about what is left out.
func TestACopySaysWhatItLeavesOut(t *testing.T) {
	_, copied, err := ask(t, newStore(t), ann(t))
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/privacy.md")
	if err != nil {
		t.Fatal(err)
	}
	_, sentence, found := strings.Cut(string(page), "It also leaves out ")
	if !found {
		t.Fatal("docs/privacy.md does not say what a copy leaves out")
	}
	sentence, _, _ = strings.Cut(sentence, ".\n")
	inCopy := map[string]string{ // what the page calls otherwise
		"sign-ins to the administrators' pages": "your sign-ins to the administrators' pages",
		"errors of the log":                     "errors in the log",
		"dead letters":                          "what could not be delivered or processed",
		"cards":                                 "cards with buttons",
		"and your request to be let in":         "your request to be let in",
	}
	for item := range strings.SplitSeq(sentence, ", ") {
		if want := cmp.Or(inCopy[item], item); !strings.Contains(copied["README.txt"], "; "+want) {
			t.Errorf("README.txt does not say that the copy leaves out %q", want)
		}
	}
}

func TestACopyThatIsNotMade(t *testing.T) {
	store := newStore(t)
	group := ann(t)
	group.Direct = false
	if text, copied, err := ask(t, store, group); err != nil || copied != nil || !strings.Contains(text, "direct chat") {
		t.Errorf("in a group: %q, %v", text, err)
	}
	full := ann(t)
	full.Quota = 10
	if text, copied, err := ask(t, store, full); err != nil || copied != nil || !strings.Contains(text, "workspace is full") {
		t.Errorf("without room: %q, %v", text, err)
	}
	taken := ann(t)
	if err := os.WriteFile(filepath.Join(taken.Workspace, "export"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if text, copied, err := ask(t, store, taken); err != nil || copied != nil || !strings.Contains(text, "rename that file") {
		t.Errorf("where a file has the name of the folder: %q, %v", text, err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	part := personal.Part{Name: "notes", Data: func(context.Context, personal.Person) (any, error) { return nil, broken }}
	if _, copied, err := ask(t, store, ann(t), part); err == nil || copied != nil {
		t.Errorf("without a store: %v", err)
	}
}

// What cannot be read is left out, and the copy says so: a folder from an archive with a name that
// is no text, one without rights, a damaged memory (A2).
func TestACopyLeavesOutWhatCannotBeReadAndSaysSo(t *testing.T) {
	store, scope := newStore(t), ann(t)
	want := 3
	for name, mode := range map[string]os.FileMode{"caf\xe9": 0o700, "shut": 0, "fine": 0o700} {
		dir := filepath.Join(scope.Workspace, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("in "+name), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, mode); err != nil { //nolint:gosec // a folder without rights is what is tried
			t.Fatal(err)
		}
	}
	if _, err := os.ReadDir(filepath.Join(scope.Workspace, "shut")); err != nil { // else we may read all
		want++
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(scope.Workspace, "shut"), 0o700) }) //nolint:gosec // so that it can be removed
	part := personal.Part{Name: "notes", Data: func(context.Context, personal.Person) (any, error) { return nil, errors.New("damaged") }}
	broken := personal.Part{Name: "schedules", Data: func(context.Context, personal.Person) (any, error) { panic("broken by the test") }}
	text, copied, err := ask(t, store, scope, part, broken)
	if err != nil {
		t.Fatal(err)
	}
	if says := fmt.Sprintf("I could not read %d pieces of it", want); !strings.Contains(text, says) {
		t.Errorf("%q, want %q", text, says)
	}
	if copied["files/fine/a.txt"] != "in fine" || !strings.Contains(copied["README.txt"], "Could not be read:\n  notes\n  schedules\n  caf?") {
		t.Errorf("copied %q", copied)
	}
}

// Data that cannot be deleted, moved or pruned now keeps no other from it.
func TestAPartThatFailsHoldsUpNoOther(t *testing.T) {
	never := errors.New("never")
	var done []string
	part := func(name string, err error) personal.Part {
		do := func(what string) error {
			done = append(done, what+" "+name)
			return err
		}
		return personal.Part{
			Name:   name,
			Forget: func(context.Context, personal.Person) error { return do("forget") },
			Move:   func(context.Context, string, string) error { return do("move") },
			Prune:  func(context.Context) error { return do("prune") },
		}
	}
	exporter := personal.New(personal.Config{Parts: []personal.Part{part("memory", never), {Name: "usage"}, part("schedules", nil)}})
	for _, err := range []error{exporter.Forget(t.Context(), "fake:1", chats.Chat{}), exporter.Move(t.Context(), chats.Chat{}, chats.Chat{}), exporter.Prune(t.Context())} {
		if !errors.Is(err, never) {
			t.Errorf("the failure is told as %v", err)
		}
	}
	if want := []string{"forget memory", "forget schedules", "move memory", "move schedules", "prune memory", "prune schedules"}; !slices.Equal(done, want) {
		t.Errorf("tried are %q", done)
	}
}
