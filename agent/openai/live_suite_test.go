package openai_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"oneclaw/agent"
	"oneclaw/agent/openai"
	emulator "oneclaw/internal/emulator/openai"
)

// conversations are what is spoken with every service.
var conversations = []struct {
	name string
	hold func(t *testing.T, p emulator.Profile)
}{
	{"text", holdText},
	{"tools", holdTools},
	{"ids", holdIDs},
	{"reasoning", holdReasoning},
	{"pictures", holdPictures},
	{"stream errors", holdStreamErrors},
	{"parts", holdParts},
	{"overflow", holdOverflow},
	{"failover", holdFailover},
	{"cold start", holdColdStart},
	{"no usage", holdNoUsage},
	{"gateway", holdGateway},
	{"bad input", holdBadInput},
}

func holdText(t *testing.T, p emulator.Profile) {
	l, c := newLive(t, p), newTalk(t)
	l.think = func(_ context.Context, req emulator.Request) (emulator.Reply, error) {
		return emulator.Reply{Text: "You said: " + req.Messages[len(req.Messages)-1].Content}, nil
	}
	c.say(l.model(), "Grüße <b>&</b> \"so\"", "You said: Grüße <b>&</b> \"so\"")
	c.say(l.model(), "two\nlines", "You said: two\nlines")
	if refused := l.refusals(); len(refused) > 0 {
		t.Errorf("refused: %q", refused)
	}
}

// holdTools has three tools run side by side, three rounds long, in two turns.
func holdTools(t *testing.T, p emulator.Profile) {
	l, c := newLive(t, p), newTalk(t)
	l.think = threeRounds
	c.say(l.model(), "go", ofThreeRounds)
	c.say(l.model(), "again", ofThreeRounds)
	if refused := l.refusals(); len(refused) > 0 {
		t.Errorf("refused: %q", refused)
	}
}

// holdIDs goes on with a conversation whose calls have ids of all kinds, and which ends
// with a result.
func holdIDs(t *testing.T, p emulator.Profile) {
	l, c := newLive(t, p), newTalk(t)
	l.think = threeRounds
	odd := []string{"call_0", "call_0", "functions.note:0", "chatcmpl-tool-0123456789abcdef0123456789abcdef", "abcd12345", "ünï cödé", strings.Repeat("x", 200), "call_0"}
	c.history = append(c.history, agent.Message{Role: agent.RoleUser, Text: "before"})
	for i, id := range odd {
		args := fmt.Sprintf(`{"text":"%d"}`, i)
		c.history = append(c.history, agent.Message{Role: agent.RoleAssistant, Calls: []agent.Call{{ID: id, Name: "note", Arguments: args}}},
			agent.Message{Role: agent.RoleTool, CallID: id, Tool: "note", Status: agent.StatusOK, Text: "noted " + args})
	}
	c.say(l.model(), "go", ofThreeRounds) // right behind a result, as after a stop
	if refused := l.refusals(); len(refused) > 0 {
		t.Errorf("refused: %q", refused)
	}
	called, n := map[string]string{}, 0
	for _, m := range l.last().Messages {
		for _, call := range m.ToolCalls {
			if _, twice := called[call.ID]; twice && p.DuplicateCallID.Status != 0 {
				t.Errorf("the id %q occurs twice", call.ID)
			}
			called[call.ID] = "noted " + call.Arguments
		}
		if m.Role == "tool" {
			if n++; called[m.ToolCallID] != m.Content {
				t.Errorf("%q answers %q", m.Content, called[m.ToolCallID])
			}
		}
	}
	if n != len(odd)+9 {
		t.Errorf("%d results", n)
	}
}

// holdReasoning goes through turns with tools: what was thought goes back where it has to.
func holdReasoning(t *testing.T, p emulator.Profile) {
	l, c := newLive(t, p), newTalk(t)
	l.think = threeRounds
	c.say(l.model(), "go", ofThreeRounds)
	back := func(seq int) bool { return strings.Contains(string(l.last().MessagesJSON), p.Thought(seq)) }
	if wanted := p.Reasoning != "" && p.Reasoning != emulator.ReasoningSigned; back(1) != wanted || back(3) != wanted {
		t.Errorf("the thoughts of the turn went back: %v, %v; want %v", back(1), back(3), wanted)
	}
	c.say(l.model(), "again", ofThreeRounds)
	if back(1) != (p.RequiredReasoning == emulator.ScopeAll) {
		t.Errorf("the thoughts of the turn before went back: %v", back(1))
	}
	if refused := l.refusals(); len(refused) > 0 {
		t.Errorf("refused: %q", refused)
	}
}

