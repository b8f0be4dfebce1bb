package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"oneclaw/internal/database"
	"oneclaw/internal/doctor"
	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/slack"
	"oneclaw/storage"
	"oneclaw/storage/bolt"
)

// examined runs oneclaw doctor --json and returns what it finds by check, and whether it
// says that all is in order.
func examined(t *testing.T, env map[string]string) (map[string]doctor.Finding, bool) {
	t.Helper()
	cmd := command(t.Context(), t, env, "doctor", "--json")
	out, err := cmd.Output()
	var all []doctor.Finding
	if err := json.Unmarshal(out, &all); err != nil {
		t.Fatalf("doctor prints %s: %v", out, err)
	}
	byName := map[string]doctor.Finding{}
	for _, f := range all {
		if f.Text == "" || f.Check == "" {
			t.Errorf("a finding without words: %+v", f)
		}
		byName[f.Check] = f
	}
	return byName, err == nil
}

func TestDoctorFindsAHealthyBot(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	w.env["ONECLAW_ALLOW"] = "telegram:1"
	for _, life := range []string{"before the first start", "while it runs", "after it ended"} {
		t.Run(life, func(t *testing.T) {
			if life == "while it runs" {
				bot := w.run()
				defer bot.kill(syscall.SIGTERM)
			}
			all, ok := examined(t, w.env)
			if !ok {
				t.Errorf("not in order: %+v", all)
			}
			for _, name := range []string{"settings", "start", "files", "database", "access", "telegram", "model", "google", "listen", "cluster"} {
				if all[name].Status != doctor.VerdictOK {
					t.Errorf("%s: %+v", name, all[name])
				}
			}
			for _, name := range []string{"slack", "turns"} {
				if _, there := all[name]; there {
					t.Errorf("%s is not configured: %+v", name, all[name])
				}
			}
		})
	}
	out, err := command(t.Context(), t, w.env, "doctor").CombinedOutput()
	if err != nil {
		t.Errorf("doctor: %v", err)
	}
	wantIn(t, string(out), "ok    settings", "ok    telegram        @oneclaw_bot")
}

// stored puts an entry into the database of a harness.
func stored(key, value string) func(w *harness) {
	return func(w *harness) {
		store, err := bolt.Open(bolt.Config{Path: filepath.Join(w.env["ONECLAW_DATA_DIR"], databaseName)})
		if err == nil {
			_, err = store.Put(w.t.Context(), key, []byte(value), storage.Any)
			err = errors.Join(err, store.Close())
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

// inUse has the database opened, as by a running bot.
func inUse(w *harness) {
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(w.env["ONECLAW_DATA_DIR"], databaseName)})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = store.Close() })
}

func TestDoctorSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(w *harness)
		check  string
		status doctor.Verdict
		says   string
	}{
		"no platform":                  {func(w *harness) { delete(w.env, "TELEGRAM_BOT_TOKEN") }, "settings", doctor.VerdictFail, "TELEGRAM_BOT_TOKEN"},
		"mistyped":                     {func(w *harness) { w.env["ONECLAW_ALOW"] = "x" }, "settings", doctor.VerdictFail, "ONECLAW_ALOW"},
		"wrong token":                  {func(w *harness) { w.env["TELEGRAM_BOT_TOKEN"] = "12345:wrong" }, "telegram", doctor.VerdictFail, "TELEGRAM_BOT_TOKEN"},
		"nobody there":                 {func(w *harness) { w.env["TELEGRAM_API_URL"] = "http://127.0.0.1:1" }, "telegram", doctor.VerdictFail, "TELEGRAM_API_URL"},
		"wrong key":                    {func(w *harness) { w.env["OPENAI_API_KEY"] = "sk-wrong" }, "model", doctor.VerdictFail, "OPENAI_API_KEY"},
		"no model there":               {func(w *harness) { w.env["OPENAI_BASE_URL"] = "http://127.0.0.1:1/v1" }, "model", doctor.VerdictFail, "OPENAI_BASE_URL"},
		"a gateway without its header": {func(w *harness) { w.env["OPENAI_BASE_URL"] = picky(w.t) }, "model", doctor.VerdictFail, "Either x-portkey-config or x-portkey-provider header is required"},
		"a gateway with its header": {func(w *harness) {
			w.env["OPENAI_BASE_URL"], w.env["ONECLAW_MODEL_HEADERS"] = picky(w.t), "x-portkey-provider: openai"
		}, "model", doctor.VerdictOK, "context 400,000"},
		"a server without a list": {func(w *harness) {
			srv := httptest.NewServer(http.NotFoundHandler())
			w.t.Cleanup(srv.Close)
			w.env["OPENAI_BASE_URL"] = srv.URL + "/v1"
		}, "model", doctor.VerdictWarn, "lists no models"},
		"unknown model":            {func(w *harness) { w.env["OPENAI_MODEL"] = "gpt-imaginary" }, "model", doctor.VerdictWarn, "OPENAI_MODEL"},
		"a server's time zone":     {func(w *harness) { w.env["TZ"] = "UTC" }, "time zone", doctor.VerdictWarn, "ONECLAW_TIMEZONE"},
		"UTC on purpose":           {func(w *harness) { w.env["TZ"], w.env["ONECLAW_TIMEZONE"] = "UTC", "UTC" }, "time zone", doctor.VerdictOK, "UTC, where it is "},
		"another zone of the host": {func(w *harness) { w.env["TZ"] = "Asia/Tokyo" }, "time zone", doctor.VerdictOK, "Asia/Tokyo, where it is "},
		"a zone of a chat":         {func(w *harness) { w.env["TZ"] = "UTC"; stored("settings/value/time_zone", `"Europe/Lisbon"`)(w) }, "time zone", doctor.VerdictOK, "Europe/Lisbon"},
		"a zone that is unknown":   {func(w *harness) { w.env["TZ"] = "UTC"; inUse(w) }, "time zone", doctor.VerdictOK, "UTC, where it is"},
		"open to all":              {func(w *harness) { w.env["ONECLAW_ALLOW"] = "*" }, "access", doctor.VerdictWarn, "ONECLAW_ALLOW"},
		"nobody yet":               {func(w *harness) { delete(w.env, "ONECLAW_ALLOW") }, "access", doctor.VerdictOK, "link"},
		"half of google":           {func(w *harness) { w.env["GOOGLE_CLIENT_ID"] = "x" }, "google", doctor.VerdictFail, "GOOGLE_CLIENT_SECRET"},
		"unsafe commands":          {func(w *harness) { w.env["ONECLAW_TOOLS_UNSAFE_EXEC"] = "true" }, "exec", doctor.VerdictWarn, "sandbox"},
		"one turn":                 {func(w *harness) { w.env["ONECLAW_MAX_TURNS"] = "1" }, "turns", doctor.VerdictWarn, "background tasks"},
		"no programs":              {func(w *harness) { w.env["PATH"] = "/nonexistent" }, "browser", doctor.VerdictWarn, "Chromium"},
		"a folder for all": {func(w *harness) {
			if err := os.Chmod(w.env["ONECLAW_DATA_DIR"], 0o755); err != nil {
				w.t.Fatal(err)
			}
		}, "data directory", doctor.VerdictWarn, "chmod 700"},
		"a damaged database": {func(w *harness) {
			if err := os.WriteFile(filepath.Join(w.env["ONECLAW_DATA_DIR"], databaseName), []byte("no database"), 0o600); err != nil {
				w.t.Fatal(err)
			}
		}, "database", doctor.VerdictFail, "restore"},
		"no such catalogue":   {func(w *harness) { w.env["ONECLAW_MCP_CATALOGUE"] = "/nonexistent" }, "start", doctor.VerdictFail, "mcp.catalogue"},
		"no model that hears": {func(w *harness) { w.env["ONECLAW_VOICE_BASE_URL"] = "http://127.0.0.1:1/v1" }, "start", doctor.VerdictFail, "ONECLAW_VOICE_MODEL"},
		"a file for all to read": {func(w *harness) {
			w.env["ONECLAW_CONFIG"] = filepath.Join(w.t.TempDir(), "settings.yaml")
			if err := os.WriteFile(w.env["ONECLAW_CONFIG"], []byte("secret_key: 0123456789abcdef"), 0o644); err != nil {
				w.t.Fatal(err)
			}
		}, "files", doctor.VerdictWarn, "settings.yaml"},
		"a newer database":   {stored("format", `{"version":99}`), "database", doctor.VerdictFail, "update oneclaw"},
		"an unfinished move": {stored(database.UnfinishedKey, ""), "database", doctor.VerdictFail, "run it again"},
		"a key for all to read": {func(w *harness) {
			if err := os.WriteFile(filepath.Join(w.env["ONECLAW_DATA_DIR"], database.SecretName), []byte("0123456789abcdef"), 0o644); err != nil {
				w.t.Fatal(err)
			}
		}, "files", doctor.VerdictWarn, database.SecretName},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, openai.Offline{})
			c.change(w)
			all, ok := examined(t, w.env)
			f := all[c.check]
			if f.Status != c.status {
				t.Errorf("%s: %+v", c.check, f)
			}
			wantIn(t, f.Text, c.says)
			failed := slices.ContainsFunc(slices.Collect(maps.Values(all)), func(f doctor.Finding) bool { return f.Status == doctor.VerdictFail })
			if ok == failed {
				t.Errorf("in order: %t with %+v", ok, all)
			}
		})
	}
}

