package main

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/redact"
	"oneclaw/toolgroups"
)

// office is a bridge with one job and a platform that does not receive.
type office struct{}

func (office) Load() bridge.Load {
	return bridge.Load{Open: 3, Waiting: 2, Oldest: time.Now().Add(-time.Hour)}
}

func (office) Ready() map[string]error {
	return map[string]error{"telegram": nil, "slack": errors.New("no socket")}
}

// shownBy returns what a page of metrics says.
func shownBy(t *testing.T, m *metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("%d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// everything counts one of each.
func everything(t *testing.T) *metrics {
	t.Helper()
	m := newMetrics(func(s string) string { return s })
	for _, what := range []bridge.Measured{
		bridge.MeasuredAccepted, bridge.MeasuredDelivered, bridge.MeasuredFailed, bridge.MeasuredRepeat, bridge.MeasuredRefused,
		bridge.MeasuredDelayed, bridge.MeasuredPutOff, bridge.MeasuredUnknown, bridge.MeasuredAsked, bridge.MeasuredAllowed,
		bridge.MeasuredDenied, bridge.MeasuredExpired,
	} {
		m.measure("telegram", what)
	}
	tools, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{})
	if err != nil {
		t.Fatal(err)
	}
	m.observe(tools, agent.Event{Reply: &agent.ReplyEvent{Err: fmt.Errorf("ask: %w", &agent.ModelError{Kind: agent.KindBudget, Err: errors.New("spent")})}})
	m.observe(tools, agent.Event{Ended: &agent.ToolEvent{Tool: "read_file", Status: agent.StatusOK}})
	m.count(t.Context(), "preset/m-1", time.Second, agent.Usage{Input: 10, Cached: 4, Output: 2}, nil)
	file := filepath.Join(t.TempDir(), "db")
	if err := os.WriteFile(file, make([]byte, 4096), 0o600); err != nil {
		t.Fatal(err)
	}
	m.watch(office{}, file, time.Now)
	return m
}

func TestM18MetricsHaveTheirNamesAndHelp(t *testing.T) {
	page := shownBy(t, everything(t))
	var got strings.Builder
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "# ") {
			got.WriteString(line)
		}
	}
	want, err := os.ReadFile(filepath.Join("testdata", "metrics.golden"))
	if err != nil || got.String() != string(want) {
		t.Errorf("%v; the names are:\n%s", err, got.String())
	}
	wantIn(t, page, `oneclaw_answers_total{outcome="failed",platform="telegram"} 1`, `oneclaw_send_problems_total{outcome="delayed",platform="telegram"} 1`,
		`oneclaw_approvals_decided_total{decision="expired",platform="telegram"} 1`, `oneclaw_budget_refusals_total 1`, `oneclaw_platform_ready{platform="slack"} 0`,
		`oneclaw_platform_ready{platform="telegram"} 1`, `oneclaw_jobs_open 3`, `oneclaw_jobs_waiting 2`, `oneclaw_database_size_bytes 4096`,
		`oneclaw_model_tokens_total{kind="cached",model="preset/m-1"} 4`, `oneclaw_oldest_job_age_seconds 36`)
}

func TestM18LabelsAreFewAndWithoutSecrets(t *testing.T) {
	secret := "gh" + "p_" + "q7Rv2LxN8mKd4TzB6wYc0PfHs3Jg5Ua9abcd"
	r := redact.New()
	m := newMetrics(r.Text)
	for i := range 10 * maxLabelValues {
		for _, name := range []string{secret, fmt.Sprint("model-", i), "bad\xff" + strings.Repeat("ü", 500)} {
			m.count(t.Context(), m.models.of(name), time.Second, agent.Usage{}, nil)
		}
	}
	page := shownBy(t, m)
	if strings.Contains(page, secret) {
		t.Errorf("the secret is shown: %s", page)
	}
	if n := strings.Count(page, "oneclaw_model_calls_total{"); n > maxLabelValues+1 || n < 10 {
		t.Errorf("%d models are told apart", n)
	}
	wantIn(t, page, `model="other"`)
}

func TestM18TheBotCountsWhatItDoes(t *testing.T) {
	w := newTown(t, openai.BrainFunc(func(_ context.Context, req openai.Request) (openai.Reply, error) {
		last := req.Messages[len(req.Messages)-1]
		// A question without an answer stands before the next one in the same message.
		switch {
		case last.Role == "user" && strings.HasSuffix(last.Content, "break"):
			return openai.Reply{Err: &openai.Error{Status: 400, Message: "refused"}}, nil
		case last.Role == "user" && strings.HasSuffix(last.Content, "read"):
			return openai.Reply{Calls: []openai.ToolCall{{ID: "1", Name: "read_file", Arguments: `{"path":"missing.txt"}`}}}, nil
		}
		return openai.Reply{Text: "done"}, nil
	}))
	address := freeAddress(t)
	w.env["ONECLAW_LISTEN"] = address
	bot := w.run()
	var people []int64
	for _, name := range []string{"Ann", "Ben", "Cleo"} {
		who := w.person(name)
		people = append(people, who)
		for _, text := range []string{"look it up: read", "break", "hello"} {
			w.ask(bot, who, text, nil)
		}
	}
	page := get(t, "http://"+address+"/metrics")
	wantIn(t, page, `oneclaw_messages_accepted_total{platform="telegram"} 9`, `oneclaw_tool_calls_total{group="core",outcome="error"} 3`,
		`outcome="ok"} 9`, `outcome="rejected"} 3`, `oneclaw_platform_ready{platform="telegram"} 1`, `oneclaw_build_info{`, `oneclaw_database_size_bytes `)
	// The last answer of each chat may be on the screen before it is counted.
	delivered := 0
	for n := 6; n <= 9; n++ {
		if strings.Contains(page, fmt.Sprintf("oneclaw_answers_total{outcome=\"delivered\",platform=\"telegram\"} %d\n", n)) {
			delivered = n
		}
	}
	if delivered == 0 {
		t.Errorf("answers are not counted:\n%s", page)
	}
	for line := range strings.SplitSeq(page, "\n") {
		labels, _, _ := strings.Cut(line, "}")
		for _, who := range people {
			if strings.Contains(labels, "{") && strings.Contains(labels, fmt.Sprint(who)) {
				t.Errorf("the id of a person is shown: %s", line)
			}
		}
	}
}
