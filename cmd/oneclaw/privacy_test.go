package main

import (
	"archive/zip"
	"bytes"
	"context"
	"io"
	"slices"
	"strings"
	"syscall"
	"testing"

	"oneclaw/bridge/audit"
	"oneclaw/internal/emulator/openai"
	"oneclaw/storage"
)

// unzipped are the files of an archive as one text each.
func unzipped(t *testing.T, data []byte) map[string]string {
	t.Helper()
	archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatalf("%v in %.100q", err, data)
	}
	all := map[string]string{}
	for _, f := range archive.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		kind, _, _ := strings.Cut(f.Name, "/")
		if kind == "conversations" {
			f.Name = kind
		}
		all[f.Name] += string(content)
	}
	return all
}

// TestExportGivesAPersonWhatIsKeptOfThem wants all of the person's in the file and nothing of
// anybody else, also where the program is killed meanwhile.
func TestExportGivesAPersonWhatIsKeptOfThem(t *testing.T) {
	t.Parallel()
	onBothPlatforms(t, false, openai.BrainFunc(func(_ context.Context, r openai.Request) (openai.Reply, error) {
		last := r.Messages[len(r.Messages)-1]
		if last.Role == "user" && strings.Contains(last.Content, "keep") {
			return openai.Reply{Calls: []openai.ToolCall{
				{ID: "1", Name: "write_file", Arguments: `{"path": "notes/list.txt", "content": "milk and bread"}`},
				{ID: "2", Name: "save_memory", Arguments: `{"content": "likes tea"}`},
			}}, nil
		}
		return openai.Reply{Text: "Done: " + last.Content}, nil
	}), func(s *stage) {
		bot := s.start()
		if strings.HasPrefix(s.users[0], "telegram") {
			s.w.ask(bot, s.w.person("Eve"), "the secret of Eve", nil)
		}
		s.say(0, "keep my list")
		s.one("Done: ")
		s.say(0, s.sign+"export")
		var file []byte
		sent := func(n int) {
			s.until("the export", func(all []shown) bool {
				files := 0
				for _, m := range all {
					if m.file != nil {
						files++
						file = m.file
					}
				}
				return files >= n
			})
		}
		sent(1)
		s.one("Everything I keep of you", "1 files")
		check := func() {
			t.Helper()
			all := unzipped(s.t, file)
			for name, want := range map[string]string{
				"conversations": "keep my list", "files/notes/list.txt": "milk and bread", "kept/memory.jsonl": "likes tea",
				"kept/conversation.jsonl": s.users[0], "kept/job.jsonl": "keep my list", "README.txt": s.users[0],
			} {
				if !strings.Contains(all[name], want) {
					s.t.Errorf("%s has no %q: %.300s", name, want, all[name])
				}
			}
			for name, content := range all {
				if strings.Contains(content, "Eve") || strings.Contains(content, s.w.env["TELEGRAM_BOT_TOKEN"]) || strings.Contains(name, "export") {
					s.t.Errorf("%s is in it: %.300s", name, content)
				}
			}
		}
		check()
		s.say(0, s.sign+"export")
		bot.kill(syscall.SIGKILL)
		s.w.read(func(kv storage.KV) {
			if entries, err := audit.List(s.t.Context(), kv, 10); err != nil || !slices.ContainsFunc(entries, func(e audit.Entry) bool { return e.Action == "export" && e.By == s.users[0] }) {
				s.t.Errorf("the audit has %v (%v)", entries, err)
			}
		})
		bot = s.start()
		sent(2)
		check()
		bot.kill(syscall.SIGTERM)
	})
}
