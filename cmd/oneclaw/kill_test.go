package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/internal/budget"
	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/telegram"
	"oneclaw/storage"
	"oneclaw/storage/bolt"
)

// rounds is how often the flood test kills the bot: 8 unless TEST_ONECLAW_KILLS says.
func rounds() int {
	if n, err := strconv.Atoi(os.Getenv("TEST_ONECLAW_KILLS")); err == nil && n > 0 {
		return n
	}
	return 8
}

// effects is the file that the model of the kill tests adds a line to.
const effects = "effects.txt"

// joined stands between messages that are answered together.
const joined = " + "

// saidIn is what an answer of repeating is to, the messages among that, and whether it may be a repeat.
func saidIn(answer string) (all, messages []string, marked bool) {
	text, more, ok := strings.Cut(answer, "\n")
	if marked = strings.Contains(more, chats.RepeatNotice); ok && !marked {
		text = answer
	}
	all = strings.Split(strings.TrimPrefix(text, "re: "), joined)
	return all, slices.DeleteFunc(slices.Clone(all), isOutcome), marked
}

// repeating answers "re: " and what the user has said since its last answer; every third time
// it looks at the clock first, and every fifth time it adds the message to a file, so that
// turns have tool rounds in them, which more can join behind, and effects that must not
// happen twice.
func repeating(_ context.Context, req openai.Request) (openai.Reply, error) {
	last := req.Messages[len(req.Messages)-1]
	text := strings.Join(unanswered(req), joined)
	n, err := strconv.Atoi(text[strings.LastIndex(text, " ")+1:])
	if err != nil {
		return openai.Reply{Text: "They count their messages."}, nil // sums the conversation up
	}
	if last.Role == "user" && asksForClock(n) {
		return openai.Reply{Calls: []openai.ToolCall{{ID: "call_1", Name: "get_current_time", Arguments: "{}"}}}, nil
	}
	if last.Role == "user" && n%5 == 0 {
		arguments := fmt.Sprintf(`{"path":%q,"content":%q,"mode":"append"}`, effects, text+"\n")
		return openai.Reply{Calls: []openai.ToolCall{{ID: "call_1", Name: "write_file", Arguments: arguments}}}, nil
	}
	return openai.Reply{Text: "re: " + text, Delay: time.Duration(rand.IntN(30)) * time.Millisecond}, nil
}

func asksForClock(message int) bool { return message%3 == 1 }

// unanswered are the messages of a request that have no answer yet.
func unanswered(req openai.Request) (said []string) {
	for _, m := range req.Messages {
		switch {
		case m.Role == "user":
			said = append(said, strings.Split(m.Content, "\n\n")...) // several in a row are one
		case m.Role == "assistant" && len(m.ToolCalls) == 0:
			said = nil
		}
	}
	return said
}

// strongModel is the model of /deep in the kill tests. isDeep says which messages of the first person are
// for it.
const strongModel = "strong"

func isDeep(message int) bool { return message%4 == 0 }

// deepAsker remembers the messages with which the turns of the strong model begin.
type deepAsker struct {
	openai.Responder
	mu    sync.Mutex
	begun map[string]bool
}

// Reply implements openai.Responder.
func (d *deepAsker) Reply(ctx context.Context, req openai.Request) (openai.Reply, error) {
	if said := unanswered(req); req.Model == strongModel && len(said) > 0 {
		d.mu.Lock()
		d.begun[said[0]] = true
		d.mu.Unlock()
	}
	return d.Responder.Reply(ctx, req)
}

// check compares the messages that the strong model was asked with those that were for it.
func (d *deepAsker) check(t *testing.T, said int) (asked int) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	for n := 1; n <= said; n++ {
		text := fmt.Sprint("message ", n)
		if d.begun[text] != isDeep(n) {
			t.Errorf("%s: the strong model was asked: %v", text, d.begun[text])
		}
		if d.begun[text] {
			asked++
		}
	}
	return asked
}

// breath is after how many kills the program may answer what has come together: of one person it takes
// twenty waiting messages and no more.
const breath = 5

// caughtUp waits until all messages and tasks of everybody are answered.
func (w *harness) caughtUp(bot *process, people []int64, said int) {
	w.t.Helper()
	var missing []string
	defer func() {
		if w.t.Failed() {
			w.t.Logf("missing: %q", missing)
		}
	}()
	for _, who := range people {
		w.until(bot, "answer to everything", func(s telegram.State) bool {
			missing = unsettled(withoutCards(textsOf(s.LastAnswers(who, lately))), said)
			return len(missing) == 0
		})
	}
}

func textsOf(messages []telegram.Message) (texts []string) {
	for _, m := range messages {
		texts = append(texts, m.Text)
	}
	return texts
}

// TestKilledInAFlood kills the program, with -9 and with SIGTERM, while messages come
// in from many chats, and deliveries to a webhook. Every message must be in the input of one
// answer in the end, in order within its chat, and each answer there once, but for those that a kill found in the middle of
// their sending, and these are marked; so must every delivery and every result of a background task, in any
// order. The questions of one chat that are for the strong model are asked of it, and no others. What a
// person has allowed until /clear is allowed until then. A fact that was said to be noted is remembered, once.
// floodOfRuns is more unattended runs in a day than a flood of webhooks and background tasks begins.
const floodOfRuns = "1000000"

