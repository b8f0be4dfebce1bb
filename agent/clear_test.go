package agent_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oneclaw/agent"
	"oneclaw/toolgroups"
)

// cooling is a conversation with a model whose cache keeps prompts for an hour, and what it was sent.
type cooling struct {
	t    *testing.T
	now  time.Time
	log  []agent.Message
	sent []agent.Request
}

func (c *cooling) say(text string, replies ...agent.Reply) {
	c.t.Helper()
	big := toolgroups.Tool{Name: "mail_read", Parameters: []byte(`{"type":"object"}`), Effect: toolgroups.ReadOnly}
	big.Run = func(_ context.Context, call toolgroups.Call) (toolgroups.Result, error) {
		return toolgroups.Result{Text: fmt.Sprintf("mail %s: %s", call.ID, strings.Repeat("word ", 2000))}, nil
	}
	reg, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{Core: []toolgroups.Tool{big}})
	if err != nil {
		c.t.Fatal(err)
	}
	c.log = append(c.log, agent.Message{Role: agent.RoleUser, Text: text, Time: c.now})
	m := model(func(_ context.Context, req agent.Request) (agent.Reply, error) {
		c.sent = append(c.sent, req)
		r := replies[0]
		replies = replies[1:]
		return r, nil
	})
	for m, err := range agent.New(agent.Config{
		Model: m, Now: func() time.Time { return c.now }, CacheTTL: func(string) (time.Duration, bool) { return time.Hour, true },
	}).Run(c.t.Context(), agent.Turn{
		History: c.log, Set: toolgroups.NewSet(func() *toolgroups.Registry { return reg }, nil),
	}) {
		if err != nil {
			c.t.Fatal(err)
		}
		c.log = append(c.log, throughLog(c.t, m))
	}
}

// cleared counts the records of it in the log.
func (c *cooling) cleared() (n int) {
	for _, m := range c.log {
		if m.Role == agent.RoleCleared {
			n++
		}
	}
	return n
}

// Old results leave when the model's cache has forgotten the conversation, by one record that stands in
// front of the first request that uses it. The results of the turn before stay. While the cache is warm
// each request begins with the one before it.
func TestOldResultsLeaveWhileTheCacheIsCold(t *testing.T) {
	c := &cooling{t: t, now: time.Date(2026, 11, 1, 9, 0, 0, 0, time.UTC)}
	c.say("read a", calls("a mail_read {}"), says("A."))
	c.say("read b", calls("b mail_read {}"), says("B."))
	c.now = c.now.Add(59 * time.Minute)
	c.say("and c", calls("c mail_read {}"), says("C."))
	if c.cleared() != 0 {
		t.Fatal("results left while the cache was warm")
	}
	c.now = c.now.Add(61 * time.Minute)
	before := len(c.log)
	c.say("what was in a?", says("It was long."))
	if c.cleared() != 1 || c.log[before+1].Role != agent.RoleCleared {
		t.Fatalf("%d records, behind the question %s", c.cleared(), c.log[before+1].Role)
	}
	texts := func(req agent.Request) (all []string) {
		for _, m := range req.Messages {
			if m.Role == agent.RoleTool {
				all = append(all, m.Text)
			}
		}
		return all
	}
	last := c.sent[len(c.sent)-1]
	got := texts(last)
	for i, id := range []string{"a", "b"} {
		if !strings.HasPrefix(got[i], "mail "+id) || len(got[i]) > 400 || !strings.Contains(got[i], "search_history") || !strings.Contains(got[i], "call mail_read again") {
			t.Errorf("in the place of %s: %.500s", id, got[i])
		}
	}
	if len(got[2]) < 9000 {
		t.Errorf("the result of the turn before is gone: %s", got[2])
	}
	// From then on requests only grow again, also after a restart: all comes from the log.
	c.say("go on", says("Yes."))
	next := c.sent[len(c.sent)-1]
	if diff := cmp.Diff(last.Messages, next.Messages[:len(last.Messages)]); diff != "" || c.cleared() != 1 {
		t.Errorf("the next request begins differently, %d records:\n%s", c.cleared(), diff)
	}
	if kept := agent.CompactedHistory(c.log); len(texts(agent.Request{Messages: kept})) != 3 {
		t.Error("a result is missing")
	}
}

// In the place of a result that leaves stands the file with the whole, where its tool has saved one, and
// no path of which the result only speaks.
func TestAClearedResultNamesItsOwnFile(t *testing.T) {
	list := "tool-output/exec-other.txt\n" + strings.Repeat("x\n", 500)
	for text, want := range map[string]string{
		list: "search_history finds the rest",
		list + "\n\n[cut: the limit is 1000 of 9000 characters; the whole is in the file tool-output/exec-own.txt]":                                                           "the file tool-output/exec-own.txt",
		list + "\n\n[cut: the limit is 1000 of 9000 characters; the whole is in the file tool-output/http-own.txt]\n[cut: only the first 102400 bytes of the body were read]": "the file tool-output/http-own.txt",
		list + "\n[cut: stdout had 9000 bytes, stderr 0; the rest was not kept]":                                                                                              "search_history finds the rest",
	} {
		history := []agent.Message{
			{Role: agent.RoleUser, Text: "a"},
			{Role: agent.RoleAssistant, Calls: []agent.Call{{ID: "0", Name: "exec"}}},
			{Role: agent.RoleTool, CallID: "0", Tool: "exec", Status: agent.StatusOK, Text: text},
			{Role: agent.RoleAssistant, Text: "b", Final: true},
			{Role: agent.RoleUser, Text: "c"},
			{Role: agent.RoleAssistant, Text: "d", Final: true},
			{Role: agent.RoleUser, Text: "e"},
			{Role: agent.RoleCleared},
		}
		_, note, _ := strings.Cut(agent.CompactedHistory(history)[2].Text, "[shortened: ")
		if !strings.HasPrefix(note, want) && !strings.HasPrefix(note, "the rest is in "+want) {
			t.Errorf("%q stands for ….%q, want %q", note, text[len(text)-60:], want)
		}
	}
}