// holdPictures shows pictures. A model that sees none still answers, and is not shown any
// a second time.
func holdPictures(t *testing.T, p emulator.Profile) {
	l, c := newLive(t, p), newTalk(t)
	c.turn.ReadFile = pictures(t).read
	l.think = func(_ context.Context, req emulator.Request) (emulator.Reply, error) {
		return emulator.Reply{Text: fmt.Sprint("I see ", len(req.Messages[len(req.Messages)-1].Pictures))}, nil
	}
	want := "I see 2"
	if p.NoPictures.Status != 0 {
		want = "I see 0"
	}
	c.say(l.model(), "look", want, "a.png", "b.jpg")
	before := len(l.refusals())
	c.say(l.model(), "look again", want, "b.jpg", "a.png")
	if refused := l.refusals(); len(refused) > before || before > 1 {
		t.Errorf("refused: %q", refused)
	}
	if yes, no := l.model().Facts().Sees.Yes(), l.model().Facts().Sees.No(); before > 0 && !no || want == "I see 0" && yes {
		t.Errorf("it is not known that the model is blind: %+v", l.model().Facts())
	}
}

func holdStreamErrors(t *testing.T, p emulator.Profile) {
	l, c := newLive(t, p), newTalk(t)
	var asked atomic.Int32
	l.think = func(context.Context, emulator.Request) (emulator.Reply, error) {
		if asked.Add(1) == 1 {
			return emulator.Reply{Text: "It was a dark and stormy night and so on.", End: emulator.EndError, Deltas: 3}, nil
		}
		return emulator.Reply{Text: "The whole story."}, nil
	}
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
	c.say(l.model(), "tell", "The whole story.")
	if shown.String() != "The whole story." || asked.Load() != 2 {
		t.Errorf("shown %q after %d requests", shown.String(), asked.Load())
	}
}

func holdParts(t *testing.T, p emulator.Profile) {
	p.ContentParts = true
	l, c := newLive(t, p), newTalk(t)
	l.think = func(context.Context, emulator.Request) (emulator.Reply, error) {
		return emulator.Reply{Text: "An answer of quite a few words, in parts."}, nil
	}
	c.say(l.model(), "go", "An answer of quite a few words, in parts.")
}

// holdOverflow lets a conversation outgrow the context: it is answered, summed up, and
// then fits. Who cuts in silence has told how much fits.
func holdOverflow(t *testing.T, p emulator.Profile) {
	const context = 3000
	l, c := newLive(t, p, func(cfg *emulator.Config) { cfg.Context = context }), newTalk(t)
	l.think = overflowing
	if p.Truncates {
		if facts, err := l.model().CurrentFacts(t.Context()); err != nil || facts.ContextTokens.Value != context {
			t.Fatalf("%+v, %v", facts, err)
		}
	}
	for i := range 30 {
		c.history = append(c.history, agent.Message{Role: agent.RoleUser, Text: fmt.Sprint("Question ", i, strings.Repeat(" and so on", 40))},
			agent.Message{Role: agent.RoleAssistant, Text: fmt.Sprint("Answer ", i, strings.Repeat(" and so on", 40)), Final: true})
	}
	var cut agent.Cut
	c.turn.OnCut = func(now agent.Cut) { cut = now }
	c.say(l.model(), "Still there?", "I am here.")
	if n := len(l.refusals()); n == 0 != p.Truncates || cut.Omitted == 0 {
		t.Errorf("%d requests refused, cut %+v", n, cut)
	}
	if c.compact(l.model(), cut.ContextTokens) == 0 {
		t.Error("nothing was summed up")
	}
	before := len(l.refusals())
	cut = agent.Cut{}
	c.say(l.model(), "And now?", "I am here.")
	if len(l.refusals()) > before || cut != (agent.Cut{}) {
		t.Errorf("refused %q, cut %+v", l.refusals()[before:], cut)
	}
	for _, r := range l.srv.Requests() {
		if r.Truncated > 0 {
			t.Errorf("request %d lost %d messages in silence", r.Seq, r.Truncated)
		}
	}
}

func overflowing(_ context.Context, req emulator.Request) (emulator.Reply, error) {
	if strings.HasPrefix(req.Messages[0].Content, "You sum up") {
		return emulator.Reply{Text: "They spoke of many things."}, nil
	}
	return emulator.Reply{Text: "I am here."}, nil
}

// inTurns asks another model each time, as if the one before were out of order.
type inTurns struct {
	models []agent.Candidate
	asked  int
}

func (m *inTurns) Complete(ctx context.Context, req agent.Request, onDelta func(agent.Delta)) (agent.Reply, error) {
	// The first is out of order in every second round.
	order := []agent.Candidate{m.models[0], m.models[1]}
	if m.asked%2 == 1 {
		order[0].Model = broken{}
	}
	m.asked++
	f, err := agent.NewFailover(agent.FailoverConfig{Candidates: order, Outages: agent.NewOutages()})
	if err != nil {
		return agent.Reply{}, err
	}
	return f.Complete(ctx, req, onDelta)
}

type broken struct{}

func (broken) Complete(context.Context, agent.Request, func(agent.Delta)) (agent.Reply, error) {
	return agent.Reply{}, &agent.ModelError{Kind: agent.KindUnavailable, Err: errors.New("out of order")}
}

