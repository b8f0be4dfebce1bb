package app

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"oneclaw/bridge/chats"
	"oneclaw/internal/config"
	"oneclaw/internal/settings"
	"oneclaw/internal/workspace"
	"oneclaw/toolgroups"
)

// TestAGroupThatBecomesASupergroupKeepsWhatIsItsOwn has everything that belongs to a
// chat be found under its new id.
func TestAGroupThatBecomesASupergroupKeepsWhatIsItsOwn(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	cfg := config.Default()
	cfg.DataDir, cfg.Access.Allow = dir, []string{"*"}
	cfg.Telegram.Token = "1:x"
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	b := newTestBot(t, cfg)
	changing, _, err := OpenSettings(cfg, b.store, log)
	if err != nil {
		t.Fatal(err)
	}
	from, to := chats.Chat{Platform: "telegram", ID: "-5"}, chats.Chat{Platform: "telegram", ID: "-1005"}
	owner := from.String()

	if _, _, err := b.tools.memory.Save(ctx, toolgroups.Scope{Owner: owner}, "", "The group likes tea.", ""); err != nil {
		t.Fatal(err)
	}
	agent, err := changing.Agents.Add(ctx, settings.Agent{Name: "Pirate", Prompt: "Arr", Owner: owner})
	if err != nil {
		t.Fatal(err)
	}
	if err := changing.Chats.SetAgent(ctx, from.String(), owner, agent.ID); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(workspace.OwnerDir(dir, from.String()), "notes.txt")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("tea"), 0o600); err != nil {
		t.Fatal(err)
	}

	moved := b.newExporter(cfg).Move
	for range 2 { // the second time changes nothing
		if err := moved(ctx, from, to); err != nil {
			t.Fatal(err)
		}
	}
	if notes, err := b.tools.memory.Notes(ctx, to.String()); err != nil || len(notes) != 1 {
		t.Errorf("notes: %v (%v)", notes, err)
	}
	answer, err := changing.Chats.Resolve(ctx, to.String(), to.String())
	if err != nil || answer.Agent.ID != agent.ID {
		t.Errorf("answered by %q (%v), want %q", answer.Agent.ID, err, agent.ID)
	}
	data, err := os.ReadFile(filepath.Join(workspace.OwnerDir(dir, to.String()), "notes.txt"))
	if err != nil || string(data) != "tea" {
		t.Errorf("the file: %q (%v)", data, err)
	}
}

func TestTheFilesOfAMovedChatDoNotReplaceOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	for _, d := range []string{from, to} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(d, "f"), []byte(filepath.Base(d)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := workspace.MoveFolder(from, to, movedFolder); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"f": "to", filepath.Join(movedFolder, "f"): "from"} {
		if data, err := os.ReadFile(filepath.Join(to, name)); err != nil || string(data) != want {
			t.Errorf("%s: %q (%v), want %q", name, data, err, want)
		}
	}
}

func TestTheFilesOfAMovedChatGoBesideWhatHasTheNameOfTheirFolder(t *testing.T) {
	t.Parallel()
	for name, takes := range map[string]func(taken string) error{
		"a folder": func(taken string) error {
			return errors.Join(os.Mkdir(taken, 0o700), os.WriteFile(filepath.Join(taken, "f"), []byte("earlier"), 0o600))
		},
		"a file": func(taken string) error { return os.WriteFile(taken, []byte("earlier"), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
			err := errors.Join(os.Mkdir(from, 0o700), os.Mkdir(to, 0o700), os.WriteFile(filepath.Join(from, "f"), []byte("mine"), 0o600),
				takes(filepath.Join(to, movedFolder)), takes(filepath.Join(to, movedFolder+"-2")))
			if err != nil {
				t.Fatal(err)
			}
			if err := workspace.MoveFolder(from, to, movedFolder); err != nil {
				t.Fatal(err)
			}
			if data, err := os.ReadFile(filepath.Join(to, movedFolder+"-3", "f")); err != nil || string(data) != "mine" {
				t.Errorf("the moved file: %q (%v)", data, err)
			}
		})
	}
}