// picky starts a gateway that refuses requests without a header of its own, as Portkey does. It returns its address.
func picky(t testing.TB) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Portkey-Provider") == "" {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"status":"failure","message":"Either x-portkey-config or x-portkey-provider header is required"}`)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"data":[{"id":"gpt-5-mini","context_length":400000},{"id":%q,"context_length":400000}]}`, openai.DefaultModel)
	}))
	t.Cleanup(srv.Close)
	return srv.URL + "/v1"
}

// An app can be installed with fewer scopes than its manifest asks for.
func TestDoctorComparesScopesOfSlack(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	server, _, _ := w.withSlack(t, "ann")
	all, ok := examined(t, w.env)
	if f := all["slack"]; f.Status != doctor.VerdictWarn || !ok || !strings.Contains(f.Text, "agent view") {
		t.Errorf("an app without the agent view: %+v", all)
	}
	printed, err := command(t.Context(), t, nil, "slack", "manifest").Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Install(printed); err != nil {
		t.Fatalf("the manifest that is printed: %v", err)
	}
	all, ok = examined(t, w.env)
	if f := all["slack"]; f.Status != doctor.VerdictOK || !ok {
		t.Errorf("%+v", all)
	}
	w.env["SLACK_APP_TOKEN"] = "xapp-wrong"
	all, ok = examined(t, w.env)
	if f := all["slack"]; f.Status != doctor.VerdictFail || ok {
		t.Errorf("a wrong app token: %+v", f)
	}
	wantIn(t, all["slack"].Text, "SLACK_APP_TOKEN")
	w.env["SLACK_APP_TOKEN"] = server.AppToken()
	for _, scopes := range [][]string{{"chat:write", "im:history"}, {"im:history"}} {
		poor, err := slack.New(slack.Config{Scopes: scopes})
		if err != nil {
			t.Fatal(err)
		}
		url, err := poor.Start(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w.env["SLACK_API_URL"], w.env["SLACK_BOT_TOKEN"], w.env["SLACK_APP_TOKEN"] = url, poor.BotToken(), poor.AppToken()
		all, ok = examined(t, w.env)
		if f := all["slack"]; f.Status != doctor.VerdictFail || ok {
			t.Errorf("with %v: %+v", scopes, f)
		}
		wantIn(t, all["slack"].Text, "users:read", "people have no names", "install it again")
		_ = poor.Close()
	}
}

// Each model of models.by_kind is checked, beside a running bot too, and tried by --live.
func TestDoctorChecksTheModelsByKind(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		deep, summaries string
		status          doctor.Verdict
		says            []string
	}{
		"all there":          {"preset/strong", "preset/" + openai.DefaultModel, doctor.VerdictOK, []string{"models.by_kind.deep: preset/strong: context", "models.by_kind.summaries: preset/emulator: context"}},
		"one for two":        {"preset/strong", "preset/strong", doctor.VerdictOK, []string{"models.by_kind.deep, models.by_kind.summaries: preset/strong"}},
		"unknown model":      {"preset/stronger", "", doctor.VerdictWarn, []string{"models.by_kind.deep: preset/stronger is none of the 2 models"}},
		"unknown provider":   {"elsewhere/strong", "preset/strong", doctor.VerdictFail, []string{"models.by_kind.deep: elsewhere/strong: ", "models.by_kind.summaries: preset/strong: context"}},
		"none, so no check":  {"", "", "", nil},
		"no name of a model": {"strong", "", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, openai.ResponderFunc(adding), "strong")
			w.env["ONECLAW_MODELS_DEEP"], w.env["ONECLAW_MODELS_SUMMARIES"] = c.deep, c.summaries
			all, _ := examined(t, w.env)
			found, ok := all["models in use"]
			if found.Status != c.status || ok != (c.says != nil) {
				t.Fatalf("%+v", all)
			}
			if name == "no name of a model" && all["settings"].Status != doctor.VerdictFail {
				t.Errorf("%+v", all["settings"])
			}
			if !ok {
				return
			}
			wantIn(t, found.Text, c.says...)
			bot, ann := w.run(), w.person("Ann")
			all, _ = examined(t, w.env)
			if all["models in use"] != found {
				t.Errorf("beside a running bot: %+v", all["models in use"])
			}
			bot.kill(syscall.SIGTERM)
			if broken := strings.Contains(bot.out.String(), "a model of models.by_kind cannot be asked"); broken != (c.status == doctor.VerdictFail) {
				t.Errorf("the start says so: %v", broken)
			}
			all, _ = examined(t, w.env)
			if all["models in use"] != found {
				t.Errorf("after it ended: %+v", all["models in use"])
			}
			if name == "one for two" {
				out, _ := tried(t, w.env, "--chat", fmt.Sprint("telegram:", ann))
				wantIn(t, out, "preset/strong is asked twice too, for models.by_kind.deep, models.by_kind.summaries", "15 as the emulator does")
			}
		})
	}
}
