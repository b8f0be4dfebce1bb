package anthropic_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"oneclaw/agent"
	"oneclaw/agent/anthropic"
	"oneclaw/agent/provider"
	emulator "oneclaw/internal/emulator/anthropic"
	brain "oneclaw/internal/emulator/openai"
)

func TestTextAndUsage(t *testing.T) {
	c := newTalk(t)
	c.think = func(req brain.Request) brain.Reply {
		return brain.Reply{Text: "You said: " + req.Messages[len(req.Messages)-1].Content}
	}
	c.say("Grüße <b>&</b> \"so\"", "You said: Grüße <b>&</b> \"so\"")
	c.say("two\nlines", "You said: two\nlines")
	u, m := c.srv.Requests()[1].Usage, c.history[len(c.history)-1]
	if m.Usage.Input != u.Total() || m.Usage.Cached != u.CacheRead || m.Usage.CacheWritten != u.CacheWritten || u.CacheRead == 0 || m.Usage.Output == 0 || m.Model != c.cfg.Model {
		t.Errorf("%+v for %+v", m, u)
	}
	if refused := c.refusals(); len(refused) > 0 {
		t.Errorf("refused: %q", refused)
	}
}

// What was thought goes back as it came, within the turn and later.
func TestThinkingGoesBackUnchanged(t *testing.T) {
	c := newTalk(t, func(cfg *emulator.Config) { cfg.AlwaysThink = true })
	c.think = calling("note", "note")
	for range 2 {
		c.say("go", `note {"text":"x"};note {"text":"x"}`)
	}
	for seq := 1; seq <= 5; seq++ {
		if !strings.Contains(string(c.last().Body), emulator.Thought(seq)) {
			t.Errorf("thought %d did not go back", seq)
		}
	}
	other := newTalk(t)
	other.history = c.history
	other.say("and you?", "Fine.")
	if strings.Contains(string(other.last().Body), "thought") {
		t.Error("another server was told")
	}
	if refused := append(c.refusals(), other.refusals()...); len(refused) > 0 {
		t.Errorf("refused: %q", refused)
	}
}

// A signature that holds only for what stood in front of it: what was thought before a
// change is left out, once it was refused, and the conversation goes on.
func TestThinkingThatIsBoundIsLeftOut(t *testing.T) {
	c := newTalk(t, func(cfg *emulator.Config) {
		cfg.AlwaysThink, cfg.BindSignatures, cfg.Model = true, true, "claude-opus-5-5"
	})
	c.think = calling("note")
	c.say("go", `note {"text":"x"}`)
	c.say("again", `note {"text":"x"}`)
	if refused := c.refusals(); len(refused) > 0 {
		t.Fatalf("refused: %q", refused)
	}
	c.turn.Prompt += "And now in verse."
	c.say("again", `note {"text":"x"}`)
	c.say("again", `note {"text":"x"}`)
	if refused := c.refusals(); len(refused) != 1 {
		t.Errorf("refused: %q", refused)
	}
}

// How hard to think is said in the form that each model takes.
func TestEffortInEachForm(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ model, effort, want string }{
		"adaptive":       {"claude-sonnet-5", "high", `"output_config":{"effort":"high"},"thinking":{"type":"adaptive"}`},
		"off":            {"claude-sonnet-5", "none", `"output_config":{"effort":"low"},"thinking":{"type":"disabled"}`},
		"never off":      {"claude-opus-5-5", "none", `"output_config":{"effort":"low"},"thinking":{"type":"adaptive"}`},
		"effort alone":   {"claude-opus-4-5", "medium", `"output_config":{"effort":"medium"},"thinking":{"budget_tokens":6000,"type":"enabled"}`},
		"a budget":       {"claude-haiku-4-5", "low", `"thinking":{"budget_tokens":2048,"type":"enabled"}`},
		"none of budget": {"claude-haiku-4-5", "none", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := newTalk(t, func(cfg *emulator.Config) { cfg.Model = tc.model })
			warm := 0.7
			c.think, c.turn.Effort, c.turn.Temperature = calling("note"), tc.effort, &warm
			c.say("go", `note {"text":"x"}`)
			// A turn that another model began cannot go on with a budget for thoughts.
			c.history = append(c.history, agent.Message{Role: agent.RoleUser, Text: "more"},
				agent.Message{Role: agent.RoleAssistant, Calls: []agent.Call{{ID: "ünï", Name: "note", Arguments: `{}`}}},
				agent.Message{Role: agent.RoleTool, CallID: "ünï", Status: agent.StatusOK, Text: "done"})
			if _, err := c.model().Complete(t.Context(), agent.Request{Messages: c.history, Effort: tc.effort}, nil); err != nil {
				t.Error(err)
			}
			body := string(c.srv.Requests()[0].Body)
			if refused := c.refusals(); len(refused) > 0 || !same(body, tc.want) {
				t.Errorf("refused %q: %s", refused, body)
			}
		})
	}
}