func TestKilledInAFlood(t *testing.T) {
	t.Parallel()
	const chats, perRound = 8, 3
	deep := &deepAsker{Responder: employing(writing, openai.ResponderFunc(remembering)), begun: map[string]bool{}}
	w := newHarness(t, hooking(deep), strongModel)
	w.env["ONECLAW_LISTEN"], w.env["ONECLAW_PUBLIC_URL"] = freeAddress(t), hookAddress
	w.env["ONECLAW_MAX_UNATTENDED_RUNS"] = floodOfRuns
	w.env["ONECLAW_MODELS_DEEP"] = "preset/" + strongModel
	var people []int64
	for n := range chats {
		people = append(people, w.person(fmt.Sprint("person ", n)))
	}
	said, found, several, facts := 0, 0, 0, 0
	say := func() {
		said++
		for n, who := range people {
			text := fmt.Sprint("message ", said)
			if n == 0 && isDeep(said) {
				text = "/deep " + text
			}
			w.say(who, text, nil)
		}
	}
	w.settings("approvals:" + lastingRules)
	bot := w.run()
	hooks := newPoster(w, bot, w.env["ONECLAW_LISTEN"])
	// The first message makes the bot ask whether it may look at the clock, and the answer lasts.
	say()
	w.allowClocks(people)
	bot.kill(syscall.SIGKILL)
	found += w.sending()
	bot = w.run()
	w.caughtUp(bot, people, said)
	for round := range rounds() {
		hooks.post(perRound)
		for range perRound {
			say()
		}
		// The moment of the kill is random: some of what was said is answered by then.
		// On a slow machine answers are edits of their previews.
		answered := func(s telegram.State) int { return s.CallCount("sendmessage") + s.CallCount("editmessagetext") }
		sent, answers := 0, w.some(chats, perRound)
		w.telegram.View(func(s telegram.State) { sent = answered(s) })
		w.until(nil, "answers before the kill", func(s telegram.State) bool { return answered(s) >= sent+answers })
		signal := syscall.SIGKILL
		if round%4 == 3 {
			signal = syscall.SIGTERM
		}
		bot.kill(signal)
		found += w.sending()
		w.steer(round)
		bot = w.run()
		hooks.again()
		if round%breath == breath-1 {
			w.caughtUp(bot, people, said)
		}
	}
	w.caughtUp(bot, people, said)
	hooks.answered(bot)
	// A kill meets /clear, and then the bot asks again.
	for _, who := range people {
		w.say(who, "/clear", nil)
	}
	w.until(bot, "conversation that is cleared", func(s telegram.State) bool { return slices.ContainsFunc(textsOf(s.Answers(people[0])), isCleared) })
	bot.kill(syscall.SIGKILL)
	found += w.sending()
	w.env["ONECLAW_STEERING"] = "false"
	bot = w.run()
	for say(); !asksForClock(said); say() {
		w.caughtUp(bot, people, said)
	}
	w.allowClocks(people)
	w.caughtUp(bot, people, said)
	bot.kill(syscall.SIGTERM)
	w.read(func(store storage.Store) {
		checkLasting(t, len(people), store)
		for _, who := range people {
			facts += checkFacts(t, store, who, w.answers(who))
		}
		checkAccounts(t, store, w.model.Count())
	})
	if facts == 0 {
		t.Error("no fact was noted")
	}
	marks, tasks := hooks.check(t), 0
	for _, who := range people {
		answers := withoutCards(w.answers(who))
		marks += checkFlood(t, answers, said)
		tasks += checkTasks(t, answers, said)
		several += together(answers)
	}
	t.Logf("%d messages in %d chats, %d deliveries to a webhook, %d kills: all answered, %d answers to several messages, %d answers marked as possible repeats, %d found while they were sent, %d results of background tasks, %d facts noted and remembered, %d effects, none twice, %d questions to the strong model",
		said*chats, chats, hooks.posted, rounds(), several, marks, found, tasks, facts, w.effects(t), deep.check(t, said))
	if marks > found {
		t.Errorf("%d answers are marked as possible repeats, but the kills found only %d in the middle of their sending", marks, found)
	}
}

// sending counts the parts of answers that the end of the program found in the middle of
// their sending: those that it sends once more, marked, when it runs again.
func (w *harness) sending() (parts int) {
	w.t.Helper()
	w.read(func(store storage.Store) { parts = sendingIn(w.t, store) })
	return parts
}

// read looks at the database of a program that has ended.
func (w *harness) read(look func(storage.Store)) {
	w.t.Helper()
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(w.env["ONECLAW_DATA_DIR"], databaseName)})
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	look(store)
}

