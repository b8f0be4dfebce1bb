package eval_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"oneclaw/agent"
	"oneclaw/agent/anthropic"
	"oneclaw/agent/openai"
	"oneclaw/internal/budget"
	claude "oneclaw/internal/emulator/anthropic"
	emulator "oneclaw/internal/emulator/openai"
	"oneclaw/internal/lab/eval"
	"oneclaw/internal/learning"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/search"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var clock = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// registry has a core tool and a group, none of which may run.
func registry(t *testing.T) *toolgroups.Registry {
	t.Helper()
	tool := func(name string) toolgroups.Tool {
		return toolgroups.Tool{
			Name: name, Description: name, Parameters: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`),
			Run: func(context.Context, toolgroups.Call) (toolgroups.Result, error) {
				t.Errorf("%s runs", name)
				return toolgroups.Result{}, nil
			},
		}
	}
	reg, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{
		Core:   []toolgroups.Tool{tool("http_request")},
		Groups: []toolgroups.Group{{Name: "docs", Description: "Documents", Tools: []toolgroups.Tool{tool("read_doc"), tool("send_doc")}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return reg
}

// recorded is a case in which the model loaded a group, read a document, sent it and used a
// tool that is gone; somebody wrote meanwhile.
func recorded() learning.Case {
	call := func(id, name, arguments string) agent.Message {
		return agent.Message{Role: agent.RoleAssistant, Calls: []agent.Call{{ID: id, Name: name, Arguments: arguments}}}
	}
	result := func(id, tool, text, code string) agent.Message {
		return agent.Message{Role: agent.RoleTool, CallID: id, Tool: tool, Text: text, Status: map[bool]agent.Status{true: agent.StatusOK, false: agent.StatusError}[code == ""], Code: code}
	}
	return learning.Case{Asked: clock, Ended: clock, Seen: learning.Seen{
		ID: "Case-a", Person: "Person-a", Chat: "Chat-a", Direct: true,
		Messages: []agent.Message{
			{Role: agent.RoleSummary, Text: "They talked of plans."},
			{Role: agent.RoleUser, Text: "Read the first plan."},
			call("call_1", "read_doc", `{"path":"first"}`), result("call_1", "read_doc", "the first plan", ""),
			{Role: agent.RoleAssistant, Text: "Done.", Final: true},
			{Role: agent.RoleUser, Text: "What does the plan say? Send it."},
		},
	}, Outcome: learning.Outcome{Good: 1, Bad: 2, Model: "old-model", Routing: "groups", Used: learning.Usage{Rounds: 5, Input: 1000, Cached: 10, Output: 20, USD: .5}, Messages: []agent.Message{
		call("call_2", toolgroups.LoadToolGroup, `{"group_name":"docs"}`), result("call_2", toolgroups.LoadToolGroup, "loaded", ""),
		call("call_3", "read_doc", `{"path":"plan"}`), result("call_3", "read_doc", "the plan says A", ""),
		{Role: agent.RoleUser, Text: "and hurry", JoinedRef: "meanwhile"},
		call("call_4", "send_doc", `{"path":"plan"}`), result("call_4", "send_doc", "refused", "permission_denied"),
		call("call_5", "mcp_tool", `{"path":"plan"}`), result("call_5", "mcp_tool", "fine", ""),
		{Role: agent.RoleAssistant, Text: "The plan says A, and I could not send it.", Final: true},
	}}}
}

// script is what the model does now.
func script() *emulator.Script {
	call := func(name, arguments string) emulator.ToolCall {
		return emulator.ToolCall{Name: name, Arguments: arguments}
	}
	return emulator.NewScript(
		emulator.Reply{Calls: []emulator.ToolCall{call(toolgroups.LoadToolGroup, `{"group_name":"docs"}`)}},
		emulator.Reply{Calls: []emulator.ToolCall{call("read_doc", `{ "path": "plan" }`), call("read_doc", `{"path":"other"}`), call("read_doc", `{"path":"first"}`)}},
		emulator.Reply{Calls: []emulator.ToolCall{call("send_doc", `{"path":"plan"}`)}},
		emulator.Reply{Text: "The plan says B, and I could not send it."},
	)
}

// asked are the prompts that a service was sent: their tokens, and the last conversation.
type asked struct {
	input, cached, written int
	last                   []emulator.Message
}

// service is a model of one kind, with what it was asked.
func service(t *testing.T, messages bool, brain emulator.Responder) (agent.Model, func() asked) {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: transport}
	if messages {
		server, err := claude.New(claude.Config{Responder: brain})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = server.Close() })
		url, err := server.Start(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		model, err := anthropic.New(anthropic.Config{BaseURL: url, APIKey: "k", Model: claude.DefaultModel, HTTPClient: client})
		if err != nil {
			t.Fatal(err)
		}
		return model, func() (a asked) {
			for _, r := range server.Requests() {
				a.input, a.cached, a.written, a.last = a.input+r.Usage.Total(), a.cached+r.Usage.CacheRead, a.written+r.Usage.CacheWritten, r.Messages
			}
			return a
		}
	}
	server, err := emulator.New(emulator.Config{Responder: brain})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	url, err := server.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	model, err := openai.New(openai.Config{BaseURL: url, Model: emulator.DefaultModel, HTTPClient: client})
	if err != nil {
		t.Fatal(err)
	}
	return model, func() (a asked) {
		for _, r := range server.Requests() {
			a.input, a.cached, a.last = a.input+r.Usage.Prompt, a.cached+r.Usage.Cached, r.Messages
		}
		return a
	}
}

func config(t *testing.T, model agent.Model) eval.Config {
	return eval.Config{
		Model: model, Name: "new-model", Registry: registry(t), Routing: search.RoutingGroups, Prompt: "You help.", Budget: 1, Now: func() time.Time { return clock },
		DollarPrice: func(string) (budget.Price, bool) { return budget.Price{Input: 3, CachedInput: 1, Output: 7}, true },
	}
}

func TestACaseRunsWithAnotherModel(t *testing.T) {
	t.Parallel()
	for name, messages := range map[string]bool{"chat completions": false, "messages": true} {
		t.Run(name, func(t *testing.T) {
			model, requests := service(t, messages, script())
			cfg := config(t, model)
			p, err := eval.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.Play(t.Context(), recorded())
			if err != nil {
				t.Fatal(err)
			}
			now := requests()
			used := learning.Usage{Rounds: 4, Input: now.input, Cached: now.cached, Written: now.written, Output: got.Now.Used.Output}
			prices, _ := cfg.DollarPrice("")
			used.USD = prices.Cost(budget.Tokens{Input: int64(used.Input), Cached: int64(used.Cached), Written: int64(used.Written), Output: int64(used.Output)}).Float()
			if diff := used.USD - got.Now.Used.USD; diff > 1e-8 || diff < -1e-8 || used.Output == 0 {
				t.Errorf("it costs %v, want %v", got.Now.Used.USD, used.USD)
			}
			used.USD = got.Now.Used.USD
			want := eval.Result{
				ID: "Case-a", Question: "What does the plan say? Send it.", Good: 1, Bad: 2,
				Was:  eval.Side{Model: "old-model", Routing: "groups", Groups: []string{"docs"}, Answer: "The plan says A, and I could not send it.", Used: recorded().Outcome.Used},
				Now:  eval.Side{Model: got.Now.Model, Routing: "groups", Groups: []string{"docs"}, Answer: "The plan says B, and I could not send it.", Used: used},
				Same: []string{`read_doc {"path":"plan"}`, `send_doc {"path":"plan"}`}, Missing: []string{`mcp_tool {"path":"plan"}`},
				New: []string{`read_doc {"path":"other"}`, `read_doc {"path":"first"}`}, Unrecorded: 1, Gone: []string{"mcp_tool"},
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the result is other (-want +got):\n%s", diff)
			}
			var told strings.Builder
			for _, m := range now.last {
				fmt.Fprintf(&told, "%s: %s\n", m.Role, m.Content)
			}
			for _, want := range []string{"They talked of plans.", "the plan says A", "This call is not on record", "the first plan", "and hurry", "refused"} {
				if !strings.Contains(told.String(), want) {
					t.Errorf("the model is not told %q:\n%s", want, told.String())
				}
			}
		})
	}
}

func file(t *testing.T, cases int, change func(string) string) string {
	t.Helper()
	var out bytes.Buffer
	w, err := learning.NewWriter(&out, clock)
	for range cases {
		if err == nil {
			_, err = w.WriteCase(recorded())
		}
	}
	if err == nil {
		err = w.Close(learning.Counts{Cases: cases}, clock)
	}
	path := filepath.Join(t.TempDir(), "cases.jsonl")
	if err == nil {
		err = os.WriteFile(path, []byte(change(out.String())), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func whole(text string) string { return text }

func TestAFileRunsWithinItsLimits(t *testing.T) {
	answer := emulator.ResponderFunc(func(_ context.Context, req emulator.Request) (emulator.Reply, error) {
		return emulator.Reply{Text: "I say \x1b[31mC, and I could not send it. " + req.Messages[0].Content}, nil
	})
	prompt := filepath.Join(t.TempDir(), "prompt")
	if err := os.WriteFile(prompt, []byte("Another prompt."), 0o600); err != nil {
		t.Fatal(err)
	}
	priced, unknown := config(t, nil).DollarPrice, func(string) (budget.Price, bool) { return budget.Price{}, false }
	for name, test := range map[string]struct {
		change        func(string) string
		options       eval.Options
		money         func(string) (budget.Price, bool)
		out, progress []string
		failure       string
		requests      int
	}{
		"text": {
			change: whole, options: eval.Options{Limit: 2}, money: priced, requests: 2,
			out:      []string{"Case-a  👍 1 👎 2  “What does the plan say? Send it.”", "old-model", "tools    0 the same", `missing: read_doc {"path":"plan"}`, "no tools of this program: mcp_tool", "written meanwhile and not shown: 1", "was: [The plan says A, and I could not send it.]", "now: [I say [31mC,", "All 2 cases", "0 the same, 6 missing, 0 new", "answers  0 the same"},
			progress: []string{"2 cases with new-model, routing search: at most $1.00.", "case 2 of 2"},
		},
		"JSON":             {change: whole, options: eval.Options{JSON: true, Prompt: prompt, Limit: 9}, money: priced, requests: 3, out: []string{`{"id":"Case-a",`, "Another prompt.", `{"sum":{"cases":3,`}, progress: []string{"3 cases"}},
		"no price":         {change: whole, options: eval.Options{}, money: unknown, requests: 3, out: []string{"unknown"}, progress: []string{"at most 1,000,000 tokens, since no price of new-model is known", " tokens spent"}},
		"too dear":         {change: whole, options: eval.Options{Base: eval.Config{Budget: .028}}, money: priced, failure: "the cost limit is reached: $0.00 spent, 3 of 3 cases are not run", out: []string{"not run  3"}},
		"another version":  {change: func(s string) string { return strings.Replace(s, `"version":1`, `"version":7`, 1) }, money: priced, failure: "of version 7"},
		"a cut file":       {change: func(s string) string { return s[:len(s)-30] }, money: priced, failure: "line 5: the file is cut off"},
		"a wrong routing":  {change: whole, options: eval.Options{Routing: "somehow"}, money: priced, failure: `--routing "somehow" is none of`},
		"a missing prompt": {change: whole, options: eval.Options{Prompt: prompt + "2"}, money: priced, failure: "--prompt"},
		"no budget":        {change: whole, options: eval.Options{Base: eval.Config{Budget: -1}}, money: priced, failure: "--budget"},
	} {
		t.Run(name, func(t *testing.T) {
			model, requests := service(t, false, answer)
			var out, progress bytes.Buffer
			o := test.options
			budget := o.Base.Budget
			if o.Base = config(t, model); budget != 0 {
				o.Base.Budget = budget
			}
			if o.Routing == "" {
				o.Routing = "search"
			}
			o.Base.DollarPrice, o.Out, o.Progress = test.money, &out, &progress
			err := eval.RunFile(t.Context(), file(t, 3, test.change), o)
			if test.failure == "" && err != nil || test.failure != "" && (err == nil || !strings.Contains(err.Error(), test.failure)) {
				t.Errorf("got %v, want %q in it", err, test.failure)
			}
			for _, want := range test.out {
				if !strings.Contains(out.String(), want) {
					t.Errorf("%q is not printed:\n%s", want, out.String())
				}
			}
			for _, want := range test.progress {
				if !strings.Contains(progress.String(), want) {
					t.Errorf("%q is not told:\n%s", want, progress.String())
				}
			}
			if strings.Contains(out.String(), "\x1b") {
				t.Error("a terminal would obey what is printed")
			}
			if now := requests(); (now.input > 0) != (test.requests > 0) {
				t.Errorf("the model was asked for %d tokens", now.input)
			}
		})
	}
}

func TestAFailedCaseIsToldAndTheOthersRun(t *testing.T) {
	failed := emulator.Reply{Err: &emulator.Error{Status: 400, Type: "invalid_request_error", Message: "No."}}
	model, _ := service(t, false, emulator.NewScript(failed, emulator.Reply{Text: recorded().Answer()}))
	var out bytes.Buffer
	if err := eval.RunFile(t.Context(), file(t, 2, whole), eval.Options{Base: config(t, model), JSON: true, Out: &out, Progress: io.Discard}); err != nil {
		t.Fatal(err)
	}
	var first, second eval.Result
	var last struct{ Sum eval.Summary }
	printed := json.NewDecoder(&out)
	if err := errors.Join(printed.Decode(&first), printed.Decode(&second), printed.Decode(&last)); err != nil {
		t.Fatal(err)
	}
	if sum := last.Sum; sum.Failed != 1 || sum.SameAnswers != 1 || sum.Cases != 2 || first.Error == "" {
		t.Errorf("%+v, %+v", sum, first)
	}
	if !slices.Equal(second.Missing, []string{`read_doc {"path":"plan"}`, `send_doc {"path":"plan"}`, `mcp_tool {"path":"plan"}`}) {
		t.Errorf("missing %q", second.Missing)
	}
	p, err := eval.New(config(t, model))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Play(ctx, recorded()); !errors.Is(err, context.Canceled) {
		t.Errorf("a run that is ended says %v", err)
	}
}
