package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/slack"
	"oneclaw/internal/emulator/telegram"
)

// moment is when something is said.
type moment int

const (
	early   moment = iota // answered before the program is killed
	asked                 // the model has it then, and does not answer
	behind                // while the model has that, and on disk when the program is killed
	cut                   // the same, of a message that waits for its turn
	down                  // while no program runs
	later                 // to the one that runs then, when all is answered
	moments               // how many there are
)

// talkHarness is a conversation with the bot in a place of its own, which the program is killed in
// the middle of.
type talkHarness struct {
	name string
	kind int
	says map[moment][]saying
	// pieces are what a platform that has albums, or a limit for texts, gets in several
	// messages, on either side of the kill.
	pieces []saying
	// given are texts that the model must have been given with the last request, each once,
	// in so many messages of people and with so many pictures.
	given              []string
	messages, pictures int
	// regrouped says that the lines of a question that a kill interrupts may form other messages
	// afterwards, depending on which of them the program had read.
	regrouped bool

	place
	due [moments][]string // the beginnings of the messages of the bot, each once
}

// answer is how the n-th answer of the model begins.
func answer(n int, name string) string { return fmt.Sprintf("answer %d of %s.", n, name) }

// settle gives a talk its place, and notes what the bot has to write: one answer for what is
// said in each moment, but for what joins that of another one.
func (k *talkHarness) settle(where place, platform string) {
	k.place, k.name = where, "talk-"+k.name+"-"+platform
	if k.pieces != nil {
		maps.Copy(k.says, k.when(k.pieces))
	}
	answers := 0
	for m := range moments {
		for i := range k.says[m] {
			s := &k.says[m][i]
			if s.text = strings.ReplaceAll(s.text, "{}", k.name); s.of != nil {
				s.of.text = strings.ReplaceAll(s.of.text, "{}", k.name)
			}
			if s.voice {
				k.due[m] = append(k.due[m], "🎤 “"+s.text+"”")
			}
			switch {
			case s.aside || m == behind || m == cut && k.says[down] != nil || i > 0 && !k.says[m][i-1].aside:
			case strings.HasPrefix(s.text, "/"):
				k.due[m] = append(k.due[m], "I now also read messages here that are not for me")
			default:
				answers++
				k.due[m] = append(k.due[m], answer(answers, k.name))
			}
		}
	}
}

// all are the beginnings of what the bot has to write up to a moment.
func (k *talkHarness) all(until moment) []string { return slices.Concat(k.due[:until+1]...) }

// shows waits until all stands there that is due by a moment.
func (k *talkHarness) shows(m moment) {
	due := k.all(m)
	k.until(k.name, func(all []shown) bool {
		return !slices.ContainsFunc(due, func(d string) bool {
			return !slices.ContainsFunc(all, func(m shown) bool { return strings.HasPrefix(m.text, d) })
		})
	})
}

// check says what is wrong with what the bot has written. What was on its way in the moment of
// the kill may come again, and says so.
func (k *talkHarness) check(t *testing.T) {
	t.Helper()
	left := k.all(moments - 1)
	all := k.until(k.name, func([]shown) bool { return true })
	for _, m := range all {
		if i := slices.IndexFunc(left, func(d string) bool { return strings.HasPrefix(m.text, d) }); i >= 0 {
			left = slices.Delete(left, i, i+1)
		} else if !strings.Contains(m.text, chats.RepeatNotice) {
			t.Errorf("%s: there stands %q", k.name, m.text)
		}
	}
	if len(left) > 0 {
		t.Errorf("%s: %q is missing in %+v", k.name, left, all)
	}
}

// names are the names of talks.
var names = regexp.MustCompile(`talk-[a-z-]+`)

// keeper is a model that answers the questions of talks, and keeps those waiting that come
// before the kill.
type keeper struct {
	mu      sync.Mutex
	keeps   bool
	kept    map[string]bool
	changed chan struct{}
}

// Reply implements [openai.Responder].
func (k *keeper) Reply(ctx context.Context, req openai.Request) (openai.Reply, error) {
	name, answers := nameOf(req), 0
	for _, m := range req.Messages {
		if m.Role == "assistant" && len(m.ToolCalls) == 0 {
			answers++
		}
	}
	k.mu.Lock()
	keeps := k.keeps
	if keeps {
		k.kept[name] = true
		close(k.changed)
		k.changed = make(chan struct{})
	}
	k.mu.Unlock()
	if keeps {
		<-ctx.Done() // its client is killed
		return openai.Reply{}, ctx.Err()
	}
	if strings.HasPrefix(name, "talk-steered") && req.Messages[len(req.Messages)-1].Role == "user" && answers == 0 && !slices.ContainsFunc(req.Messages, func(m openai.Message) bool { return m.Role == "tool" }) {
		return openai.Reply{Calls: []openai.ToolCall{{ID: "call_1", Name: "get_current_time", Arguments: "{}"}}}, nil
	}
	return openai.Reply{Text: answer(answers+1, name)}, nil
}

// nameOf is the name of the talk that a request belongs to.
func nameOf(req openai.Request) string {
	for _, m := range req.Messages {
		if name := names.FindString(m.Content); m.Role == "user" && name != "" {
			return name
		}
	}
	return ""
}

// keep changes whether questions are kept waiting.
func (k *keeper) keep(keeps bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.keeps = keeps
}

