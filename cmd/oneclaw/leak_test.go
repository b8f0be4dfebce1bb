package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/slack"
	"oneclaw/internal/emulator/telegram"
	"oneclaw/internal/workspace"
)

// vault are secrets that stand in settings, in files, in what servers answer, and on the
// lips of the model. They are put together here so that nobody takes them for real ones.
func vault(w *harness) map[string]string {
	long := "q7Rv2LxN8mKd4TzB6wYc0PfHs3Jg5Ua9"
	return map[string]string{
		"telegram token": w.env["TELEGRAM_BOT_TOKEN"], "slack bot": w.env["SLACK_BOT_TOKEN"], "slack app": w.env["SLACK_APP_TOKEN"],
		"model key": w.env["OPENAI_API_KEY"], "secret key": "kept-in-the-environment-1", "google secret": "google client's \"secret\" & 1",
		"server key": "mcp-" + long, "variable": "variable of an administrator 7",
		"shape openai": "sk" + "-proj-" + long + long, "shape github": "gh" + "p_" + long + "abcd1", "shape aws": "AK" + "IAIOSFODNN7EXAMPL3"[:18],
		"shape slack": "xo" + "xb-123456789012-123456789012-" + long, "shape telegram": "7654321098:AA" + long + "x",
		"shape google": "ya" + "29.a0" + long, "shape pem": "-----BEGIN PRIVATE" + " KEY-----\n" + long + long + "\n-----END PRIVATE" + " KEY-----",
		"password": "hunter2-" + long,
	}
}

// setVariable has the model set a variable of an administrator.
func setVariable(req openai.Request, value string) (openai.Reply, error) {
	return useTool(req, "config", "manage_env_var", fmt.Sprintf(`{"action":"set","key":"A_VALUE","value":%q}`, value))
}

// babbler is a model that reads what it is told to read, tells all that it was shown,
// and makes up secrets of its own.
func babbler(secrets string, reads []openai.ToolCall) openai.Responder {
	return openai.ResponderFunc(func(_ context.Context, req openai.Request) (openai.Reply, error) {
		last := req.Messages[len(req.Messages)-1]
		switch {
		case last.Role == "user" && strings.Contains(last.Content, "break"):
			return openai.Reply{Err: &openai.Error{Status: 400, Message: "refused: " + secrets}}, nil
		case last.Role == "user" && strings.Contains(last.Content, "administer"), strings.HasPrefix(last.Content, "Loaded "):
			return setVariable(req, "variable of an administrator 7")
		case last.Role == "user":
			return openai.Reply{Text: "I look at " + secrets, Calls: reads}, nil
		}
		var told strings.Builder
		for _, m := range req.Messages {
			if m.Role == "tool" {
				told.WriteString(m.Content + "\n\n")
			}
		}
		return openai.Reply{Text: "It is done.\n\n" + told.String() + "```\n" + secrets + "\n```"}, nil
	})
}

