package openai_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"oneclaw/agent"
	"oneclaw/agent/openai"
	"oneclaw/agent/provider"
	emulator "oneclaw/internal/emulator/openai"
)

// gateway is a service under a name that tells nothing, so that all has to be learned.
func gateway(t *testing.T, name string, model ...string) *live {
	t.Helper()
	p, ok := emulator.ProfileByName(name)
	if !ok {
		t.Fatal(name)
	}
	for _, m := range model {
		p.Model = m
	}
	path := p.URL[strings.Index(p.URL, "//")+2:]
	p.URL = "https://gateway.test" + path[strings.Index(path, "/"):]
	l := newLive(t, p)
	l.think = threeRounds
	return l
}

// OpenAI's models that reason take tools over the Responses API alone, from 5.4 on. A
// gateway in front of them says so, and is believed.
//
// OpenAI's models that reason take tools over the Responses API alone.
func TestReasoningModelsWithToolsGoToResponses(t *testing.T) {
	for model, want := range map[string]string{
		"gpt-5.3": "chat/completions", "gpt-5.4": "responses", "gpt-5.4-mini": "responses", "gpt-5.5": "responses", "gpt-5.6-terra": "responses",
		"gpt-5.10": "responses", "ft:gpt-5.6:acme": "responses", "gpt-5.4-chat-latest": "chat/completions", "gpt-4.1": "chat/completions",
	} {
		a := stream(hello, stop)
		if want == "responses" {
			a = events(completed(itemText))
		}
		c, p := client(t, openai.Config{BaseURL: openai.DefaultBaseURL, Model: model, Effort: "low"}, a)
		if _, err := c.Complete(t.Context(), agent.Request{Messages: question().Messages, Tools: tools(1)}, nil); err != nil {
			t.Errorf("%s: %v", model, err)
		} else if got := p.requests[0].URL.Path; got != "/v1/"+want {
			t.Errorf("%s: %s", model, got)
		} else if effort := map[bool]string{true: `"reasoning":{"effort":"low"}`, false: `"reasoning_effort":"low"`}[want == "responses"]; !strings.Contains(p.bodies[0], effort) {
			t.Errorf("%s: no effort in %s", model, p.bodies[0])
		}
	}
	for api, path := range map[string]string{openai.APIChat: "/v1/chat/completions", openai.APIResponses: "/v1/responses"} {
		c, p := client(t, openai.Config{Model: "gpt-5.6-sol", BaseURL: openai.DefaultBaseURL, API: api, Retry: provider.Retry{MaxAttempts: 1}}, refusal(400, "", "use /v1/responses"))
		if _, err := c.Complete(t.Context(), question(), nil); err == nil || p.requests[0].URL.Path != path || len(p.requests) != 1 {
			t.Errorf("%s: %v, %v", api, p.requests[0].URL, err)
		}
	}
	l, c := gateway(t, "openai-responses"), newTalk(t)
	c.say(l.model(once), "go", ofThreeRounds)
	c.say(l.model(once), "again", ofThreeRounds)
	if refused := l.refusals(); len(refused) != 1 || !l.last().Responses || !l.model().Facts().Responses.Yes() {
		t.Errorf("refused %q, %+v", refused, l.model().Facts())
	}
}

