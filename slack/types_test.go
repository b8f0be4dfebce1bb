package slack

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"oneclaw/bridge/chats"
	emulator "oneclaw/internal/emulator/slack"
	"oneclaw/slack/manifest"
	"oneclaw/slack/surface"
)

// TestCallsFitTheTypesOfSlacksLibrary compiles what the bot sends, as constants of the types that
// Slack's own library (@slack/web-api) has for the arguments of each method.
func TestCallsFitTheTypesOfSlacksLibrary(t *testing.T) {
	t.Parallel()
	dir := typesDir(t)
	over := &recorder{}
	t.Cleanup(over.base.CloseIdleConnections)
	f := setup(t, quick(), func(c *config) { c.httpClient = &http.Client{Transport: over} })
	if err := f.Install(manifest.YAML()); err != nil {
		t.Fatal(err)
	}
	f.run()
	f.wait(func(s emulator.State) bool { return s.ActiveSockets() > 0 })
	must := func(_ string, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	asked := f.say(f.dm, "tell", &emulator.SayOptions{Files: []emulator.Attachment{{Name: "a.txt", MIME: "text/plain", Data: []byte("x")}}})
	f.in.wait(t, 1)
	to := chats.Address{Chat: chatOf(f.dm, asked.TS)}
	id, err := f.p.Begin(t.Context(), to, growing("one "))
	must(id, err)
	must("", f.p.Update(t.Context(), to, id, growing("one two ")))
	must("", f.p.Finish(t.Context(), to, id, chats.Part{Text: "one two three"}))
	must("", f.p.SetTyping(t.Context(), to, true))
	must("", f.p.Acknowledge(t.Context(), to.Chat, asked.TS, true))
	must("", f.p.Acknowledge(t.Context(), to.Chat, asked.TS, false))
	for _, part := range f.p.Render("# Title\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```go\nx\n```\n\n- see [here](https://a.test)") {
		part.FeedbackButtons = true
		id, err := f.p.Send(t.Context(), to, part)
		must(id, err)
		part.Buttons = [][]chats.Button{{{Label: "Yes", Data: "y", Style: chats.StylePrimary}, {Label: "No", Data: "n", Style: chats.StyleDanger}}, {{Label: "See", Data: "s", URL: "https://a.test"}}}
		must("", f.p.Edit(t.Context(), to, id, part))
		must(f.p.Send(t.Context(), to, chats.Part{Plain: "1 < 2", Buttons: part.Buttons}))
	}
	public := chats.Address{Chat: chatOf(f.channel, "")}
	must(f.p.SendEphemeral(t.Context(), public, f.user, chats.Part{Text: "psst", Plain: "psst"}))
	must(f.p.SendFile(t.Context(), public, out("a.txt", "a", []byte("x"))))
	must("", f.p.AnswerPress(t.Context(), chats.Message{Chat: to.Chat, User: f.user}, "pressed"))
	for _, home := range []bool{true, false} {
		must("", f.p.surface.Greet(t.Context(), house{f.in}, chats.Message{User: f.user}, surface.OpenEvent{Home: home, User: f.user, Channel: f.dm}))
	}
	must("", f.p.surface.MarkIdle(t.Context(), f.dm, asked.TS))
	// Where the bot is not, it responds to a command.
	outside := f.make(emulator.ChannelSpec{Members: []string{f.user}, WithoutBot: true})
	if _, err := f.Command(outside, f.user, "/oneclaw", "whoami"); err != nil {
		t.Fatal(err)
	}
	command := f.in.wait(t, 2)[1]
	must(f.p.Send(t.Context(), chats.Address{Chat: command.Chat, ReplyTo: command.ID}, chats.Part{Text: "*you*", Buttons: [][]chats.Button{{{Label: "Yes", Data: "y"}}}}))
	f.stop()

	var b strings.Builder
	b.WriteString(`import type * as web from "@slack/web-api";
import type { AnyChunk, HomeView, KnownBlock } from "@slack/types";
type Known<T> = T extends unknown ? Omit<T, "channel" | "text"> : never;
type Response = Known<web.ChatPostMessageArguments> & { response_type?: "in_channel" | "ephemeral"; replace_original?: boolean; text?: string };
`)
	calls := map[string]int{}
	for i, req := range over.seen {
		method, ok := strings.CutPrefix(req.URL.Path, "/api/")
		of := "web." + typeName(method) + "Arguments"
		switch {
		case strings.HasPrefix(req.URL.Path, "/commands/"):
			method, of = "response", "Response"
		case !ok || !strings.Contains(over.said[i], `"ok":true`):
			continue
		}
		calls[method]++
		fields := arguments(t, req)
		object, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "export const call%d: %s = %s;\n", i, of, object)
		// Calls take any block with a type, so that the known ones are compiled by themselves.
		for name, of := range map[string]string{"blocks": "KnownBlock[]", "chunks": "AnyChunk[]", "view": `Omit<HomeView, "blocks"> & { blocks: KnownBlock[] }`} {
			if fields[name] != nil {
				fmt.Fprintf(&b, "export const %s%d: %s = %s;\n", name, i, of, fields[name])
				calls[name]++
			}
		}
	}
	if calls["response"] == 0 || calls["blocks"] < 6 || calls["chunks"] == 0 || calls["view"] == 0 || len(calls) < 20 {
		t.Errorf("compiled are %v", calls)
	}
	compile(t, dir, b.String())
}