// An effort that a model lacks becomes the nearest that it has, and changes nothing for other chats.
func TestAnEffortThatTheModelLacks(t *testing.T) {
	for model, efforts := range map[string][][2]string{
		"claude-opus-4-6": {{"high", "high"}, {"xhigh", "high"}, {"max", "max"}, {"high", "high"}, {"xhigh", "high"}, {"", "max"}},
		"claude-opus-4-5": {{"max", "high"}, {"minimal", "low"}, {"medium", "medium"}, {"", "high"}},
	} {
		c := newTalk(t, func(cfg *emulator.Config) { cfg.Model = model })
		c.cfg.Effort = "max"
		for _, e := range efforts {
			c.turn.Effort = e[0]
			c.say("go", "Fine.")
			if body := string(c.last().Body); !strings.Contains(body, `"effort":"`+e[1]+`"`) {
				t.Errorf("%s, %s: %s", model, e[0], body)
			}
		}
		if refused := c.refusals(); len(refused) > 2 {
			t.Errorf("%s: refused %q", model, refused)
		}
	}
}

// same reports whether a body has the fields, in whatever order.
func same(body, want string) bool {
	if want == "" {
		return !strings.Contains(body, `"thinking"`) && !strings.Contains(body, "output_config")
	}
	for _, part := range strings.FieldsFunc(want, func(r rune) bool { return r == '{' || r == '}' || r == ',' }) {
		if !strings.Contains(body, part) {
			return false
		}
	}
	return true
}

func TestFailures(t *testing.T) {
	t.Parallel()
	overloaded := brain.Reply{Err: &brain.Error{Status: 529, Message: "Overloaded"}}
	for name, tc := range map[string]struct {
		reply  brain.Reply
		kind   agent.Kind
		again  bool // another try may pass
		status int
	}{
		"overloaded":            {overloaded, agent.KindUnavailable, true, 529},
		"rate limit":            {brain.RateLimited(1), agent.KindRateLimit, true, 429},
		"server error":          {brain.Failed(500), agent.KindUnavailable, true, 500},
		"no money":              {brain.Reply{Err: &brain.Error{Status: 400, Message: "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."}}, agent.KindCredit, false, 400},
		"spending limit":        {brain.Reply{Err: &brain.Error{Status: 400, Message: "You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC."}}, agent.KindCredit, false, 400},
		"overloaded on the way": {brain.Reply{Text: "It was a dark and stormy night.", End: brain.EndError, Deltas: 1}, agent.KindUnavailable, true, 529},
		"cut":                   {brain.Reply{Text: "It was a dark and stormy night.", End: brain.EndCut, Deltas: 1}, agent.KindUnavailable, true, 0},
		"silent":                {brain.Reply{Text: "It was a dark and stormy night.", End: brain.EndDropped, Deltas: 1}, agent.KindUnavailable, true, 0},
		"refused":               {brain.Reply{Finish: "refusal"}, agent.KindRejected, false, 0},
		"refused on the way":    {brain.Reply{Text: "It was a dark", Finish: "refusal"}, agent.KindRejected, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := newTalk(t)
			tried := 0
			c.think = func(brain.Request) brain.Reply {
				if tried++; tried == 1 {
					return tc.reply
				}
				return brain.Reply{Text: "The whole story."}
			}
			_, err := c.try("tell")
			var f *agent.ModelError
			if !errors.As(err, &f) || f.Kind != tc.kind || f.Status != tc.status || strings.Contains(err.Error(), key) {
				t.Fatalf("%v", err)
			}
			c.cfg.Retry.MaxAttempts, tried = 2, 0
			var shown strings.Builder
			c.turn.Observe = func(e agent.Event) {
				switch {
				case e.Delta == nil:
				case e.Delta.Restart:
					shown.Reset()
				default:
					shown.WriteString(e.Delta.Text)
				}
			}
			if got, err := c.try("tell"); tc.again && (got != "The whole story." || err != nil || shown.String() != got) || !tc.again && err == nil {
				t.Errorf("%q, shown %q, %v", got, shown.String(), err)
			}
		})
	}
}