// TestSecretsAreShownNowhere plants secrets wherever the bot could meet them, has
// everything told in both platforms, and looks for them in the chats, in what the model
// was sent, in the log, in the files of the bot and behind its port.
func TestSecretsAreShownNowhere(t *testing.T) {
	t.Parallel()
	w := newHarness(t, nil)
	token := w.env["TELEGRAM_BOT_TOKEN"]
	server, channel, people := w.withSlack(t, "ann")
	address := freeAddress(t)
	w.env["TELEGRAM_BOT_TOKEN"], w.env["ONECLAW_ALLOW"], w.env["ONECLAW_LISTEN"] = token, "*", address
	secrets := vault(w)
	all, forms := "", ""
	for name, s := range secrets {
		if name != "secret key" && name != "password" {
			all += s + "\n"
		}
		if !strings.HasPrefix(name, "shape") && name != "password" {
			forms += url.QueryEscape(s) + "\n" + base64.StdEncoding.EncodeToString([]byte("user:"+s)) + "\n"
		}
	}
	all += "postgres://bot:" + secrets["password"] + "@db/x\n" + secrets["secret key"]
	leaky := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, all+forms) }))
	t.Cleanup(leaky.Close)
	reads := []openai.ToolCall{
		{ID: "a", Name: "read_file", Arguments: `{"path":"settings.env"}`},
		{ID: "c", Name: "http_request", Arguments: fmt.Sprintf(`{"url":%q}`, leaky.URL)},
	}
	model, modelURL := startModel(t, openai.Config{Responder: babbler(all, reads), Key: "sk-emulated"})
	dir := w.env["ONECLAW_DATA_DIR"]
	ann := w.person("Ann")
	maps.Copy(w.env, map[string]string{
		"OPENAI_BASE_URL": modelURL, "ONECLAW_SECRET_KEY": secrets["secret key"], "GOOGLE_CLIENT_ID": "client", "GOOGLE_CLIENT_SECRET": secrets["google secret"],
		"HOST_KEY": secrets["server key"], "ONECLAW_LOG_LEVEL": "debug", "ONECLAW_ADMINS": fmt.Sprint("telegram:", ann),
		"ONECLAW_TOOLS_ALLOW_PRIVATE": "127.0.0.0/8",
	})
	plant(t, dir, "oneclaw.yaml", "approvals: [{tool: manage_env_var, policy: allow}, {tool: http_request, policy: allow}]\nmcp:\n  servers:\n    leaky:\n      command: /bin/sh\n"+
		"      args: [-c, 'read line; echo \"$SERVER_KEY\" >&2; echo \"no JSON: $SERVER_KEY\"; exit 3']\n      env: {SERVER_KEY: '${HOST_KEY}'}\n")
	w.run().kill(syscall.SIGTERM) // a folder of files without a database would look like a lost one
	for _, owner := range []string{fmt.Sprint("telegram:", ann), "slack:" + channel} {
		files := workspace.OwnerDir(dir, owner)
		plant(t, files, "settings.env", all+forms)
	}

	bot := w.run()
	told := w.ask(bot, ann, "administer", nil) // an administrator sets a variable
	for _, text := range []string{"tell", "break", "tell again"} {
		told += w.ask(bot, ann, text, nil)
		if text == "break" {
			w.tap(bot, ann, "Details")
			told += w.shows(bot, ann, "Incident ")
		}
		n := 0
		server.View(func(s slack.State) { n = s.CountAnswers(channel) })
		sayTo(t, server, channel, people[0], "<@"+server.BotUser()+"> "+text, "")
		waitSlack(t, server, "an answer", func(s slack.State) bool { return s.CountAnswers(channel) > n })
	}
	// The test would find nothing where nothing was told.
	wantIn(t, told, "It is done", "••••", "hidden from you", "did not accept your message")
	for _, line := range []string{"no answer", "••••", "exit status 3"} {
		bot.out.await(t, line)
	}
	places := map[string]string{"log": bot.out.String(), "telegram": told, "slack": fmt.Sprintf("%+v", server.Messages(channel))}
	w.telegram.View(func(s telegram.State) { places["telegram chat"] = fmt.Sprintf("%+v", s.Answers(ann)) })
	for _, request := range model.Requests() {
		for _, m := range request.Messages {
			if m.Role == "system" || m.Role == "tool" {
				places["prompts"] += m.Content + "\n"
			}
		}
	}
	for _, page := range []string{"/healthz", "/readyz", "/metrics"} {
		places[page] = get(t, "http://"+address+page)
	}
	bot.kill(syscall.SIGTERM)
	for _, args := range [][]string{{"config"}, {"doctor"}, {"doctor", "--json"}, {"history", fmt.Sprint("telegram:", ann)}} {
		out, _ := command(t.Context(), t, w.env, args...).CombinedOutput() // doctor finds fault with emulators
		if len(out) < 100 {
			t.Errorf("%q prints only %s", args, out)
		}
		places["oneclaw "+args[0]] += string(out)
	}
	places["files of the bot"] = filesBut(t, dir, "settings.env", "oneclaw.yaml")
	lookFor(t, secrets, places)
}

func lookFor(t *testing.T, secrets, places map[string]string) {
	t.Helper()
	for place, text := range places {
		for name, s := range secrets {
			pieces := []string{s, url.QueryEscape(s), strings.ReplaceAll(s, `"`, `\"`), base64.StdEncoding.EncodeToString([]byte("user:" + s))}
			if body := strings.Split(s, "\n"); len(body) > 1 {
				pieces = append(pieces, body[1])
			}
			for _, piece := range pieces {
				if (place == "files of the bot" || place == "oneclaw history") && strings.HasPrefix(piece, "variable of") {
					continue // the call with which the administrator's words set it is on record
				}
				if at := strings.Index(text, piece); at >= 0 {
					t.Errorf("%s shows the %s: %.300s", place, name, text[max(0, at-150):])
					break
				}
			}
		}
	}
}

