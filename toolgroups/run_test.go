package toolgroups_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"oneclaw/toolgroups"
)

// tool is a tool named t that runs f.
func tool(f toolgroups.Handler) toolgroups.Tool {
	return toolgroups.Tool{Name: "t", Parameters: json.RawMessage(`{"type":"object","properties":{}}`), Run: f}
}

func answer(res toolgroups.Result, err error) toolgroups.Handler {
	return func(context.Context, toolgroups.Call) (toolgroups.Result, error) { return res, err }
}

func TestRunReturnsTextAndFiles(t *testing.T) {
	want := toolgroups.Result{Text: "done", Files: []toolgroups.File{{Path: "a.png"}}}
	got, fault := toolgroups.Run(t.Context(), nil, tool(answer(want, nil)), toolgroups.Call{})
	if fault != nil {
		t.Fatal(fault)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestRunReportsErrors(t *testing.T) {
	own := toolgroups.Errorf("file_not_found", "no such file")
	for name, tc := range map[string]struct {
		err           error
		code, message string
	}{
		"its own":        {own, "file_not_found", "no such file"},
		"its own, below": {fmt.Errorf("read: %w", own), "file_not_found", "no such file"},
		"another":        {errors.New("disk full"), "execution_error", "disk full"},
		"a deadline below, but not that of the run": {context.DeadlineExceeded, "execution_error", "context deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			_, fault := toolgroups.Run(t.Context(), nil, tool(answer(toolgroups.Result{}, tc.err)), toolgroups.Call{})
			wantFault(t, fault, tc.code, tc.message)
		})
	}
	var none *toolgroups.Error
	if _, fault := toolgroups.Run(t.Context(), nil, tool(answer(toolgroups.Result{}, none)), toolgroups.Call{}); fault != nil {
		t.Errorf("an *Error that is nil: %v", fault)
	}
}

func TestRunBoundsTime(t *testing.T) {
	wait := func(ctx context.Context, _ toolgroups.Call) (toolgroups.Result, error) {
		<-ctx.Done()
		return toolgroups.Result{}, ctx.Err()
	}
	for _, tc := range []struct {
		timeout time.Duration
		message string
	}{
		{0, "Tool 't' did not end within 30s."},
		{5 * time.Second, "Tool 't' did not end within 5s."},
	} {
		synctest.Test(t, func(t *testing.T) {
			slow := tool(wait)
			slow.Timeout = tc.timeout
			_, fault := toolgroups.Run(t.Context(), nil, slow, toolgroups.Call{})
			wantFault(t, fault, "timeout", tc.message)
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, fault := toolgroups.Run(ctx, nil, tool(wait), toolgroups.Call{})
	wantFault(t, fault, "cancelled", "Tool 't' was stopped before it ended.")
}

func TestRunRecoversPanics(t *testing.T) {
	var log bytes.Buffer
	crash := tool(func(context.Context, toolgroups.Call) (toolgroups.Result, error) { panic("secret detail") })
	for _, logger := range []*slog.Logger{nil, slog.New(slog.NewTextHandler(&log, nil))} {
		_, fault := toolgroups.Run(t.Context(), logger, crash, toolgroups.Call{})
		if fault == nil || fault.Code != "execution_error" || strings.Contains(fault.Message, "secret") {
			t.Fatalf("got %v", fault)
		}
		incident := regexp.MustCompile(`incident (\w+)`).FindStringSubmatch(fault.Message)
		if logger != nil && (incident == nil || !strings.Contains(log.String(), incident[1]) || !strings.Contains(log.String(), "run_test.go")) {
			t.Errorf("the log lacks the incident %v or the stack: %s", incident, log.String())
		}
	}
}

func TestRunChecksTheRole(t *testing.T) {
	guarded := tool(answer(toolgroups.TextResult("done")))
	guarded.Role = toolgroups.RoleAdmin
	if _, fault := toolgroups.Run(t.Context(), nil, guarded, toolgroups.Call{}); fault == nil || fault.Code != "permission_denied" {
		t.Errorf("got %v", fault)
	}
	if _, fault := toolgroups.Run(t.Context(), nil, guarded, toolgroups.Call{Scope: admin()}); fault != nil {
		t.Error(fault)
	}
}

func TestRunCutsText(t *testing.T) {
	const marker = "\n[cut: the first 30000 of 30001 characters]"
	for _, tc := range []struct{ in, want string }{
		{strings.Repeat("ü", 30_000), strings.Repeat("ü", 30_000)},
		{strings.Repeat("ü", 30_001), strings.Repeat("ü", 30_000) + marker},
		{"a\xffb", "a\uFFFDb"},
	} {
		got, fault := toolgroups.Run(t.Context(), nil, tool(answer(toolgroups.Result{Text: tc.in}, nil)), toolgroups.Call{})
		if fault != nil || got.Text != tc.want {
			t.Errorf("%d bytes became %d, %v", len(tc.in), len(got.Text), fault)
		}
		_, fault = toolgroups.Run(t.Context(), nil, tool(answer(toolgroups.Result{}, toolgroups.Errorf("x", "%s", tc.in))), toolgroups.Call{})
		wantFault(t, fault, "x", tc.want)
	}
}

func TestRunGivesRepairedArguments(t *testing.T) {
	echo := tool(func(_ context.Context, call toolgroups.Call) (toolgroups.Result, error) {
		return toolgroups.Result{Text: string(call.Arguments)}, nil
	})
	echo.Parameters = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)
	got, fault := toolgroups.Run(t.Context(), nil, echo, toolgroups.Call{Arguments: json.RawMessage(`{"n": "42",}`)})
	if fault != nil || got.Text != `{"n":42}` {
		t.Errorf("got %q, %v", got.Text, fault)
	}
	_, fault = toolgroups.Run(t.Context(), nil, echo, toolgroups.Call{})
	wantFault(t, fault, "validation_error",
		`Invalid arguments for 't': required parameter 'n' is missing. Its parameters: `+string(echo.Parameters))
	echo.ChecksArguments = true
	got, fault = toolgroups.Run(t.Context(), nil, echo, toolgroups.Call{Arguments: json.RawMessage(`{"n": "42",}`)})
	if fault != nil || got.Text != `{"n": "42",}` {
		t.Errorf("own arguments: %q, %v", got.Text, fault)
	}
}

func TestTyped(t *testing.T) {
	type in struct {
		Path  string `json:"path"`
		Count int    `json:"count"`
	}
	handler := toolgroups.TypedHandler(func(_ context.Context, call toolgroups.Call, in in) (toolgroups.Result, error) {
		return toolgroups.TextResult("%s %s %d", call.Name, in.Path, in.Count)
	})
	for _, tc := range []struct{ args, want, fault string }{
		{`{"path":"a","count":2,"more":[]}`, "t a 2", ""},
		{``, "t  0", ""},
		{`{"count":1.5}`, "", "Invalid arguments for 't': 'count' cannot be a number 1.5"},
		{`{`, "", "Invalid arguments for 't': they do not fit its parameters"},
	} {
		got, err := handler(t.Context(), toolgroups.Call{Name: "t", Arguments: json.RawMessage(tc.args)})
		message := ""
		if fault, ok := errors.AsType[*toolgroups.Error](err); ok {
			message = fault.Message
		}
		if got.Text != tc.want || message != tc.fault {
			t.Errorf("%s: %q, %v", tc.args, got.Text, err)
		}
	}
}

// A result is cut to what a model with a small context can take.
func TestTextLimitOfAScope(t *testing.T) {
	for limit, want := range map[int]int{0: toolgroups.MaxText, 500: 500} {
		tool := fake("long")
		tool.Run = func(context.Context, toolgroups.Call) (toolgroups.Result, error) {
			return toolgroups.Result{Text: strings.Repeat("ü", 40_000)}, nil
		}
		res, fault := toolgroups.Run(t.Context(), nil, tool, toolgroups.Call{Arguments: []byte(`{}`), Scope: toolgroups.Scope{TextLimit: limit}})
		if fault != nil || strings.Count(res.Text, "ü") != want || !strings.HasSuffix(res.Text, fmt.Sprintf("\n[cut: the first %d of 40000 characters]", want)) {
			t.Errorf("limit %d: %d characters, %v", limit, strings.Count(res.Text, "ü"), fault)
		}
	}
}
