package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"oneclaw/internal/app"
	"oneclaw/internal/config"
	"oneclaw/internal/database"
	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/telegram"
	"oneclaw/storage"
)

// testdata/format4 holds the data of a bot as the program of commit b6b427fb left it when it was killed:
// data.tar.gz is a data folder with the database in a file, postgres.sql.gz a dump of the same on a server.
// Every later format has to open both, or to refuse them in a line; [TestOldDataOpens] says which. They are
// never made anew from a later program. They were made so, with that commit checked out and this file added:
//
//	unshare --uts sh -c 'hostname witness && TEST_ONECLAW_MAKE_DATA=testdata/format4 \
//	    go test -count=1 -run TestMakeOldData ./cmd/oneclaw'
//
// Another host name keeps that of the machine out of the records of replicas; the people, ids and tokens are
// the emulator's.
const (
	oldData       = "testdata/format4"
	makeVariable  = "TEST_ONECLAW_MAKE_DATA"
	oldFolder     = "data.tar.gz"
	oldDump       = "postgres.sql.gz"
	oldSecretKey  = "the key of the old data"
	neverAnswered = "and what do you think?"
	oldSettings   = `
approvals:
- {tool: get_current_time, policy: ask, lasting: true}
- {tool: exec, policy: ask}
- {group: config, policy: allow}
- {tool: set_config, policy: allow}
budget: {user_tokens: 5000000, chat_tokens: 9000000}
`
)

// callsInLines is a model that makes the calls of the lines of a message, one after another, and then says so.
// It never answers one that has no call.
func callsInLines(stuck chan<- struct{}) openai.Responder {
	return openai.ResponderFunc(func(ctx context.Context, req openai.Request) (openai.Reply, error) {
		said, results := "", 0
		for _, m := range req.Messages {
			switch {
			case m.Role == "user" && !strings.HasPrefix(m.Content, "[Loaded tool groups: "): // a note after a change of routing
				said, results = m.Content, 0
			case m.Role == "tool":
				results++
			}
		}
		var calls []openai.ToolCall
		for line := range strings.Lines(said) {
			if words := strings.SplitN(strings.TrimSpace(line), " ", 3); len(words) == 3 && words[0] == "call" {
				calls = append(calls, openai.ToolCall{ID: fmt.Sprint("call_", len(calls)), Name: words[1], Arguments: words[2]})
			}
		}
		switch {
		case len(calls) == 0 && stuck != nil:
			stuck <- struct{}{}
			<-ctx.Done()
			return openai.Reply{}, ctx.Err()
		case results < len(calls):
			return openai.Reply{Calls: calls[results : results+1]}, nil
		}
		return openai.Reply{Text: "Then: " + req.Messages[len(req.Messages)-1].Content}, nil
	})
}

