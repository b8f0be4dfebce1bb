package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oneclaw/bridge/chats"
	"oneclaw/cmd/oneclaw/config"
	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/telegram"
	"oneclaw/storage/bolt"
)

// former is a data folder that an earlier build has left, and the town it was in; see
// testdata/former/README.md.
type former struct {
	*harness
	t     *testing.T
	bot   *process
	clock *offClock
	// behind is how far Telegram's clock is off, in nanoseconds.
	behind atomic.Int64
	// Made is when the program was killed, Due when the task for once is due.
	Made, Due time.Time
	Usage     string
	Users     []telegram.User
	Past      telegram.Past
}

// repliesToEach calls what the person writes, as toldToCall does, and repeats all else.
func repliesToEach(ctx context.Context, req openai.Request) (openai.Reply, error) {
	reply, err := toldToCall(ctx, req)
	if last := req.Messages[len(req.Messages)-1]; last.Role == "user" && reply.Calls == nil {
		reply.Text = "re: " + last.Content
	}
	return reply, err
}

// openFormer puts the folder where a program finds it, on the day on which it was made.
func openFormer(t *testing.T) *former {
	f := &former{harness: newTown(t, openai.BrainFunc(repliesToEach)), t: t}
	delete(f.env, "ONECLAW_ALLOW")
	f.env["ONECLAW_TIMEZONE"] = "UTC"
	data, err := os.ReadFile(filepath.Join("testdata", "former", "telegram.json"))
	if err == nil {
		err = json.Unmarshal(data, f)
	}
	if err == nil {
		err = unpack(filepath.Join("testdata", "former", "data.tar.gz"), f.env["ONECLAW_DATA_DIR"])
	}
	if err != nil {
		t.Fatal(err)
	}
	f.clock = newOffClock(t, f.harness)
	f.at(f.Made.Add(time.Second))
	server, err := telegram.New(telegram.Config{Now: func() time.Time { return time.Now().Add(time.Duration(f.behind.Load())) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	url, err := server.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f.telegram, f.env["TELEGRAM_API_URL"] = server, url
	for _, u := range f.Users {
		server.AddUser(u)
		if _, err := server.AddChat(telegram.ChatSpec{Kind: telegram.Private, User: u.ID}); err != nil {
			t.Fatal(err)
		}
	}
	if err := server.Restore(f.Past); err != nil {
		t.Fatal(err)
	}
	return f
}

// unpack puts the files of an archive into a folder.
func unpack(archive, dir string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	packed, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	for files := tar.NewReader(packed); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && header.Typeflag == tar.TypeDir {
			err = root.Mkdir(filepath.Clean(header.Name), 0o700)
		} else if err == nil {
			var data []byte
			if data, err = io.ReadAll(files); err == nil {
				err = root.WriteFile(header.Name, data, 0o600)
			}
		}
		if err != nil {
			return err
		}
	}
}

// at sets the clocks of the program and of Telegram.
func (f *former) at(now time.Time) {
	off := time.Until(now).Truncate(time.Second)
	f.clock.jump(off)
	f.behind.Store(int64(off))
}

// who is somebody's chat.
func (f *former) who(name string) int64 {
	f.t.Helper()
	i := slices.IndexFunc(f.Users, func(u telegram.User) bool { return u.FirstName == name })
	if i < 0 {
		f.t.Fatalf("there is no %s", name)
	}
	return f.Users[i].ID
}

// asks has somebody write, and returns the answer.
func (f *former) asks(name, text string) string {
	f.t.Helper()
	return f.ask(f.bot, f.who(name), text, nil)
}

// told waits until the bot has told somebody so much since the restart, and returns its
// messages. Each holds one of the texts, in their order.
func (f *former) told(name string, wants ...string) (texts []string) {
	f.t.Helper()
	f.until(f.bot, fmt.Sprintf("%d messages to %s", len(wants), name), func(s telegram.State) bool {
		texts = nil
		for _, m := range s.Answers(f.who(name)) {
			if m.ID > f.Past.LastMessage {
				texts = append(texts, m.Text)
			}
		}
		return len(texts) >= len(wants)
	})
	if len(texts) != len(wants) {
		f.t.Fatalf("%s is told %q, want %d messages", name, texts, len(wants))
	}
	for i, want := range wants {
		wantIn(f.t, texts[i], want)
	}
	return texts
}

// press has somebody press a button under their card of the past, and returns the toast.
func (f *former) press(name, label string) string {
	f.t.Helper()
	who := f.who(name)
	i := slices.IndexFunc(f.Past.Messages, func(m telegram.Message) bool { return m.Chat == who })
	if i < 0 {
		f.t.Fatalf("%s has no card", name)
	}
	card := f.Past.Messages[i]
	sent, err := f.telegram.Press(who, card.ID, who, button(f.t, card, label), true)
	if err != nil {
		f.t.Fatal(err)
	}
	toast := ""
	f.until(f.bot, "answer to the press of "+label, func(s telegram.State) bool {
		c, _ := s.Callback(sent.Callback)
		toast = c.Text
		return c.Answered
	})
	return toast
}

// file is what a file in somebody's workspace holds.
func (f *former) file(name, path string) string {
	f.t.Helper()
	data, err := os.ReadFile(filepath.Join(f.env["ONECLAW_DATA_DIR"], "workspaces", fmt.Sprint("telegram:", f.who(name)), path))
	if err != nil {
		f.t.Error(err)
	}
	return string(data)
}

// TestAFormerDataFolderIsCarriedOn starts the program on the data of a build with the
// format before, which was killed with all kinds of work open.
func TestAFormerDataFolderIsCarriedOn(t *testing.T) {
	t.Parallel()
	f := openFormer(t)
	f.bot = f.run()
	f.checkMessages()
	f.checkApproval()
	f.checkNewcomer()
	f.checkBudget()
	f.checkConversation()
	f.checkSealed()
	f.checkTasks()
	f.bot.kill(syscall.SIGTERM)
	f.checkFormats()
	f.bot = f.run()
	wantIn(t, f.asks("Gus", "good night"), "re: good night")
	f.checkMessages()
	f.told("Dan", "it has run", "re: are you there?")
	if f.file("Bob", "effects.txt") != "once\n" || f.runs() != 1 {
		t.Errorf("the file of Bob has %q, the command of Dan ran %d times", f.file("Bob", "effects.txt"), f.runs())
	}
}

// checkMessages looks at the messages that were open: a turn with its calls, a part that
// was being sent, and what stood behind them.
func (f *former) checkMessages() {
	bob := f.told("Bob", "Wrote 5 bytes to effects.txt", "re: bob two", "re: bob three")
	wantIn(f.t, bob[0], "\nThis call was interrupted", "\nThe page was not fetched: the address is internal")
	cyd := f.told("Cyd", "two", "re: cyd two")
	if want := "two " + strings.Repeat("2", 3000) + "\n\n" + chats.RepeatNotice; cyd[0] != want {
		f.t.Errorf("the part that was being sent comes as %q", cyd[0])
	}
}

// checkApproval decides about the call that waited.
func (f *former) checkApproval() {
	f.told("Dan")
	if n := f.runs(); n != 0 {
		f.t.Errorf("the command ran %d times unasked", n)
	}
	if first, second := f.press("Dan", "Allow once"), f.press("Dan", "Allow once"); first != "Allowed once." || second != "This was decided already." {
		f.t.Errorf("toasts %q and %q", first, second)
	}
	f.told("Dan", "it has run", "re: are you there?")
}

// checkNewcomer lets in who had asked.
func (f *former) checkNewcomer() {
	f.press("Ann", "Let in")
	f.told("Eve", "You have been let in")
	wantIn(f.t, f.asks("Eve", "thank you"), "re: thank you")
}

// checkBudget looks at what was spent, and spends what a raise allows.
func (f *former) checkBudget() {
	numbers := regexp.MustCompile(`[0-9][0-9.,]*`)
	was, is := numbers.FindAllString(f.Usage, -1), numbers.FindAllString(f.asks("Hal", "/usage"), -1)
	if diff := cmp.Diff(was, is); diff != "" {
		f.t.Errorf("usage (-before +after):\n%s", diff)
	}
	wantIn(f.t, f.asks("Hal", "hello"), "hello")
	wantIn(f.t, f.asks("Hal", "/usage"), "in 51 calls", "of $24.00")
}

// checkConversation goes on with the session after the clear.
func (f *former) checkConversation() {
	asked := f.model.Count()
	wantIn(f.t, f.asks("Fay", "and now?"), "re: and now?")
	first := f.model.Requests()[asked]
	if diff := cmp.Diff(slices.Concat(coreNames, []string{"backwards"}, namesIn(f.t, registryOf(f.t), "pdf")), first.ToolNames()); diff != "" {
		f.t.Errorf("first request (-want +got):\n%s", diff)
	}
	shown := ""
	for _, m := range first.Messages {
		shown += m.Content + "\n"
	}
	wantIn(f.t, shown, "Fay keeps bees.", "words after the clear")
	if strings.Contains(shown, "words before the clear") {
		f.t.Errorf("the model is shown what was cleared: %s", shown)
	}
	wantIn(f.t, f.asks("Fay", `call read_file {"path":"notes/hive.txt"}`), "three hives")
}

// checkSealed calls a user tool that knows what the key of the folder seals.
func (f *former) checkSealed() {
	wantIn(f.t, f.asks("Ann", "call backwards {}"), "devil-stressed-desserts")
}

// checkTasks lets the time come at which the tasks are due. Whoever plans a task with the
// group that was loaded has all of them looked at.
func (f *former) checkTasks() {
	gus := f.who("Gus")
	rang := func(s telegram.State, name string) (n int) {
		for _, m := range s.Answers(gus) {
			n += strings.Count(m.Text, "re: RING "+name)
		}
		return n
	}
	due := map[string]time.Time{"kettle": f.Due, "plants": f.Due.Add(time.Hour)}
	for n, name := range []string{"kettle", "plants"} {
		f.at(due[name].Add(time.Second))
		task := fmt.Sprintf(`{"name":"far %d","prompt":"far","schedule_type":"one_time","hour":1,"minute":0,"date":"2027-01-01"}`, n)
		f.say(gus, "call schedule_task "+task, nil)
		f.until(f.bot, "ring of "+name, func(s telegram.State) bool { return rang(s, name) > 0 })
	}
	f.telegram.View(func(s telegram.State) {
		if kettle, plants := rang(s, "kettle"), rang(s, "plants"); kettle != 1 || plants != 1 {
			f.t.Errorf("the kettle rang %d times, the plants %d times", kettle, plants)
		}
	})
}

// checkFormats looks at the database, which has the format of today, and at the backup,
// which has the one before.
func (f *former) checkFormats() {
	path := filepath.Join(f.env["ONECLAW_DATA_DIR"], databaseName)
	backups, err := filepath.Glob(path + ".before-update-*")
	if err != nil || len(backups) != 1 {
		f.t.Fatalf("backups %q, %v", backups, err)
	}
	for file, want := range map[string]int{path: len(config.Migrations()), backups[0]: 1} {
		store, err := bolt.Open(bolt.Config{Path: file})
		if err != nil {
			f.t.Fatal(err)
		}
		got, err := store.Get(f.t.Context(), "format")
		if err = errors.Join(err, store.Close()); err != nil || string(got.Value) != fmt.Sprintf(`{"version":%d}`, want) {
			f.t.Errorf("%s has format %s, want %d; %v", filepath.Base(file), got.Value, want, err)
		}
	}
}