func plant(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// filesBut returns the bytes of all files below a folder.
func filesBut(t *testing.T, dir string, but ...string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		for _, b := range but {
			if d.Name() == b {
				return nil
			}
		}
		data, err := os.ReadFile(name)
		all.Write(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

func get(t testing.TB, address string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(response.Header, string(body))
}

// TestFilesOfTheBotAreForItsUserAlone looks at what a run leaves on the disk.
func TestFilesOfTheBotAreForItsUserAlone(t *testing.T) {
	w := newHarness(t, openai.ResponderFunc(func(_ context.Context, req openai.Request) (openai.Reply, error) {
		if req.Messages[len(req.Messages)-1].Role == "user" {
			return openai.Reply{Calls: []openai.ToolCall{
				{ID: "1", Name: "write_file", Arguments: `{"path":"deep/note.txt","content":"x"}`},
				{ID: "2", Name: "save_memory", Arguments: `{"content":"x"}`},
			}}, nil
		}
		return openai.Reply{Text: "done"}, nil
	}))
	dir := filepath.Join(t.TempDir(), "data")
	w.env["ONECLAW_DATA_DIR"] = dir
	bot := w.run()
	w.ask(bot, w.person("Ann"), "write", nil)
	seen := 0
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		seen++
		// The folders keep others out; in them only the secret has to.
		if name == dir || d.Name() == "secret.key" || d.Name() == databaseName || d.Name() == "workspaces" {
			if info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s is %s", name, info.Mode())
			}
		}
		return nil
	})
	if err != nil || seen < 5 {
		t.Errorf("%d files: %v", seen, err)
	}
}

// A person who has the model repeat words sees in the answer whether a word was masked: which letter goes on as the
// bot's token does must make no difference.
func TestAnAnswerShowsNotHowASecretBegins(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.ResponderFunc(func(_ context.Context, req openai.Request) (openai.Reply, error) {
		_, words, _ := strings.Cut(req.Messages[len(req.Messages)-1].Content, "repeat: ")
		return openai.Reply{Text: strings.TrimSpace(words)}, nil
	}))
	token := w.env["TELEGRAM_BOT_TOKEN"]
	bot, person := w.run(), w.person("Mallory")
	words := []string{token[:12] + "…", token[:len(token)-1] + "...", token[:13] + "\n[cut: 1 of 2]"}
	wantIn(t, w.ask(bot, person, "repeat: "+strings.Join(words, " "), nil), words...)
	wantIn(t, w.ask(bot, person, "repeat: all of it is "+token, nil), "all of it is ••••")
}

// A search of the history shows a part of a message, and whoever words the query chooses which: a secret in it is masked
// before, or two queries would tell both halves.
func TestASearchOfTheHistoryTellsNoHalfOfASecret(t *testing.T) {
	t.Parallel()
	const secret = "Zw8-Kq3vLr7TnYb2Hd6Jx9Pf4Gm1Sc5"
	var mu sync.Mutex
	var results strings.Builder
	w := newHarness(t, openai.ResponderFunc(func(_ context.Context, req openai.Request) (openai.Reply, error) {
		last := req.Messages[len(req.Messages)-1]
		switch {
		case last.Role == "user" && strings.Contains(last.Content, "keep the key"), strings.HasPrefix(last.Content, "Loaded "):
			return setVariable(req, secret)
		case last.Role == "user" && strings.HasPrefix(last.Content, "look for "):
			return openai.Reply{Calls: []openai.ToolCall{{Name: "search_history", Arguments: fmt.Sprintf(`{"query":%q,"scope":"sessions","date_to":"2099-01-01"}`, strings.TrimPrefix(last.Content, "look for "))}}}, nil
		case last.Role == "tool":
			mu.Lock()
			defer mu.Unlock()
			results.WriteString(last.Content + "\n")
		}
		return openai.Reply{Text: "done"}, nil
	}))
	ann := w.person("Ann")
	w.env["ONECLAW_ADMINS"] = fmt.Sprint("telegram:", ann)
	plant(t, w.env["ONECLAW_DATA_DIR"], "oneclaw.yaml", "approvals: [{tool: manage_env_var, policy: allow}]\n")
	bot := w.run()

	// The excerpt has 498 characters, of which 125 stand before the match.
	before, after := strings.Repeat("lorem ", 100), strings.Repeat("ipsum ", 150)
	// So the first excerpt ends, and the second begins, in the middle of the secret.
	text := "keep the key " + before + "anchor " + strings.Repeat("u", 350) + secret + " " + strings.Repeat("v", 109) + "haven " + after
	w.ask(bot, ann, text, nil)
	w.ask(bot, ann, "/clear", nil)
	w.ask(bot, ann, "look for anchor", nil)
	w.ask(bot, ann, "look for haven", nil)
	mu.Lock()
	defer mu.Unlock()
	told := results.String()
	if strings.Count(told, "••••") < 2 {
		t.Errorf("the searches found %s", told)
	}
	for _, half := range []string{secret[:16], secret[16:]} {
		if strings.Contains(told, half) {
			t.Errorf("the model is told %q", half)
		}
	}
}
