package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/turn"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

var marks = regexp.MustCompile(`#\d+#`)

// scribe is a model that answers with the mark of the last question, and sums up as well
// as can be: it gives back every mark it has read.
type scribe struct {
	mu       sync.Mutex
	requests []agent.Request // for answers
	summed   []agent.Request // for summaries
	// summing, if not nil, comes before each summary, reading before each answer.
	summing func(ctx context.Context) error
	reading func(req agent.Request) (agent.Reply, error)
}

func (s *scribe) Complete(ctx context.Context, req agent.Request, _ func(agent.Delta)) (agent.Reply, error) {
	s.mu.Lock()
	summing, reading := s.summing, s.reading
	summary := len(req.Tools) == 0
	if summary {
		s.summed = append(s.summed, req)
	} else {
		s.requests = append(s.requests, req)
	}
	s.mu.Unlock()
	if summary {
		if summing != nil {
			if err := summing(ctx); err != nil {
				return agent.Reply{}, err
			}
		}
		return agent.Reply{Text: strings.Join(marked(req.Messages), " ")}, nil
	}
	if reading != nil {
		if reply, err := reading(req); err != nil || len(reply.Calls) > 0 {
			return reply, err
		}
	}
	all := marked(req.Messages)
	return agent.Reply{Text: "re: " + all[len(all)-1]}, nil
}

func (s *scribe) last() agent.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[len(s.requests)-1]
}

func (s *scribe) summaries() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.summed)
}

func (s *scribe) set(summing func(context.Context) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.summing = summing
}

// marked returns the marks of all questions that messages show, in order, each once.
func marked(messages []agent.Message) []string {
	var all []string
	for _, m := range messages {
		if m.Role == agent.RoleUser || m.Role == agent.RoleSummary {
			for _, mark := range marks.FindAllString(m.Text, -1) {
				if !slices.Contains(all, mark) {
					all = append(all, mark)
				}
			}
		}
	}
	return all
}

// witness is an agent that remembers what its turns began with.
type witness struct {
	*agent.Agent
	mu   sync.Mutex
	seen [][]agent.Message
}

func (w *witness) Run(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
	w.mu.Lock()
	w.seen = append(w.seen, turn.History)
	w.mu.Unlock()
	return w.Agent.Run(ctx, turn)
}

// newLong is a rig for conversations that outgrow a small window.
func newLong(t *testing.T, s *scribe, change ...func(*bridge.Config)) (*harness, *witness) {
	t.Helper()
	a := agent.New(agent.Config{Model: s})
	w := &witness{Agent: a}
	change = append([]func(*bridge.Config){func(c *bridge.Config) {
		c.Turns.Agent, c.Turns.WindowTokens, c.Limits.DrainTimeout = w, 3000, 20*time.Second
	}}, change...)
	return newHarness(t, nil, change...), w
}

// tell sends questions with marks, one after the other, and waits for each answer.
func (r *harness) tell(from, to int) {
	r.t.Helper()
	for n := from; n < to; n++ {
		r.accept(direct(fmt.Sprint(n), question(n)))
		r.platform.wait(r.t, n+1)
	}
}

func question(n int) string { return fmt.Sprintf("#%d# %s", n, strings.Repeat("u", 300+97*n%500)) }

func allMarks(n int) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("#%d#", i))
	}
	return all
}

// Summaries come when they are needed and not with every turn; whatever they cover
// is still known to the model, and still in the history.
//
// A summary is not made again and again.
func TestNothingIsForgottenInALongConversation(t *testing.T) {
	t.Parallel()
	const turns = 100
	s := &scribe{}
	r, _ := newLong(t, s)
	for n := range turns {
		r.tell(n, n+1)
		if diff := cmp.Diff(allMarks(n+1), marked(s.last().Messages)); diff != "" {
			t.Fatalf("question %d was answered without all before it: %s", n, diff)
		}
	}
	if n := s.summaries(); n < 4 || n > turns/4 {
		t.Errorf("%d summaries in %d turns", n, turns)
	}
	log := conversation.Conversation{Chat: chats.Chat{Platform: "fake", ID: "1"}, Generation: 1}.Log()
	for name, all := range map[string]iter.Seq2[agent.Message, error]{
		"forward":  conversation.Messages(t.Context(), r.cfg.Store, log),
		"backward": conversation.RecentMessages(t.Context(), r.cfg.Store, log),
	} {
		questions, answers := 0, 0
		for m, err := range all {
			switch {
			case err != nil:
				t.Fatal(err)
			case m.Role == agent.RoleUser:
				questions++
			case m.Final:
				answers++
			}
		}
		if questions != turns || answers != turns {
			t.Errorf("%s: the history has %d questions and %d answers", name, questions, answers)
		}
	}
}