// TestMakeOldData makes the data of [oldData].
func TestMakeOldData(t *testing.T) {
	dir := os.Getenv(makeVariable)
	if dir == "" {
		t.Skip("the old data is made only with the program that it is named after")
	}
	if host := app.Hostname(); host != "witness" {
		t.Fatalf("the host name %q would be in the data", host)
	}
	t.Run("file", func(t *testing.T) {
		w := newOldBot(t, make(chan struct{}, 1))
		w.use()
		var b bytes.Buffer
		if err := errors.Join(pack(&b, w.env["ONECLAW_DATA_DIR"]), os.WriteFile(filepath.Join(dir, oldFolder), b.Bytes(), 0o600)); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("server", func(t *testing.T) {
		w := newOldBot(t, make(chan struct{}, 1))
		w.env["ONECLAW_STORE"], w.env["ONECLAW_SECRET_KEY"] = newServer(t).Database(t), oldSecretKey
		w.use()
		dump, err := exec.CommandContext(t.Context(), "pg_dump", "--no-owner", "--no-privileges", "--dbname", w.env["ONECLAW_STORE"]).Output()
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(dump, []byte(w.env["ONECLAW_DATA_DIR"])) {
			t.Error("the dump has the path of a folder")
		}
		var b bytes.Buffer
		z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
		_, err = z.Write(dump)
		if err := errors.Join(err, z.Close(), os.WriteFile(filepath.Join(dir, oldDump), b.Bytes(), 0o600)); err != nil {
			t.Fatal(err)
		}
	})
}

// oldBot is the bot of the old data with its people: Ann, who is an administrator, and Bob.
type oldBot struct {
	*harness

	ann, bob int64
	stuck    chan struct{}
}

// newOldBot has a model that is stuck at a message without a call if the channel is not nil.
func newOldBot(t *testing.T, stuck chan struct{}) *oldBot {
	t.Helper()
	w := newHarness(t, callsInLines(stuck))
	b := &oldBot{harness: w, ann: w.person("Ann"), bob: w.person("Bob"), stuck: stuck}
	w.env["ONECLAW_ADMINS"] = fmt.Sprint("telegram:", b.ann)
	return b
}

// use has Ann and Bob do a bit of everything until the bot is killed.
func (w *oldBot) use() {
	w.t.Helper()
	ann, bob := w.ann, w.bob
	w.env["ONECLAW_EXPORT_JUDGED"], w.env["ONECLAW_REACTIONS"] = "true", "true"
	w.settings(oldSettings + "tools: {routing: search, tool_search: {learn: true}}\n")
	bot := w.run()
	wantIn(w.t, w.ask(bot, bob, "call tool_search {\"query\":\"list scheduled tasks\"}\ncall tool_call {\"name\":\"list_scheduled_tasks\",\"arguments\":{}}", nil), "Then:")
	var judged telegram.Message
	w.telegram.View(func(s telegram.State) { judged = s.Answers(bob)[0] })
	if _, err := w.telegram.React(bob, judged.ID, bob, "👍"); err != nil {
		w.t.Fatal(err)
	}
	w.ask(bot, bob, "/why", nil) // the answer has its receipt now, and can be rated
	wantIn(w.t, w.ask(bot, ann, "/learning no", nil), "will not be exported")
	bot.kill(syscall.SIGTERM)

	w.settings(oldSettings)
	bot = w.run()
	for _, call := range []string{
		`load_tool_group {"group_name":"scheduled_tasks"}`,
		`schedule_task {"name":"New year","prompt":"Wish a happy new year","schedule_type":"cron","cron":"0 9 1 1 *","time_zone":"UTC"}`,
		`save_memory {"content":"The boat is called Aurora."}`,
		`write_file {"path":"notes.txt","content":"The boat leaves at nine."}`,
	} {
		wantIn(w.t, w.ask(bot, ann, "call "+call, nil), "Then:")
	}
	w.say(ann, "call get_current_time {}", nil)
	w.allowClocks([]int64{ann})
	w.until(bot, "time", func(s telegram.State) bool { return strings.HasPrefix(newestText(s, ann), "Then: 2") })
	wantIn(w.t, w.ask(bot, bob, "call load_tool_group {\"group_name\":\"config\"}", nil), "Then:")
	w.ask(bot, ann, "call load_tool_group {\"group_name\":\"config\"}\ncall set_config {\"key\":\"routing\",\"value\":\"bridge\"}", nil)
	w.say(ann, `call exec {"command":"echo hello"}`, nil)
	w.until(bot, "question", func(s telegram.State) bool { return strings.Contains(newestText(s, ann), "May I run") })
	w.say(bob, neverAnswered, nil)
	<-w.stuck
	bot.kill(syscall.SIGKILL)
	w.t.Logf("%s", tail(bot.out.String(), 4000))
}

func newestText(s telegram.State, who int64) string {
	all := s.Answers(who)
	return all[len(all)-1].Text
}

// pack writes the files of a folder that later programs read.
func pack(to io.Writer, dir string) error {
	z, _ := gzip.NewWriterLevel(to, gzip.BestCompression)
	files := tar.NewWriter(z)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if err := files.WriteHeader(&tar.Header{Name: filepath.ToSlash(name), Mode: 0o600, Size: int64(len(data))}); err != nil {
			return err
		}
		_, err = files.Write(data)
		return err
	})
	return errors.Join(err, files.Close(), z.Close())
}

