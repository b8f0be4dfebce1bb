package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"oneclaw/internal/config"
	"oneclaw/internal/emulator/openai"
)

const greeting = "---\nname: greeting\ndisplay_name: Greeting\ndescription: How to greet.\n---\nSay hello.\n"

// TestFilesGoWhereTheNextProcessIs has a bot write a file, and another with a disk of its own
// read it: the files are in the database, or in a folder that both mount.
func TestFilesGoWhereTheNextProcessIs(t *testing.T) {
	t.Parallel()
	for _, mounted := range []bool{false, true} {
		name := "in the database"
		if mounted {
			name = "in a folder"
		}
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, openai.Offline{})
			w.onServer(t)
			w.env["ONECLAW_SECRET_KEY"] = strings.Repeat("ab", 32)
			home := w.env["ONECLAW_DATA_DIR"]
			if mounted {
				home = t.TempDir()
				w.env["ONECLAW_TOOLS_FILES"] = home
			}
			skill := filepath.Join("skills", "greeting", "SKILL.md")
			if err := os.MkdirAll(filepath.Dir(filepath.Join(home, skill)), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(home, skill), []byte(greeting), 0o600); err != nil {
				t.Fatal(err)
			}
			ann := w.person("Ann")
			first := w.run()
			wantIn(t, w.ask(first, ann, `Write "kept in mind" to notes.txt`, nil), "notes.txt")
			first.kill(syscall.SIGTERM)

			w.env["ONECLAW_DATA_DIR"] = t.TempDir()
			second := w.run()
			wantIn(t, w.ask(second, ann, "Read notes.txt", nil), "kept in mind")
			if !mounted {
				home = w.env["ONECLAW_DATA_DIR"]
			}
			if data, err := os.ReadFile(filepath.Join(home, skill)); string(data) != greeting {
				t.Errorf("the skill is %q, %v", data, err)
			}
			second.kill(syscall.SIGTERM)
		})
	}
}

// TestFilesThatNobodyGetsAreSaid has a bot whose store came back from where files were in it.
func TestFilesThatNobodyGetsAreSaid(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	ann := w.person("Ann")
	for _, place := range []string{"store", "local"} {
		w.env["ONECLAW_TOOLS_FILES"] = place
		bot := w.run()
		w.ask(bot, ann, `Write "kept in mind" to notes.txt`, nil)
		bot.kill(syscall.SIGTERM)
		if said := strings.Contains(bot.out.String(), "files in the database are not used"); said != (place == "local") {
			t.Errorf("%s: %v\n%s", place, said, bot.out.String())
		}
	}
}

func TestThePlaceOfFilesIsChecked(t *testing.T) {
	for value, ok := range map[string]bool{"": true, "local": true, "store": true, "/mnt/files": true, "files": false, "nfs": false} {
		cfg := config.Default()
		cfg.Tools.Files = value
		if err := cfg.CheckFiles(); (err == nil) != ok {
			t.Errorf("%q: %v", value, err)
		}
	}
}