// holdFailover goes over to others in the middle of a turn, and back: each pair of services
// has its turn in one of the two rows.
func holdFailover(t *testing.T, p emulator.Profile) {
	one := newLive(t, p)
	one.think = threeRounds
	all := emulator.Profiles()
	at := slices.IndexFunc(all, func(o emulator.Profile) bool { return o.Name == p.Name })
	for i := range len(all) / 2 {
		other := all[(at+1+i)%len(all)]
		two, c := newLive(t, other), newTalk(t)
		two.think = threeRounds
		m := &inTurns{models: []agent.Candidate{{Name: p.Name, Model: one.model(once)}, {Name: other.Name, Model: two.model(once)}}}
		c.say(m, "go", ofThreeRounds)
		c.say(m, "again", ofThreeRounds)
		for _, l := range []*live{one, two} {
			if refused := l.refusals(); len(refused) > 0 {
				t.Fatalf("%s and %s: %s refused %q", p.Name, other.Name, l.p.Name, refused)
			}
			foreign := otherThan(l.p, p, other).Thought(0)
			for _, r := range l.srv.Requests() {
				if strings.Contains(string(r.MessagesJSON), strings.TrimSuffix(foreign, "0")) {
					t.Fatalf("%s was told what %q", l.p.Name, foreign)
				}
			}
		}
	}
}

func otherThan(p, one, two emulator.Profile) emulator.Profile {
	if p.Name == one.Name {
		return two
	}
	return one
}

// holdColdStart waits for a server that loads its model and says nothing meanwhile.
func holdColdStart(t *testing.T, p emulator.Profile) {
	l, c := newLive(t, p), newTalk(t)
	var asked atomic.Int32
	l.think = func(ctx context.Context, _ emulator.Request) (emulator.Reply, error) {
		if asked.Add(1) == 1 {
			<-ctx.Done() // It is loaded when the client has given up.
		}
		return emulator.Reply{Text: "Awake."}, nil
	}
	c.say(l.model(func(cfg *openai.Config) { cfg.FirstByteTimeout = coldStart }), "hello", "Awake.")
	if asked.Load() < 2 { // more on a machine that is slow itself
		t.Errorf("asked %d times", asked.Load())
	}
}

// holdNoUsage speaks to servers that refuse stream_options, each in its own form.
func holdNoUsage(t *testing.T, p emulator.Profile) {
	p.NoStreamOptions = emulator.Error{Status: 422, Message: "stream_options: Extra inputs are not permitted"}
	l, c := newLive(t, p), newTalk(t)
	l.think = threeRounds
	c.say(l.model(), "go", ofThreeRounds)
	c.say(l.model(), "again", ofThreeRounds)
	if n := len(l.refusals()); n > 1 {
		t.Errorf("refused %d times", n)
	}
}

// holdGateway reaches a service, and a model, under names that tell nothing: what it wants
// is learned from what it refuses, once.
func holdGateway(t *testing.T, p emulator.Profile) {
	l, c := gateway(t, p.Name, "house-model"), newTalk(t)
	c.turn.ReadFile = pictures(t).read
	for i := range 2 {
		for _, id := range []string{"call_0", "functions.note:0"} {
			c.history = append(c.history, agent.Message{Role: agent.RoleUser, Text: "before"},
				agent.Message{Role: agent.RoleAssistant, Calls: []agent.Call{{ID: id, Name: "note", Arguments: fmt.Sprintf(`{"text":"%d"}`, i)}}},
				agent.Message{Role: agent.RoleTool, CallID: id, Tool: "note", Status: agent.StatusOK, Text: "noted"})
		}
	}
	c.say(l.model(once), "go", ofThreeRounds, "a.png")
	c.say(l.model(once), "again", ofThreeRounds)
	before := len(l.refusals())
	c.say(l.model(once), "and again", ofThreeRounds, "a.png")
	if refused := l.refusals(); len(refused) > before || before > 4 {
		t.Errorf("refused: %q", refused)
	}
}

// holdBadInput gets what is no answer, says what the matter is, and goes on when there is
// one.
func holdBadInput(t *testing.T, p emulator.Profile) {
	l, c := newLive(t, p), newTalk(t)
	good := l.addr
	for name, bad := range badAnswers() {
		srv := httptest.NewServer(bad.answer)
		l.moved(srv.Listener.Addr().String())
		_, err := c.try(l.model(once), "hello")
		if f := kindOf(t, err); f.Kind != bad.kind || !strings.Contains(err.Error(), bad.says) {
			t.Errorf("%s: %v, want %s with %q", name, err, bad.kind, bad.says)
		}
		l.cfg.HTTPClient.CloseIdleConnections()
		srv.Close()
	}
	l.moved(good)
	c.say(l.model(once), "and now?", "Fine.")
	if n := strings.Count(string(l.last().MessagesJSON), "hello"); n != len(badAnswers()) {
		t.Errorf("%d of the messages are left", n)
	}
}

type badAnswer struct {
	answer http.HandlerFunc
	kind   agent.Kind
	says   string
}
