package slack

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"oneclaw/bridge/chats"
	emulator "oneclaw/internal/emulator/slack"
	"oneclaw/internal/redact"
	"oneclaw/slack/manifest"
)

// calls are the methods that the adapter names in its source, which is where it takes
// them from.
func calls(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		source, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(source, func(n ast.Node) bool {
			if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING {
				name, err := strconv.Unquote(text.Value)
				if _, known := emulator.MethodScopes(name); err == nil && known {
					found[name] = true
				}
			}
			return true
		})
	}
	return slices.Sorted(maps.Keys(found))
}

// The scopes are those that something needs: a call, an event, the agent view, the
// command, and the download of files, which is no call.
func TestNoScopeWithoutACall(t *testing.T) {
	methods := calls(t)
	for _, want := range []string{postMessage, setStatus, "chat.update", "conversations.replies", "files.info", "users.info"} {
		if !slices.Contains(methods, want) {
			t.Fatalf("%s is not among the calls that were found: %v", want, methods)
		}
	}
	needs := [][]string{{agentScope}, {"commands"}, {"files:read"}}
	for _, name := range methods {
		more, _ := emulator.MethodScopes(name)
		needs = append(needs, more...)
	}
	for _, event := range []string{"app_context_changed", "app_home_opened", "app_mention", "member_joined_channel", "message.channels", "message.groups", "message.im", "message.mpim", "reaction_added", "reaction_removed"} {
		if scope, known := emulator.EventScope(event); scope != "" || !known {
			needs = append(needs, []string{scope})
		}
	}
	var want []string
	for _, one := range needs {
		if len(one) == 1 {
			want = append(want, one[0])
		}
	}
	for _, one := range needs {
		if !slices.ContainsFunc(one, func(scope string) bool { return slices.Contains(want, scope) }) {
			want = append(want, one[0])
		}
	}
	slices.Sort(want)
	if got := manifest.Scopes(); !slices.Equal(got, slices.Compact(want)) {
		t.Errorf("the manifest asks for %v\nthe calls need %v", got, slices.Compact(want))
	}
}

// A scope that was not granted is a failure that says what does not work: installing can
// leave some out, and auth.test passes all the same.
//
// An app can be installed with fewer scopes than its manifest asks for.
func TestMissingScopesSayWhatDoesNotWork(t *testing.T) {
	f := setup(t, quick(), nil)
	all := manifest.Scopes()
	ask := func(scopes []string) (status, text string) {
		f.SetScopes(scopes...)
		settings := Settings{APIURL: f.url}
		settings.BotToken, settings.AppToken = redact.Secret(f.BotToken()), redact.Secret(f.AppToken())
		found := settings.Doctor(t.Context())
		return string(found.Status), found.Text
	}
	if status, text := ask(all); status != "ok" {
		t.Errorf("with all scopes: %s %s", status, text)
	}
	for _, scope := range all {
		status, text := ask(slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s == scope }))
		want := "fail"
		if scope == agentScope {
			want = "warn" // an app that was made without it works
		}
		if status != want || consequences[scope] == "" || !strings.Contains(text, consequences[scope]) || scope != agentScope && !strings.Contains(text, scope) {
			t.Errorf("without %s: %s %s", scope, status, text)
		}
	}
	if len(consequences) != len(all) {
		t.Errorf("%d scopes are explained, the manifest has %d", len(consequences), len(all))
	}
}

// An app can be installed with fewer scopes than its manifest asks for.
func TestTheStartSaysWhatDoesNotWork(t *testing.T) {
	f := setup(t, quick(), nil)
	f.SetScopes("chat:write", "im:history", "users:read")
	f.run()
	f.wait(func(s emulator.State) bool { return s.ActiveSockets() > 0 })
	if log := f.log.String(); !strings.Contains(log, "files:read") || !strings.Contains(log, consequences["files:read"]) || strings.Contains(log, consequences["im:history"]) {
		t.Errorf("the log says\n%s", log)
	}
}

// With the agent view each message in a direct chat begins a thread, where its answer and
// the sign of work belong.
func TestDirectMessagesAreThreads(t *testing.T) {
	f := setup(t, quick(), nil)
	if err := f.Install(manifest.YAML()); err != nil {
		t.Fatal(err)
	}
	f.run()
	first := f.say(f.dm, "one thing", nil)
	second := f.say(f.dm, "another", nil)
	reply := f.say(f.dm, "more of the first", &emulator.SayOptions{Thread: first.TS})
	got := map[string]chats.Message{}
	for _, m := range f.in.wait(t, 3) {
		got[m.ID] = m
	}
	for ts, thread := range map[string]string{first.TS: first.TS, second.TS: second.TS, reply.TS: first.TS} {
		if m := got[ts]; m.Chat != chatOf(f.dm, thread) || !m.Direct || m.Opener != f.user {
			t.Errorf("message %s came as %+v, want it in the thread %s", ts, m, thread)
		}
	}
	to := chats.Address{Chat: got[first.TS].Chat}
	if err := f.p.SetTyping(t.Context(), to, true); err != nil {
		t.Fatal(err)
	}
	f.wait(func(s emulator.State) bool {
		status, stands := s.Status(f.dm, first.TS)
		return stands && status.Text == thinking
	})
	sent, err := f.Command(f.dm, f.user, "/oneclaw", "clear")
	if err != nil {
		t.Fatal(err)
	}
	f.acked(sent)
	f.View(func(s emulator.State) {
		if e, _ := s.Envelope(sent.Envelopes[0]); !strings.Contains(string(e.Answer), "“!clear” in the thread") {
			t.Errorf("/oneclaw clear is answered with %s", e.Answer)
		}
	})
}

// An app without the agent view keeps its direct chats as they are.
func TestWithoutTheAgentViewADirectChatIsOne(t *testing.T) {
	f := start(t, quick(), nil)
	f.say(f.dm, "one", nil)
	f.say(f.dm, "two", nil)
	for _, m := range f.in.wait(t, 2) {
		if m.Chat != chatOf(f.dm, "") {
			t.Errorf("it stands in %s", m.Chat)
		}
	}
}

func TestTheAgentViewIsFoundOut(t *testing.T) {
	f := setup(t, quick(), nil)
	for _, want := range []bool{false, true} {
		if want {
			if err := f.Install(manifest.YAML()); err != nil {
				t.Fatal(err)
			}
		}
		app, err := check(t.Context(), config{Settings: Settings{BotToken: redact.Secret(f.BotToken()), AppToken: redact.Secret(f.AppToken()), APIURL: f.url}, httpClient: f.client})
		if err != nil || app.agentView != want {
			t.Errorf("agent view %t, %v, want %t", app.agentView, err, want)
		}
	}
}

func TestTheManifestIsTaken(t *testing.T) {
	posted, err := manifest.HTTP("https://bot.example.com")
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"for sockets": manifest.YAML(), "for requests": posted} {
		if err := emulator.CheckManifest(data); err != nil {
			t.Errorf("the manifest %s: %v", name, err)
		}
	}
	if data, err := os.ReadFile("manifest/manifest.yaml"); err != nil || !slices.Equal(data, manifest.YAML()) {
		t.Errorf("it is not the file: %v", err)
	}
}

func TestAnInstallationForAnOrganizationIsRefusedWithASentence(t *testing.T) {
	t.Parallel()
	f := setup(t, emulator.Config{Organization: "E0ORG"}, nil)
	found := f.settings.Doctor(t.Context())
	if text := fmt.Sprintf("%+v", found); !strings.Contains(text, "install it in one workspace instead") {
		t.Errorf("doctor says %s", text)
	}
}