// typeName is how the library begins the names of the types of a method.
func typeName(method string) (name string) {
	for part := range strings.SplitSeq(method, ".") {
		name += strings.ToUpper(part[:1]) + part[1:]
	}
	return name
}

// arguments are those of a call as the library takes them: the values of a form that are lists,
// objects or truths decoded, and without the token, which it has in the header.
func arguments(t *testing.T, req *http.Request) map[string]json.RawMessage {
	t.Helper()
	body, err := io.ReadAll(req.Body)
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]json.RawMessage{}
	if json.Unmarshal(body, &fields) != nil {
		form, err := url.ParseQuery(string(body))
		if err != nil {
			t.Fatal(err)
		}
		for name := range form {
			value := form.Get(name)
			if name == "inclusive" || name == "include_all_metadata" { // the library for Go writes digits
				value = map[string]string{"0": "false", "1": "true"}[value]
			}
			if !json.Valid([]byte(value)) || !strings.ContainsAny(value[:1], "[{tf") && name != "limit" && name != "length" {
				quoted, err := json.Marshal(value)
				if err != nil {
					t.Fatal(err)
				}
				value = string(quoted)
			}
			fields[name] = json.RawMessage(value)
		}
	}
	delete(fields, "token")
	return fields
}

// typesDir is where internal/emulator/wire/testdata/types/install has installed the types. It skips the
// test where it has not, unless they must be there.
func typesDir(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	setting := os.Getenv("TEST_ONECLAW_TYPES")
	dir := filepath.Join(cache, "oneclaw", "types")
	if setting != "must" {
		dir = cmp.Or(setting, dir)
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "typescript")); err != nil {
		if setting == "must" {
			t.Fatalf("the types are not installed: run internal/emulator/wire/testdata/types/install: %v", err)
		}
		t.Skip("the types are not installed: run internal/emulator/wire/testdata/types/install")
	}
	return dir
}

// compile has TypeScript's compiler check a source.
func compile(t *testing.T, dir, source string) {
	t.Helper()
	scratch, err := os.MkdirTemp(dir, "slack") //nolint:usetesting // Types are found from below their folder alone.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(scratch) })
	file := filepath.Join(scratch, "calls.ts")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "node", filepath.Join(dir, "node_modules", "typescript", "bin", "tsc"),
		"--noEmit", "--strict", "--skipLibCheck", "--target", "es2022", "--module", "nodenext", "--moduleResolution", "nodenext", file).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s\n%s", err, out, source)
	}
}