// What tells of tools and skills never leaves, nor what is short.
func TestResultsThatNeverLeave(t *testing.T) {
	long := strings.Repeat("x", 5000)
	for tool, leaves := range map[string]bool{
		"mail_read": true, toolgroups.LoadToolGroup: false, toolgroups.ToolSearch: false, toolgroups.ToolDescribe: false, "load_skill": false,
	} {
		m := agent.Message{Role: agent.RoleTool, Status: agent.StatusOK, Tool: tool, Text: long}
		if m.Clearable() != leaves {
			t.Errorf("%s leaves: %v", tool, !leaves)
		}
	}
}

// The provider is asked to keep a conversation for an hour where its last pauses cost less so: with
// those of twenty minutes, not with those of one minute or of two hours, nor with one of twenty minutes after turns that
// each added much.
func TestPausesDecideHowLongAPromptIsKept(t *testing.T) {
	const short, middle, long = time.Minute, 20 * time.Minute, 2 * time.Hour
	for _, tt := range []struct {
		pauses []time.Duration
		sizes  []int // of the prompts, in thousands of tokens
		want   time.Duration
	}{
		{[]time.Duration{short, short, short}, []int{10, 11, 12, 13}, 0},
		{[]time.Duration{middle, middle, middle}, []int{10, 11, 12, 13}, time.Hour},
		{[]time.Duration{long, long, long}, []int{10, 11, 12, 13}, 0},
		{[]time.Duration{short, short, short, short, middle}, []int{10, 60, 10, 60, 10, 10}, 0},
	} {
		now := time.Date(2026, 11, 1, 9, 0, 0, 0, time.UTC)
		var log []agent.Message
		asked, turns := time.Duration(-1), 0
		m := lasting(func(_ context.Context, req agent.Request) (agent.Reply, error) {
			asked = req.CacheFor
			return agent.Reply{Text: "ok", Usage: agent.Usage{Input: 1000 * tt.sizes[turns]}}, nil
		})
		reg, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{})
		if err != nil {
			t.Fatal(err)
		}
		for turns = range tt.sizes {
			log = append(log, agent.Message{Role: agent.RoleUser, Text: "hello", Time: now})
			for m, err := range agent.New(agent.Config{Model: m, Now: func() time.Time { return now }}).Run(t.Context(), agent.Turn{
				History: log, Set: toolgroups.NewSet(func() *toolgroups.Registry { return reg }, nil),
			}) {
				if err != nil {
					t.Fatal(err)
				}
				log = append(log, throughLog(t, m))
			}
			if turns < len(tt.pauses) {
				now = now.Add(tt.pauses[turns])
			}
		}
		if asked != tt.want || log[len(log)-1].CacheFor != tt.want {
			t.Errorf("pauses of %v with prompts of %v: asked for %v, recorded %v, want %v", tt.pauses, tt.sizes, asked, log[len(log)-1].CacheFor, tt.want)
		}
	}
}

// lasting is a model whose provider keeps prompts for an hour where it is asked to.
type lasting model

func (f lasting) Complete(ctx context.Context, req agent.Request, _ func(agent.Delta)) (agent.Reply, error) {
	return f(ctx, req)
}

func (lasting) Profile() agent.Profile { return agent.Profile{LongCache: true} }

// In a small context the long texts of earlier turns leave requests before a summary is needed: by one
// record in front of the first request that uses it, and not in a context that holds them.
func TestLongTextsLeaveASmallContext(t *testing.T) {
	long := func(of string) string { return of + strings.Repeat(" word", 500) }
	for size, leaves := range map[int]bool{8_000: true, 40_000: false, 0: false} {
		var sent []agent.Request
		c := newChat(t, agent.Config{})
		c.turn.ContextTokens = size
		m := model(func(_ context.Context, req agent.Request) (agent.Reply, error) {
			sent = append(sent, req)
			return agent.Reply{Text: long(fmt.Sprint("answer ", len(sent)))}, nil
		})
		records := func() (n int) {
			for _, m := range c.history {
				if m.Role == agent.RoleCleared {
					n++
				}
			}
			return n
		}
		for n := range 7 {
			before := records()
			if err := c.run(m, agent.Message{Role: agent.RoleUser, Text: long(fmt.Sprint("question ", n+1))}); err != nil {
				t.Fatal(err)
			}
			now := sent[n].Messages
			if tokens := agent.EstimateTokens(now); size > 0 && tokens > size*85/100 {
				t.Errorf("context of %d: request %d has %d tokens", size, n+1, tokens)
			}
			if n == 0 {
				continue
			}
			if last := sent[n-1].Messages; records() == before && cmp.Diff(last, now[:len(last)]) != "" {
				t.Errorf("context of %d: request %d does not begin with the one before", size, n+1)
			}
			if len(now) != 2*n+1 || len(now[2*n].Text) < 2000 || len(now[2*n-1].Text) < 2000 || len(now[2*n-2].Text) < 2000 {
				t.Errorf("context of %d: request %d has %d messages, not with the last turn whole", size, n+1, len(now))
			}
		}
		if records() > 0 != leaves {
			t.Errorf("context of %d: %d records", size, records())
		}
		if first := sent[6].Messages[0].Text; leaves && (!strings.HasPrefix(first, "question 1 word") || len(first) > 600 || !strings.Contains(first, "search_history")) {
			t.Errorf("context of %d: in the place of the first question stands %q", size, first)
		}
	}
}