// An effort that a model lacks becomes the nearest that it has, over both APIs, and changes nothing for
// other chats. A model without efforts gets none.
//
// A model takes some reasoning efforts only.
func TestAnEffortThatTheModelLacks(t *testing.T) {
	for _, api := range []string{openai.APIResponses, openai.APIChat} {
		p, _ := emulator.ProfileByName("openai-responses")
		p.ResponsesOnly = false
		l := newLive(t, p)
		l.cfg.API = api
		for _, c := range []struct {
			wanted, sent string
			refused      int // by now
		}{{"high", "high", 0}, {"minimal", "low", 1}, {"high", "high", 1}, {"none", "low", 2}, {"max", "high", 4}, {"xhigh", "high", 4}, {"", "", 4}} {
			req := question()
			req.Effort = c.wanted
			if _, err := l.model(once).Complete(t.Context(), req, nil); err != nil || l.last().Effort != c.sent || len(l.refusals()) != c.refused {
				t.Errorf("%s, %s: sent %q, refused %q, %v", api, c.wanted, l.last().Effort, l.refusals(), err)
			}
		}
		own := l.model(once, func(cfg *openai.Config) { cfg.Effort = "max" })
		if _, err := own.Complete(t.Context(), question(), nil); err != nil || l.last().Effort != "high" {
			t.Errorf("%s: the model's own setting: sent %q, %v", api, l.last().Effort, err)
		}
	}
	cfg := openai.Config{Model: "gpt-5-mini", ModelCache: openai.NewModelCache()}
	req := question()
	req.Effort = "low"
	unknown := refusal(400, "", "Unrecognized request argument supplied: reasoning_effort")
	c, p := client(t, cfg, unknown, stream(hello, stop), stream(hello, stop))
	for range 2 {
		if _, err := c.Complete(t.Context(), req, nil); err != nil {
			t.Error(err)
		}
	}
	if len(p.bodies) != 3 || strings.Contains(p.bodies[1]+p.bodies[2], "effort") {
		t.Errorf("%q", p.bodies)
	}
}

// What Gemini thought is counted, although its count of the reply leaves it out.
func TestReasoningIsCounted(t *testing.T) {
	p, _ := emulator.ProfileByName("gemini")
	l := newLive(t, p)
	got, err := l.model(once).Complete(t.Context(), question(), nil)
	if thought := len(p.Thought(1)) / 4; err != nil || got.Usage.Output < thought {
		t.Errorf("%+v, %v; the thought alone has %d tokens", got.Usage, err, thought)
	}
}

// Kimi takes one temperature alone: the others are left out.
func TestATemperatureThatTheModelLacks(t *testing.T) {
	p, _ := emulator.ProfileByName("kimi")
	l, warm := newLive(t, p), 0.3
	for range 2 {
		req := question()
		req.Temperature = &warm
		if _, err := l.model(once).Complete(t.Context(), req, nil); err != nil || len(l.refusals()) != 1 {
			t.Errorf("refused %q, %v", l.refusals(), err)
		}
	}
}

// Mistral takes no temperature above 1.5 (SillyTavern #4856): other chats keep theirs.
func TestATemperatureThatIsTooHigh(t *testing.T) {
	cfg := openai.Config{ModelCache: openai.NewModelCache(), Retry: provider.Retry{MaxAttempts: 1}}
	c, p := client(t, cfg, refusal(422, "", "Input should be less than or equal to 1.5: temperature"), stream(hello, stop), stream(hello, stop), stream(hello, stop))
	for _, warm := range []float64{1.8, 0.2, 1.2} {
		req := question()
		req.Temperature = &warm
		if _, err := c.Complete(t.Context(), req, nil); err != nil {
			t.Error(err)
		}
	}
	for i, want := range []string{"1.8", "1", "0.2", "1"} {
		if !strings.Contains(p.bodies[i], `"temperature":`+want+`,`) && !strings.Contains(p.bodies[i], `"temperature":`+want+`}`) {
			t.Errorf("request %d has another temperature than %s: %s", i, want, p.bodies[i])
		}
	}
}