// A conversation looks the same after a restart, whatever was summed up before.
func TestTheWindowSurvivesARestart(t *testing.T) {
	t.Parallel()
	steady, kept := newLong(t, &scribe{})
	steady.tell(0, 40)
	fickle, read := newLong(t, &scribe{})
	for n := range 40 {
		fickle.tell(n, n+1)
		fickle.restart()
	}
	opts := cmp.Options{cmpopts.IgnoreFields(agent.Message{}, "Time", "Usage", "Routing"), cmpopts.EquateEmpty()}
	for n := range kept.seen {
		if diff := cmp.Diff(kept.seen[n], read.seen[n], opts); diff != "" {
			t.Fatalf("turn %d began with another window after a restart: %s", n, diff)
		}
	}
	if head := kept.seen[39][0]; head.Role != agent.RoleSummary || head.Kept == 0 {
		t.Errorf("nothing was summed up: %+v", head)
	}
}

// Old results are cleared from requests while the model's cache is cold, but stay on record, where they
// count: a chat with many tool calls is summed up before its records outgrow the window, and a long
// outage of the summaries is caught up with, so that reading the history again leaves nothing out.
func TestAConversationWithClearedResultsKeepsItsBeginning(t *testing.T) {
	t.Parallel()
	mail := toolgroups.Tool{Name: "mail_read", Description: "Reads a mail.", Effect: toolgroups.ReadOnly, Run: func(context.Context, toolgroups.Call) (toolgroups.Result, error) {
		return toolgroups.Result{Text: strings.Repeat("word ", 400)}, nil
	}}
	reg, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{Core: []toolgroups.Tool{mail}})
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		restarts bool
		failing  int // the number of turns before summaries work
	}{"in memory": {}, "read again": {restarts: true}, "read again after an outage": {restarts: true, failing: 20}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &scribe{reading: func(req agent.Request) (agent.Reply, error) {
				if last := req.Messages[len(req.Messages)-1]; last.Role == agent.RoleUser {
					return agent.Reply{Calls: []agent.Call{{ID: "0", Name: "mail_read", Arguments: "{}"}}}, nil
				}
				return agent.Reply{}, nil
			}}
			if tt.failing > 0 {
				s.summing = func(context.Context) error { return errOut }
			}
			r, _ := newLong(t, s, func(c *bridge.Config) {
				c.Turns.Tools, c.Turns.WindowTokens = func() *toolgroups.Registry { return reg }, 6000
				c.Turns.Agent = agent.New(agent.Config{Model: s, CacheTTL: func(string) (time.Duration, bool) { return 0, true }}) // caches nothing
			})
			const turns = 30
			for n := range turns {
				if n == tt.failing {
					s.set(nil)
				}
				r.tell(n, n+1)
				if tt.restarts {
					r.restart()
				}
				if n < tt.failing+1 && tt.failing > 0 {
					continue // its beginning is known again once summaries work
				}
				if diff := cmp.Diff(allMarks(n+1), marked(s.last().Messages)); diff != "" {
					t.Fatalf("question %d was answered without all before it: %s", n, diff)
				}
				if text := r.platform.texts()[n]; strings.HasSuffix(text, turn.NoticeCut) {
					t.Errorf("the answer is %q", text)
				}
			}
			cleared := 0
			for m, err := range conversation.Messages(t.Context(), r.cfg.Store, "fake:1/1") {
				if err != nil {
					t.Fatal(err)
				}
				if m.Role == agent.RoleCleared {
					cleared++
				}
			}
			if cleared == 0 || s.summaries() == 0 {
				t.Errorf("results were cleared %d times, and %d summaries made", cleared, s.summaries())
			}
		})
	}
}

var errOut = errors.New("out of order")