// await returns once the model has been asked in a talk.
func (k *keeper) await(ctx context.Context, name string) error {
	for {
		k.mu.Lock()
		kept, changed := k.kept[name], k.changed
		k.mu.Unlock()
		if kept {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("the model was not asked in %s: %w", name, ctx.Err())
		}
	}
}

// quarter is where the talks are: a program that is on both platforms.
type quarter struct {
	*harness
	t     *testing.T
	slack *slack.Server
	brain *keeper
	talks []*talkHarness
}

// TestWhatPeoplePointAtOutlivesAKill has one conversation for each thing that people point at,
// on both platforms, and kills the program in the middle of all of them. Whatever they say is
// in the input of exactly one answer, and requests begin as those before them did.
func TestWhatPeoplePointAtOutlivesAKill(t *testing.T) {
	t.Parallel()
	q := newQuarter(t)
	bot := q.begin()
	q.said(early)
	q.brain.keep(true)
	for _, m := range []moment{asked, behind, cut} {
		if m == cut {
			q.ahead.Store(int64(time.Hour)) // so late that it becomes part of no question before it
		}
		q.say(m)
		q.delivered(m)
	}
	bot.kill(syscall.SIGKILL)
	q.brain.keep(false)
	q.say(down)
	q.begin()
	for _, k := range q.talks {
		k.shows(down)
	}
	q.said(later)
	for _, k := range q.talks {
		k.check(t)
		q.checkGiven(k)
	}
	if n := q.model.TranscriptionCount(); n != 2 {
		t.Errorf("two recordings were heard %d times", n)
	}
}

func newQuarter(t *testing.T) *quarter {
	q := &quarter{t: t, brain: &keeper{kept: map[string]bool{}, changed: make(chan struct{})}}
	q.harness = newHarness(t, q.brain)
	const model = "gpt-5-emulated" // which sees
	q.model, q.env["OPENAI_BASE_URL"] = startModel(t, openai.Config{Responder: q.brain, Models: []string{model, openai.DefaultModel}, MaxTools: 200})
	token := q.env["TELEGRAM_BOT_TOKEN"]
	q.slack, _, _ = q.withSlack(t)
	q.env["TELEGRAM_BOT_TOKEN"] = token
	q.env["ONECLAW_ALLOW"], q.env["ONECLAW_STEERING"] = "*", "true"
	q.env["OPENAI_MODEL"], q.env["ONECLAW_VOICE_MODEL"] = model, openai.DefaultModel
	for _, k := range talks() {
		k.settle(q.onTelegram(k.kind, "Ann", "Bob"), "telegram")
		q.talks = append(q.talks, k)
	}
	for _, k := range talks() {
		k.settle(onSlack(t, q.slack, k.kind), "slack")
		q.talks = append(q.talks, k)
	}
	return q
}

// begin starts the program and returns once it hears both platforms.
func (q *quarter) begin() *process {
	before := 0
	q.slack.View(func(s slack.State) { before = s.OpenedSockets() })
	p := q.run()
	waitSlack(q.t, q.slack, "socket", func(s slack.State) bool { return s.OpenedSockets() > before && s.ActiveSockets() > 0 })
	return p
}

func (q *quarter) say(m moment) {
	for _, k := range q.talks {
		for _, s := range k.says[m] {
			k.speak(s)
		}
	}
}

// said says what is due in a moment, and waits for what that leads to.
func (q *quarter) said(m moment) {
	q.say(m)
	for _, k := range q.talks {
		k.shows(m)
	}
}

// delivered waits until all that was said is on disk, and the model has what it was asked.
func (q *quarter) delivered(m moment) {
	q.t.Helper()
	q.until(nil, "confirmation of all that was said", func(s telegram.State) bool { return s.PendingCount() == 0 })
	waitSlack(q.t, q.slack, "confirmation of all that was said", func(s slack.State) bool { return s.UnackedCount() == 0 })
	ctx, cancel := context.WithTimeout(q.t.Context(), patience)
	defer cancel()
	for _, k := range q.talks {
		if m == asked && k.says[m] != nil {
			if err := q.brain.await(ctx, k.name); err != nil {
				q.t.Fatal(err)
			}
		}
	}
}

// checkGiven checks what the model was given in a talk.
func (q *quarter) checkGiven(k *talkHarness) {
	q.t.Helper()
	var before []byte
	var last openai.Request
	for _, r := range q.model.Requests() {
		if nameOf(r) != k.name {
			continue
		}
		last = r
		if !k.regrouped && !bytes.HasPrefix(r.MessagesJSON, before) {
			q.t.Errorf("%s: %s\ncame after\n%s", k.name, r.MessagesJSON, before)
		}
		before = bytes.TrimSuffix(bytes.TrimSpace(r.MessagesJSON), []byte("]"))
	}
	var said []string
	pictures := 0
	for _, m := range last.Messages {
		if m.Role == "user" {
			said = append(said, m.Content)
			pictures += len(m.Pictures)
		}
	}
	all := strings.Join(said, "\n")
	for _, text := range k.given {
		if n := strings.Count(all, text); n != 1 {
			q.t.Errorf("%s: the model was given %q %d times in %q", k.name, text, n, said)
		}
	}
	if !k.regrouped && len(said) != k.messages || pictures != k.pictures {
		q.t.Errorf("%s: the model was given %d messages and %d pictures, want %d and %d: %q", k.name, len(said), pictures, k.messages, k.pictures, said)
	}
}
