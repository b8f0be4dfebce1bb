package openai_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"pgregory.net/rapid"

	"oneclaw/agent"
	"oneclaw/agent/openai"
	"oneclaw/agent/provider"
	emulator "oneclaw/internal/emulator/openai"
)

// A server as strict as the hosted one accepts every prefix of every conversation,
// with repeated and missing ids, lost results and malformed calls.
func TestStrictServerAcceptsAnyHistory(t *testing.T) {
	srv, err := emulator.New(emulator.Config{Responder: emulator.ResponderFunc(func(context.Context, emulator.Request) (emulator.Reply, error) {
		return emulator.Reply{Text: "fine"}, nil
	})})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	}()
	base, err := srv.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	c, err := openai.New(openai.Config{
		BaseURL: base, Model: emulator.DefaultModel, HTTPClient: &http.Client{Transport: transport}, Retry: provider.Retry{MaxAttempts: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		history := append(conversation(rt), agent.Message{Role: agent.RoleUser, Text: "now"})
		window, _ := agent.Window(history, rapid.IntRange(0, 200).Draw(rt, "tokens"))
		got, err := c.Complete(t.Context(), agent.Request{
			System: "You help.", Messages: window, Tools: tools(3),
		}, nil)
		if err != nil || got.Text != "fine" || got.Usage.Input == 0 {
			rt.Errorf("%+v, %v", got, err)
		}
	})
}

func conversation(t *rapid.T) []agent.Message {
	var out []agent.Message
	pick := func(what string, from ...string) string { return rapid.SampledFrom(from).Draw(t, what) }
	for range rapid.IntRange(0, 8).Draw(t, "messages") {
		switch pick("role", "user", "final", "summary", "calls", "calls", "tool", "started") {
		case "user":
			out = append(out, agent.Message{Role: agent.RoleUser, Text: pick("text", "", "hi", "\xff\x00"), Sender: pick("sender", "", "Ann")})
		case "final":
			out = append(out, agent.Message{Role: agent.RoleAssistant, Text: pick("text", "", "yes"), Reasoning: "hm", Final: true})
		case "summary":
			out = append(out, agent.Message{Role: agent.RoleSummary, Text: "before"})
		case "calls":
			m := agent.Message{Role: agent.RoleAssistant, Text: pick("text", "", "let me see"), Reasoning: pick("reasoning", "", "hm")}
			for i := range rapid.IntRange(1, 3).Draw(t, "calls") {
				m.Calls = append(m.Calls, agent.Call{
					ID: fmt.Sprint(i), Name: pick("name", "tool_1", "made up!", ""), Arguments: pick("arguments", "{}", "", "{", "[]", `"x"`),
				})
			}
			out = append(out, m)
		case "tool":
			out = append(out, agent.Message{Role: agent.RoleTool, CallID: pick("id", "0", "1", "2"), Text: pick("text", "", "result")})
		case "started":
			out = append(out, agent.Message{Role: agent.RoleStarted, CallID: pick("id", "0", "1", "2")})
		}
	}
	return out
}