// unpack is the reverse of [pack].
func unpack(t *testing.T, packed io.Reader, dir string) {
	t.Helper()
	z, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	files := tar.NewReader(z)
	for {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.FromSlash(h.Name))
		data, err := io.ReadAll(files)
		if err := errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, data, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

// kept is what a database of the old data has once this program has opened it: how many entries with a prefix.
var kept = map[string]int{
	"job/open/":      2, // a call that waits for its approval, and a message in the middle of its answer
	"card/":          2,
	"allowed/":       1,
	"schedule/task/": 1,
	"memory/":        1,
	"conversation/":  2,
	"settings/":      1,
	"account/2026":   10,
	"account/ever/":  2,
}

// TestOldDataOpens opens the data that the program of commit b6b427fb left, in a file and on a server, and
// goes on where that was killed.
func TestOldDataOpens(t *testing.T) {
	t.Parallel()
	t.Run("file", func(t *testing.T) {
		t.Parallel()
		b := newOldBot(t, nil)
		packed, err := os.Open(filepath.Join(oldData, oldFolder))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = packed.Close() }()
		unpack(t, packed, b.env["ONECLAW_DATA_DIR"])
		b.continues()
	})
	t.Run("server", func(t *testing.T) {
		t.Parallel()
		b := newOldBot(t, nil)
		b.env["ONECLAW_STORE"], b.env["ONECLAW_SECRET_KEY"] = newServer(t).Database(t), oldSecretKey
		packed, err := os.Open(filepath.Join(oldData, oldDump))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = packed.Close() }()
		dump, err := gzip.NewReader(packed)
		if err != nil {
			t.Fatal(err)
		}
		psql := exec.CommandContext(t.Context(), "psql", "--quiet", "--set=ON_ERROR_STOP=1", "--output="+os.DevNull, b.env["ONECLAW_STORE"])
		psql.Stdin = dump
		if out, err := psql.CombinedOutput(); errors.Is(err, exec.ErrNotFound) {
			t.Skip("psql is not installed")
		} else if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		b.settings(oldSettings)
		b.continues()
	})
}

// continues opens the data and has Ann and Bob go on.
func (w *oldBot) continues() {
	t := w.t
	t.Helper()
	environment := os.Environ()
	for name, value := range w.env {
		environment = append(environment, name+"="+value)
	}
	cfg, err := config.Load("", environment)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	var log lines
	err = app.WithStore(t.Context(), cfg, slog.New(slog.NewTextHandler(&log, nil)), func(store *database.Store) error {
		for prefix := range kept {
			for _, err := range store.List(t.Context(), storage.Range{Prefix: prefix}) {
				if err != nil {
					return err
				}
				got[prefix]++
			}
		}
		return nil
	})
	if w.env["ONECLAW_STORE"] == "" {
		got["job/open/"]-- // in the file, the kill also left a job that had ended, beside its receipt
	}
	if err != nil || !maps.Equal(got, kept) {
		t.Errorf("the old data has %v, want %v; %v", got, kept, err)
	}

	w.skipIDs()
	bot := w.run()
	w.until(bot, "the answer that the kill interrupted", func(s telegram.State) bool { return s.CountAnswers(w.bob) > 0 })
	w.say(w.ann, "/stop", nil) // the question whether a command may run, if that has not expired
	for call, want := range map[string]string{
		`list_scheduled_tasks {}`:           "New year",
		`read_file {"path":"notes.txt"}`:    "The boat leaves at nine.",
		`search_history {"query":"Aurora"}`: "Aurora",
	} {
		w.answered(w.ann, "call "+call, want)
	}
	requests := w.model.Requests()
	wantIn(t, fmt.Sprint(requests[len(requests)-1].Messages), "The boat is called Aurora.")
	w.say(w.ann, "call get_current_time {}", nil)
	w.allowClocks([]int64{w.ann}) // what was allowed is asked for again, because the tool has changed since
	w.until(bot, "time", func(s telegram.State) bool { return strings.HasPrefix(newestText(s, w.ann), "Then: 2") })
	bot.kill(syscall.SIGTERM)
	wantIn(t, log.String()+bot.out.String(), "records of what is gone are deleted", "a routing that is gone is replaced") // 2
}

// skipIDs has the emulator number messages behind those of the old data, which the bot would take for the same.
func (w *oldBot) skipIDs() {
	w.t.Helper()
	newest := int64(0)
	for range 50 {
		for _, who := range []int64{w.ann, w.bob} {
			newest = w.say(who, "said while the bot was away", nil).Update
		}
	}
	request, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, fmt.Sprintf("%s/bot%s/getUpdates?offset=%d", w.env["TELEGRAM_API_URL"], w.env["TELEGRAM_BOT_TOKEN"], newest+1), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusOK {
		w.t.Fatalf("getUpdates: %s, %v", response.Status, err)
	}
}