// What a model thought goes back to nobody but its server, under the name it came with.
// Who refuses it gets the same once more without, and is not sent it again.
//
// What a model thought goes back to nobody but its server, under the name it came with.
func TestReasoningGoesBackWhereItCameFrom(t *testing.T) {
	history := func(reasoning string) []agent.Message {
		return append(question().Messages,
			agent.Message{Role: agent.RoleAssistant, Reasoning: reasoning, Calls: []agent.Call{{ID: "abcd12345", Name: "note", Arguments: "{}"}}},
			agent.Message{Role: agent.RoleTool, CallID: "abcd12345", Text: "done"})
	}
	for name, reasoning := range map[string]string{"an older record": "I THINK", "another's": "carried/2 0011223344556677 reasoning_content\nI THINK"} {
		if body := sent(t, openai.Config{}, agent.Request{Messages: history(reasoning)}); strings.Contains(body, "THINK") {
			t.Errorf("%s: %s", name, body)
		}
	}
	for _, field := range []string{"reasoning_content", "reasoning"} {
		body := sent(t, openai.Config{}, agent.Request{Messages: history(carriedBy(field, "I THINK"))})
		if !strings.Contains(body, `"`+field+`":"I THINK"`) || strings.Count(body, "THINK") != 1 {
			t.Errorf("%s: %s", field, body)
		}
	}
	for _, refused := range []string{
		`{"error":{"message":"'messages.1' : for 'role:assistant' the following must be satisfied[('messages.1' : property 'reasoning_content' is unsupported)]","type":"invalid_request_error"}}`,
		`{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","messages",1,"assistant","reasoning_content"],"msg":"Extra inputs are not permitted"}]},"type":"invalid_request_error","param":null,"code":null}`,
		`{"error":{"message":"messages[1].reasoning: reasoning is not supported with this model"}}`,
	} {
		cfg := openai.Config{ModelCache: openai.NewModelCache(), Retry: provider.Retry{MaxAttempts: 1}}
		c, p := client(t, cfg, respond(400, "application/json", refused), stream(hello, stop))
		req := agent.Request{Messages: history(carriedBy("reasoning_content", "I THINK"))}
		if _, err := c.Complete(t.Context(), req, nil); err != nil || len(p.bodies) != 2 || strings.Contains(p.bodies[1], "THINK") {
			t.Errorf("%s: %v, %q", refused, err, p.bodies)
		}
		c, p = client(t, cfg, stream(hello, stop))
		if _, err := c.Complete(t.Context(), req, nil); err != nil || strings.Contains(p.bodies[0], "THINK") {
			t.Errorf("it is sent again: %v, %q", err, p.bodies)
		}
	}
}

// DeepSeek and Kimi want what was thought with calls in all later requests, and something
// in its place where another model called.
//
// DeepSeek and Kimi want what was thought with calls in all later requests.
func TestReasoningOfEarlierTurnsIsKept(t *testing.T) {
	for _, name := range []string{"deepseek", "kimi"} {
		l, c := gateway(t, name), newTalk(t)
		c.say(l.model(once), "go", ofThreeRounds)
		c.say(l.model(once), "again", ofThreeRounds)
		if refused := l.refusals(); len(refused) != 1 {
			t.Errorf("%s behind a gateway refused %q", name, refused)
		}
		body := string(l.last().MessagesJSON)
		for i, r := range l.srv.Requests()[:3] {
			if !strings.Contains(body, l.p.Thought(r.Seq)) {
				t.Errorf("%s: the thought of request %d is lost", name, i+1)
			}
		}
	}
}