// Where no summary can be had, the conversation goes on with what fits; the
// model and the person are told, the person once. When summaries work again, they catch
// up with all that was left out.
func TestTheLastResort(t *testing.T) {
	s := &scribe{summing: func(context.Context) error { return errOut }}
	var mu sync.Mutex
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	r, _ := newLong(t, s, func(c *bridge.Config) {
		c.Now = func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	})
	r.tell(0, 40)
	if n := s.summaries(); n != 2 {
		t.Errorf("asked %d times for a summary, want twice and then a rest", n)
	}
	r.restart()
	r.tell(40, 80)
	if n := s.summaries(); n != 4 {
		t.Errorf("asked %d times for a summary, want four", n)
	}
	told := 0
	for _, text := range r.platform.texts() {
		if strings.HasSuffix(text, turn.NoticeCut) {
			told++
		}
	}
	// The window of this test is so small that the notice scrolls out of it.
	if told < 1 || told > 80/10 {
		t.Errorf("the person was told %d times in 80 turns", told)
	}
	if !strings.HasSuffix(s.last().System, "do not guess what was said.") {
		t.Error("the model was not told")
	}
	s.set(nil)
	mu.Lock()
	now = now.Add(time.Hour)
	mu.Unlock()
	r.tell(80, 82)
	if diff := cmp.Diff(allMarks(82), marked(s.last().Messages)); diff != "" {
		t.Errorf("not all was caught up with: %s", diff)
	}
	if strings.Contains(s.last().System, "not shown to you") {
		t.Error("the model is still told that something is missing")
	}
}

// What a summary is about to cover is shown to the memory before.
//
// The memory is offered what a summary will cover.
func TestTheMemoryLooksFirst(t *testing.T) {
	s := &scribe{}
	var r *harness
	var flushed [][]agent.Message
	r, _ = newLong(t, s, func(c *bridge.Config) {
		store := c.Store
		c.Turns.BeforeCompact = func(ctx context.Context, scope toolgroups.Scope, messages []agent.Message) error {
			summaries := 0
			for m, err := range conversation.Messages(ctx, store, scope.Session) {
				if err == nil && m.Role == agent.RoleSummary {
					summaries++
				}
			}
			if summaries != len(flushed) || scope.Owner != "fake:1" {
				t.Errorf("flush %d of %s comes after %d summaries", len(flushed), scope.Owner, summaries)
			}
			flushed = append(flushed, messages)
			if len(flushed) == 1 {
				return errOut
			}
			panic("the memory is broken")
		}
	})
	r.tell(0, 14)
	r.tell(14, 30)
	r.stop()
	if len(flushed) < 2 {
		t.Fatalf("%d flushes", len(flushed))
	}
	if first := marked(flushed[0]); len(first) == 0 || !slices.Equal(first, allMarks(len(first))) {
		t.Errorf("the first flush saw %v", first)
	}
	// However the memory fails, the summary stands and the next one begins with it.
	for n, messages := range flushed[1:] {
		if messages[0].Role != agent.RoleSummary {
			t.Errorf("flush %d begins with %+v", n+1, messages[0])
		}
	}
}

// Groups stay loaded although the load lies before the boundary.
func TestGroupsSurviveASummary(t *testing.T) {
	s := &scribe{}
	s.reading = func(req agent.Request) (agent.Reply, error) {
		if all := req.Messages; len(all) == 1 {
			return agent.Reply{Calls: []agent.Call{{ID: "0", Name: toolgroups.LoadToolGroup, Arguments: `{"group_name":"pdf"}`}}}, nil
		}
		return agent.Reply{}, nil
	}
	tool := toolgroups.Tool{Name: "pdf_info", Description: "Tells about a document.", Run: func(context.Context, toolgroups.Call) (toolgroups.Result, error) {
		return toolgroups.Result{}, nil
	}}
	reg, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{Groups: []toolgroups.Group{{Name: "pdf", Tools: []toolgroups.Tool{tool}}}})
	if err != nil {
		t.Fatal(err)
	}
	r, w := newLong(t, s, func(c *bridge.Config) { c.Turns.Tools = func() *toolgroups.Registry { return reg } })
	r.tell(0, 1)
	before := s.last().Tools
	r.tell(1, 30)
	r.restart()
	r.tell(30, 31)
	if head := w.seen[30][0]; head.Role != agent.RoleSummary {
		t.Fatalf("nothing was summed up: %+v", head)
	}
	names := func(tools []toolgroups.Tool) (all []string) {
		for _, t := range tools {
			all = append(all, t.Name)
		}
		return all
	}
	if diff := cmp.Diff(names(before), names(s.last().Tools)); diff != "" || !slices.Contains(names(before), "pdf_info") {
		t.Errorf("the tools changed: %s", diff)
	}
}