// checkAccounts compares what is charged with the replies that are stored and the requests that were made: a
// kill may take a reply away, but never a reply without its charge, or a charge twice.
func checkAccounts(t *testing.T, store storage.Store, requests int) {
	t.Helper()
	l, err := budget.Open(budget.Config{Store: store, Now: func() time.Time { return time.Now().Add(3 * time.Hour) }}) // it takes all others for dead
	if err == nil {
		_, err = l.Report(t.Context(), budget.Payer{}) // all charges are added to the accounts
	}
	if err := errors.Join(err, l.Close()); err != nil {
		t.Fatal(err)
	}
	var charged budget.Usage
	for entry, err := range store.List(t.Context(), storage.Range{Prefix: "account/2"}) {
		var one budget.Usage
		if err == nil && strings.HasSuffix(entry.Key, "/total/") {
			err = json.Unmarshal(entry.Value, &one)
		}
		if err != nil {
			t.Fatal(err)
		}
		charged.Calls, charged.Input = charged.Calls+one.Calls, charged.Input+one.Input
	}
	replies, input := 0, 0
	for name, err := range store.Logs(t.Context(), storage.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		for m, err := range conversation.Messages(t.Context(), store, name) {
			if err != nil {
				t.Fatal(err)
			}
			if m.Usage != nil {
				replies, input = replies+1, input+m.Usage.Input
			}
		}
	}
	t.Logf("%d calls are charged, for %d replies that are stored, and %d requests", charged.Calls, replies, requests)
	if charged.Calls < int64(replies) || charged.Calls > int64(requests) || charged.Input < int64(input) {
		t.Errorf("%d calls with %d tokens are charged, for %d replies with %d that are stored and %d requests", charged.Calls, charged.Input, replies, input, requests)
	}
}

func sendingIn(t testing.TB, store storage.KV) (parts int) {
	t.Helper()
	for entry, err := range store.List(t.Context(), storage.Range{Prefix: queue.OpenPrefix}) {
		var j struct {
			queue.Job

			Work outbox.Delivery `json:"work"`
		}
		if err == nil {
			err = json.Unmarshal(entry.Value, &j)
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.Get(t.Context(), receipts.Prefix+j.Key()); err == nil {
			continue // the answer has its receipt
		}
		for _, p := range j.Work.Parts {
			if p.State == receipts.PartSending {
				parts++
			}
		}
	}
	return parts
}

// effects counts the lines that tools have added to files, each of which may be there once.
func (w *harness) effects(t *testing.T) (lines int) {
	t.Helper()
	err := filepath.WalkDir(w.env["ONECLAW_DATA_DIR"], func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != effects {
			return err
		}
		data, err := os.ReadFile(path)
		seen := map[string]bool{}
		for line := range strings.Lines(string(data)) {
			if seen[line] {
				t.Errorf("%s: the effect of %q happened twice", path, line)
			}
			seen[line] = true
			lines++
		}
		return err
	})
	if err != nil || lines == 0 {
		t.Errorf("%d effects, %v", lines, err)
	}
	return lines
}

func (w *harness) answers(who int64) (texts []string) {
	w.telegram.View(func(s telegram.State) { texts = textsOf(s.Answers(who)) })
	return texts
}

// complainer is a test, or what looks for the complaints of one.
type complainer interface {
	Helper()
	Errorf(format string, args ...any)
}

// checkFlood checks the answers of one chat and counts the marked ones: each message is in the
// input of one answer, in order, and of an answer's copies one at most has no mark. That one may come last:
// a replica that is paused right before its request makes it when it goes on.
func checkFlood(t complainer, answers []string, said int) (marks int) {
	t.Helper()
	next := 1
	seen, unmarked := map[string]bool{}, map[string]bool{}
	for _, answer := range answers {
		all, messages, marked := saidIn(answer)
		text := strings.Join(all, joined)
		switch {
		case !marked && unmarked[text]:
			copies := slices.DeleteFunc(slices.Clone(answers), func(other string) bool {
				all, _, _ := saidIn(other)
				return strings.Join(all, joined) != text
			})
			t.Errorf("%q came twice without a mark: %q", answer, copies)
		case !seen[text]:
			for _, message := range messages {
				if want := fmt.Sprint("message ", next); message != want {
					t.Errorf("got %q where %q was due", answer, want)
				}
				next++
			}
		}
		if seen[text] = true; marked {
			marks++
		} else {
			unmarked[text] = true
		}
	}
	if next != said+1 {
		t.Errorf("%d of %d messages were answered", next-1, said)
	}
	return marks
}

// together counts the answers to several messages.
func together(answers []string) (n int) {
	for _, answer := range answers {
		if _, messages, marked := saidIn(answer); !marked && len(messages) > 1 {
			n++
		}
	}
	return n
}

// steer lets the program of every second round answer together what is said meanwhile.
func (w *harness) steer(round int) { w.env["ONECLAW_STEERING"] = strconv.FormatBool(round%2 == 0) }

// some is how many answers the program may give before it is killed, of those to so many
// messages in each of so many chats: with steering there may be one for each chat.
func (w *harness) some(chats, messages int) int {
	if w.env["ONECLAW_STEERING"] == "true" {
		messages = 1
	}
	return rand.IntN(chats * messages)
}