func TestWhatCannotHelpIsReportedAtOnce(t *testing.T) {
	c := newTalk(t)
	c.cfg.APIKey = "sk-wrong"
	var f *agent.ModelError
	if _, err := c.try("hello"); !errors.As(err, &f) || f.Kind != agent.KindAuth {
		t.Errorf("%v", err)
	}
	for _, bad := range []anthropic.Config{{}, {Model: "x", BaseURL: "ftp://x"}, {Model: "x", Settings: provider.Settings{Vision: "perhaps"}}, {Model: "x", FirstByteTimeout: -1}} {
		if _, err := anthropic.New(bad); err == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
}

// A model that says nothing is given up.
func TestStall(t *testing.T) {
	c := newTalk(t)
	c.cfg.FirstByteTimeout = 50 * time.Millisecond
	c.think = func(brain.Request) brain.Reply { return brain.Reply{Text: "Late.", Delay: time.Minute} }
	var f *agent.ModelError
	if _, err := c.try("hello"); !errors.As(err, &f) || f.Kind != agent.KindUnavailable || !strings.Contains(err.Error(), "too long") {
		t.Errorf("%v", err)
	}
}

// A conversation that has outgrown the context is told apart, and how much fits is learned.
func TestOverflow(t *testing.T) {
	c := newTalk(t, func(cfg *emulator.Config) { cfg.Context = 4000 })
	for range 40 {
		c.history = append(c.history, agent.Message{Role: agent.RoleUser, Text: strings.Repeat("And so on. ", 40)}, agent.Message{Role: agent.RoleAssistant, Text: "Yes.", Final: true})
	}
	c.say("Still there?", "Fine.")
	if got := c.model().Profile().ContextTokens; got != 0 && got != 4000 {
		t.Errorf("the context has %d tokens", got)
	}
	facts, err := c.model().CurrentFacts(t.Context())
	if err != nil || facts.ContextTokens.Value != 4000 || facts.OutputTokens.Value != 64_000 || !facts.Sees.Yes() || !facts.Caches.Yes() {
		t.Errorf("%+v, %v", facts, err)
	}
}

func TestPictures(t *testing.T) {
	c := newTalk(t)
	c.turn.ReadFile = func(string, int64) ([]byte, error) { return []byte("\x89PNG\r\n\x1a\n-------"), nil }
	c.think = func(req brain.Request) brain.Reply {
		n := 0
		for _, m := range req.Messages {
			n += len(m.Pictures)
		}
		return brain.Reply{Text: strings.Repeat("I see. ", n)}
	}
	c.say("look", "I see. I see. ", "a.png", "b.png")
	c.say("and now?", "I see. I see. ")
	if refused := c.refusals(); len(refused) > 0 {
		t.Errorf("refused: %q", refused)
	}
}

// A picture that is refused does not cost the question, over this API either.
func TestARefusedPictureIsLeftOut(t *testing.T) {
	c := newTalk(t)
	c.turn.ReadFile = func(string, int64) ([]byte, error) { return []byte("\x89PNG\r\n\x1a\n-------"), nil }
	c.think = func(req brain.Request) brain.Reply {
		for _, m := range req.Messages {
			if len(m.Pictures) > 0 {
				return brain.Reply{Err: &brain.Error{Status: 400, Message: "messages.0.content.1.image.source.base64: Could not process image"}}
			}
		}
		return brain.Reply{Text: "I see none."}
	}
	c.say("look", "I see none.", "a.png")
	c.say("and now?", "I see none.")
}

// Conversations as they come from elsewhere: odd ids, arguments and names, nothing said.
func TestOddHistories(t *testing.T) {
	c := newTalk(t)
	for _, id := range []string{"call_0", "call_0", "functions.note:0", "ünï cödé", strings.Repeat("x", 200), ""} {
		c.history = append(c.history, agent.Message{Role: agent.RoleUser, Text: " "}, agent.Message{Role: agent.RoleAssistant, Reasoning: "carried/2 0011 x\ny", Calls: []agent.Call{
			{ID: id, Name: "not a name!", Arguments: `[1]`}, {ID: id, Name: "note", Arguments: ``},
		}},
			agent.Message{Role: agent.RoleTool, CallID: id, Status: agent.StatusError, Text: ""},
			agent.Message{Role: agent.RoleTool, CallID: id, Status: agent.StatusOK, Text: "done"},
			agent.Message{Role: agent.RoleAssistant, Text: "", Final: true})
	}
	c.say("go", "Fine.")
	if refused := c.refusals(); len(refused) > 0 {
		t.Errorf("refused: %q", refused)
	}
	if _, err := c.model().Complete(t.Context(), agent.Request{Messages: []agent.Message{{Role: agent.RoleAssistant, Text: "I began."}, {Role: agent.RoleUser, Text: "go"}}}, nil); err != nil {
		t.Error(err)
	}
}