// A model that refuses what the window allows is not asked for ever with too much.
//
// A conversation that outgrew the context and is stuck.
func TestARefusedConversationIsSummedUp(t *testing.T) {
	s := &scribe{}
	refused := 0
	s.reading = func(req agent.Request) (agent.Reply, error) {
		if agent.EstimateTokens(req.Messages) > 1200 {
			refused++
			return agent.Reply{}, &agent.ModelError{Kind: agent.KindOverflow, Err: errors.New("too long")}
		}
		return agent.Reply{}, nil
	}
	r, _ := newLong(t, s)
	r.tell(0, 60)
	if refused == 0 || refused > 60/4 {
		t.Errorf("%d requests were refused in 60 turns", refused)
	}
	if texts := r.platform.texts(); !strings.HasPrefix(texts[59], "re: #59#") {
		t.Errorf("the last answer is %q", texts[59])
	}
	if got := marked(s.last().Messages); !slices.Equal(got, allMarks(60)) {
		t.Errorf("the model knows %v", got)
	}
}

// A summary that takes long holds up neither the commands nor the end of the program.
func TestASummaryCanBeInterrupted(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{}, 10)
	s := &scribe{summing: func(ctx context.Context) error {
		begun <- struct{}{}
		<-ctx.Done()
		return context.Cause(ctx)
	}}
	r, _ := newLong(t, s, func(c *bridge.Config) { c.Limits.DrainTimeout = -1 })
	// More messages than fit: the first of them that is too many waits for a summary.
	for n := range 20 {
		r.accept(direct(fmt.Sprint(n), question(n)))
	}
	<-begun
	r.accept(direct("stop", "/stop"))
	waitAnswered(t, r.platform, "Stopped")
	r.accept(direct("next", "#20# and now"))
	waitAnswered(t, r.platform, "re: #20#")
	<-begun
	r.accept(direct("clear", "/clear"), direct("new", "#21# anew"))
	waitAnswered(t, r.platform, "re: #21#")
	if got := marked(s.last().Messages); !slices.Equal(got, []string{"#21#"}) {
		t.Errorf("after the clear the model sees %v", got)
	}
	for n := range 20 {
		r.accept(direct(fmt.Sprint("more", n), question(n)))
	}
	<-begun
	r.stop()
}

// What is erased while it is summed up, or was by another process that shares the store, leaves no
// trace in the summary: that is made anew of what is left.
func TestASummaryTellsNothingThatWasErasedMeanwhile(t *testing.T) {
	const log = "fake:1/1"
	s := &scribe{}
	r, _ := newLong(t, s)
	s.set(func(ctx context.Context) error {
		return r.cfg.Store.Erase(ctx, log, storage.Record{Pos: 1}, storage.Record{Pos: 2})
	})
	r.tell(0, 20)
	if s.summaries() == 0 {
		t.Fatal("nothing was summed up")
	}
	told := 0
	for m, err := range conversation.Messages(t.Context(), r.cfg.Store, log) {
		if err != nil {
			t.Fatal(err)
		}
		if m.Role == agent.RoleSummary {
			told++
			if strings.Contains(m.Text, "#0#") || !strings.Contains(m.Text, "#1#") {
				t.Errorf("a summary tells %q", m.Text)
			}
		}
	}
	if told == 0 {
		t.Error("no summary is kept")
	}
}

// The newest summary is seen however far back it lies.
//
// A summary that fails falls back to cutting.
func TestAnOldSummaryIsStillSeen(t *testing.T) {
	s := &scribe{}
	r, _ := newLong(t, s)
	r.tell(0, 20)
	if s.summaries() == 0 {
		t.Fatal("nothing was summed up")
	}
	s.set(func(context.Context) error { return errOut })
	r.tell(20, 60)
	for _, when := range []string{"as it is", "after a restart"} {
		if head := s.last().Messages[0]; head.Role != agent.RoleSummary || !strings.HasPrefix(head.Text, "#0#") {
			t.Errorf("%s: the window begins with %+v", when, head)
		}
		r.restart()
		r.tell(60, 61)
	}
}