// OpenRouter's reasoning_details go back as they came, in one piece, and calls of others
// have what stands in for them.
//
// Gemini behind OpenRouter wants its `reasoning_details` back.
func TestReasoningDetailsGoBack(t *testing.T) {
	c, p := client(t, openai.Config{BaseURL: "https://openrouter.ai/api/v1", Model: "google/gemini-3-pro-preview"},
		stream(`{"choices":[{"index":0,"delta":{"reasoning":"I ","reasoning_details":[{"type":"reasoning.text","text":"I ","index":0,"format":"f"}]}}]}`,
			`{"choices":[{"index":0,"delta":{"reasoning":"think","reasoning_details":[{"type":"reasoning.text","text":"think","index":0,"signature":"s"}]}}]}`,
			`{"choices":[{"index":0,"delta":{"reasoning_details":[{"type":"reasoning.encrypted","data":"SIGNED","id":"tool_1","index":1}],"tool_calls":[{"index":0,"id":"tool_1","type":"function","function":{"name":"note","arguments":"{}"}}]}}]}`, stop),
		stream(hello, stop), stream(hello, stop))
	first, err := c.Complete(t.Context(), question(), nil)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(reasoning string) []map[string]any {
		t.Helper()
		_, err := c.Complete(t.Context(), agent.Request{Messages: append(question().Messages,
			agent.Message{Role: agent.RoleAssistant, Reasoning: reasoning, Calls: first.Calls}, agent.Message{Role: agent.RoleTool, CallID: "tool_1", Text: "ok"})}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var body struct {
			Messages []struct {
				Reasoning string           `json:"reasoning"`
				Details   []map[string]any `json:"reasoning_details"`
			} `json:"messages"`
		}
		if err := json.Unmarshal([]byte(p.bodies[len(p.bodies)-1]), &body); err != nil || body.Messages[1].Reasoning != "" {
			t.Fatalf("%v, %+v", err, body)
		}
		return body.Messages[1].Details
	}
	back := ask(first.Reasoning)
	if len(back) != 2 || back[0]["text"] != "I think" || back[0]["signature"] != "s" || back[0]["format"] != "f" || back[1]["data"] != "SIGNED" {
		t.Errorf("went back: %v", back)
	}
	if foreign := ask("another's"); len(foreign) != 1 || foreign[0]["data"] != "skip_thought_signature_validator" || foreign[0]["id"] != "tool_1" {
		t.Errorf("for another's call: %v", foreign)
	}
	l, talk := gateway(t, "openrouter-gemini"), newTalk(t)
	talk.history = append(talk.history, question().Messages[0], agent.Message{Role: agent.RoleAssistant, Calls: []agent.Call{{ID: "x", Name: "note", Arguments: "{}"}}},
		agent.Message{Role: agent.RoleTool, CallID: "x", Tool: "note", Status: agent.StatusOK, Text: "0"})
	l.think = func(context.Context, emulator.Request) (emulator.Reply, error) {
		return emulator.Reply{Text: "ok"}, nil
	}
	turn := talk.turn
	turn.Model, turn.History, turn.Set = l.model(once), talk.history, talk.set()
	for _, err := range talk.agent.Run(t.Context(), turn) {
		if err != nil {
			t.Error(err)
		}
	}
}

// Content may be parts; what a model thinks among them is not said, and goes back as it
// came.
//
// Mistral streams content as an array of parts.
func TestContentAsParts(t *testing.T) {
	c, p := client(t, openai.Config{BaseURL: "https://api.mistral.ai/v1", Model: "magistral-medium-2509"},
		stream(`{"choices":[{"index":0,"delta":{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"I TH"}]}]}}]}`,
			`{"choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"INK"}]},{"type":"text","text":"Hel"}]}}]}`,
			`{"choices":[{"index":0,"delta":{"content":"lo"}}]}`, stop), stream(hello, stop))
	got, err := c.Complete(t.Context(), question(), nil)
	if err != nil || got.Text != "Hello" {
		t.Fatalf("%+v, %v", got, err)
	}
	call := agent.Call{ID: "abcd12345", Name: "note", Arguments: "{}"}
	if _, err := c.Complete(t.Context(), agent.Request{Messages: append(question().Messages,
		agent.Message{Role: agent.RoleAssistant, Text: got.Text, Reasoning: got.Reasoning, Calls: []agent.Call{call}},
		agent.Message{Role: agent.RoleTool, CallID: call.ID, Text: "ok"})}, nil); err != nil {
		t.Fatal(err)
	}
	if want := `"content":[{"type":"thinking","thinking":[{"type":"text","text":"I THINK"}]},{"type":"text","text":"Hello"}]`; !strings.Contains(p.bodies[1], want) {
		t.Errorf("went back: %s", p.bodies[1])
	}
}

// Whatever ids a conversation has, each server sees some that it takes, each once where it
// wants that, and the results answer their calls.
//
// Servers differ in which ids of calls they take.
func TestIDsAreThoseThatTheServerTakes(t *testing.T) {
	servers := map[string]openai.Config{}
	for _, p := range emulator.Profiles() {
		servers[p.Name] = openai.Config{BaseURL: p.URL, Model: p.Model}
	}
	rapid.Check(t, func(rt *rapid.T) {
		name := rapid.SampledFrom([]string{"openai", "mistral", "anthropic", "kimi", "vllm", "openai-responses"}).Draw(rt, "server")
		p, _ := emulator.ProfileByName(name)
		ids := rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom([]string{"call_0", "abcd12345", "functions.note:0", ""}), rapid.StringN(0, 80, 300)), 1, 8).Draw(rt, "ids")
		messages := question().Messages
		for i, id := range ids {
			messages = append(messages, agent.Message{Role: agent.RoleAssistant, Calls: []agent.Call{{ID: id, Name: "note", Arguments: fmt.Sprintf(`{"n":%d}`, i)}}},
				agent.Message{Role: agent.RoleTool, CallID: id, Text: fmt.Sprint(i)})
		}
		a := stream(hello, stop)
		if name == "openai-responses" {
			a = events(completed(itemText))
		}
		c, sent := client(t, servers[name], a)
		if _, err := c.Complete(t.Context(), agent.Request{Messages: messages}, nil); err != nil {
			rt.Fatal(err)
		}
		var body struct {
			Messages []struct {
				Calls []struct{ ID string } `json:"tool_calls"`
				ID    string                `json:"tool_call_id"`
				Text  string                `json:"content"`
			}
			Input []struct {
				ID   string `json:"call_id"`
				Type string
			}
		}
		if err := json.Unmarshal([]byte(sent.bodies[0]), &body); err != nil {
			rt.Fatal(err)
		}
		var calls, results []string
		for _, m := range body.Messages {
			for _, c := range m.Calls {
				calls = append(calls, c.ID)
			}
			if m.ID != "" {
				results = append(results, m.ID)
			}
		}
		for _, it := range body.Input {
			switch it.Type {
			case "function_call":
				calls = append(calls, it.ID)
			case "function_call_output":
				results = append(results, it.ID)
			}
		}
		seen := map[string]bool{}
		for i, id := range calls {
			if p.CallIDPattern != nil && !p.CallIDPattern.MatchString(id) || seen[id] && p.DuplicateCallID.Status != 0 || len(id) > 64 && name != "kimi" || results[i] != id {
				rt.Fatalf("%s is sent %q, with the results %q, for %q", name, calls, results, ids)
			}
			seen[id] = true
		}
		if len(calls) != len(ids) || len(results) != len(ids) {
			rt.Fatalf("%d calls, %d results", len(calls), len(results))
		}
	})
	claude := gateway(t, "anthropic", "sonnet")
	twice := newTalk(t)
	for range 2 {
		twice.history = append(twice.history, question().Messages[0], agent.Message{Role: agent.RoleAssistant, Calls: []agent.Call{{ID: "call_0", Name: "note", Arguments: "{}"}}},
			agent.Message{Role: agent.RoleTool, CallID: "call_0", Tool: "note", Status: agent.StatusOK, Text: "0"})
	}
	twice.say(claude.model(once), "go", ofThreeRounds)
	if refused := claude.refusals(); len(refused) != 1 {
		t.Errorf("refused %q", refused)
	}
	// Behind a gateway the form is learned, and so is that a model speaks after results.
	l, c := gateway(t, "mistral", "my-finetune"), newTalk(t)
	c.history = append(question().Messages, agent.Message{Role: agent.RoleAssistant, Calls: []agent.Call{{ID: "call_0", Name: "note", Arguments: "{}"}}},
		agent.Message{Role: agent.RoleTool, CallID: "call_0", Tool: "note", Status: agent.StatusOK, Text: "0"})
	c.say(l.model(once), "go", ofThreeRounds)
	c.say(l.model(once), "again", ofThreeRounds)
	if refused := l.refusals(); len(refused) != 2 {
		t.Errorf("refused %q", refused)
	}
}
