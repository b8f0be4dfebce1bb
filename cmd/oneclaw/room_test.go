package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"oneclaw/internal/doctor"
	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/telegram"
	"oneclaw/internal/workspace"
	"oneclaw/toolgroups/core"
)

// writers is a model that does what the message says, by a tool, and repeats its result.
func writers() openai.Responder {
	calls := map[string]struct{ tool, arguments string }{
		"tool":    {"write_file", `{"path": "t", "content": "` + strings.Repeat("x", 30_000) + `"}`},
		"again":   {"write_file", `{"path": "t2", "content": "` + strings.Repeat("x", 40_000) + `"}`},
		"script":  {"js_eval", `{"code": ` + quoted(`try { fs.writeFile("s", "x".repeat(40000)); "written" } catch (e) { e.message }`) + `}`},
		"command": {"exec", `{"command": "head -c 3000000 /dev/zero > c; echo done"}`},
		"delete":  {"exec", `{"command": "rm -f fill c; echo gone"}`},
	}
	return openai.ResponderFunc(func(_ context.Context, req openai.Request) (openai.Reply, error) {
		last := req.Messages[len(req.Messages)-1]
		for word, call := range calls {
			if last.Role == "user" && strings.HasSuffix(strings.TrimSpace(last.Content), "by "+word) {
				return openai.Reply{Calls: []openai.ToolCall{{ID: "call_0", Name: call.tool, Arguments: call.arguments}}}, nil
			}
		}
		return openai.Reply{Text: "Then: " + last.Content}, nil
	})
}

func quoted(s string) string {
	data, _ := json.Marshal(s) // encodes any string
	return string(data)
}

// stored sums the files of all workspaces.
func (w *harness) stored() (sum int64) {
	w.t.Helper()
	err := filepath.WalkDir(filepath.Join(w.env["ONECLAW_DATA_DIR"], "workspaces"), func(_ string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			var info fs.FileInfo
			if info, err = e.Info(); err == nil {
				sum += info.Size()
			}
		}
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		w.t.Fatal(err)
	}
	return sum
}

// However somebody has files written, theirs take no more than the quota, and they are
// told so.
func TestFilesOfOneOwnerKeepToTheQuota(t *testing.T) {
	t.Parallel()
	w := newHarness(t, writers())
	w.env["ONECLAW_TOOLS_WORKSPACE_MIB"] = "1"
	w.settings("approvals:\n- {tool: exec, policy: allow}\n")
	ann := w.person("Ann")
	bot := w.run()
	defer bot.kill(syscall.SIGTERM)
	wantIn(t, w.ask(bot, ann, "hello", nil), "Then: ")
	fill := filepath.Join(workspace.OwnerDir(w.env["ONECLAW_DATA_DIR"], fmt.Sprint("telegram:", ann)), "fill")
	if err := os.WriteFile(fill, make([]byte, 1<<20-60<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	wantIn(t, w.ask(bot, ann, "by tool", nil), "Wrote 30000 bytes")
	const full = "the workspace is full"
	wantIn(t, w.ask(bot, ann, "by again", nil), full)
	wantIn(t, w.ask(bot, ann, "by script", nil), full)
	file := telegram.Attachment{Kind: telegram.KindDocument, Name: "large.bin", Data: make([]byte, 40_000)}
	w.say(ann, "here is a file", &file)
	w.until(bot, "notice of a file", func(s telegram.State) bool { return s.CountAnswers(ann) >= 5 })
	w.telegram.View(func(s telegram.State) {
		answers := s.Answers(ann)
		all := ""
		for _, m := range answers[4:] {
			all += m.Text + "\n"
		}
		wantIn(t, all, "there is no room for it among your files")
	})
	if err := (core.ExecConfig{}).Check(t.Context()); err == nil {
		w.ask(bot, ann, "by command", nil)
		if n := w.stored(); n > 1<<20 {
			t.Errorf("%d bytes are stored", n)
		}
		wantIn(t, w.ask(bot, ann, "by delete", nil), "gone")
		wantIn(t, w.ask(bot, ann, "by again", nil), "Wrote 40000 bytes")
	}
	if n := w.stored(); n > 1<<20 {
		t.Errorf("%d bytes are stored", n)
	}
}

// What is reserved of the disk stays the bot's own: it answers where tools cannot write.
func TestToolsLeaveTheBotRoom(t *testing.T) {
	t.Parallel()
	w := newHarness(t, writers())
	w.env["ONECLAW_TOOLS_DISK_RESERVE_MIB"] = "1000000000"
	ann := w.person("Ann")
	bot := w.run()
	defer bot.kill(syscall.SIGTERM)
	const nearly = "the disk of the bot is nearly full"
	wantIn(t, w.ask(bot, ann, "by tool", nil), nearly)
	wantIn(t, w.ask(bot, ann, "by script", nil), nearly)
	wantIn(t, w.ask(bot, ann, "hello", nil), "Then: ", "hello")
	if n := w.stored(); n > 0 {
		t.Errorf("%d bytes are stored", n)
	}
	all, _ := examined(t, w.env)
	if f := all["disk"]; f.Status != doctor.VerdictWarn {
		t.Errorf("doctor: %+v", f)
	}
}
