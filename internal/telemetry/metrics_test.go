package telemetry

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
	"oneclaw/bridge/queue"
	"oneclaw/internal/redact"
	"oneclaw/toolgroups"
)

func wantIn(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in\n%s", part, text)
		}
	}
}

// metricsHarness is a bridge with one job and a platform that does not receive.
type metricsHarness struct{}

func (metricsHarness) QueueStats() queue.Stats {
	return queue.Stats{Open: 3, Waiting: 2, Oldest: time.Now().Add(-time.Hour)}
}

func (metricsHarness) PlatformErrors() map[string]error {
	return map[string]error{"telegram": nil, "slack": errors.New("no socket")}
}

func (metricsHarness) Replica() (string, int) { return "R1", 22 }

// shownBy returns what a page of metrics says.
func shownBy(t *testing.T, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("%d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// everything counts one of each.
func everything(t *testing.T) *Metrics {
	t.Helper()
	m := NewMetrics("devel", redact.New())
	for _, what := range measured {
		m.Measure("telegram", what)
	}
	tools, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{})
	if err != nil {
		t.Fatal(err)
	}
	m.Observe(tools, agent.Event{Reply: &agent.ReplyEvent{Err: fmt.Errorf("ask: %w", &agent.ModelError{Kind: agent.KindBudget, Err: errors.New("spent")})}})
	m.Observe(tools, agent.Event{ToolEnded: &agent.ToolEvent{Tool: "read_file", Status: agent.StatusOK}})
	m.Observe(tools, agent.Event{ToolEnded: &agent.ToolEvent{Tool: "read_file", Status: agent.StatusError}})
	m.recordCall(t.Context(), "preset/m-1", time.Second, agent.Usage{Input: 10, Cached: 4, Output: 2}, nil)
	m.RegisterGauges(metricsHarness{}, func(context.Context) (int64, error) { return 4096, nil }, time.Now)
	m.RegisterReplica(metricsHarness{}, "box-1")
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
		`oneclaw_approvals_decided_total{decision="expired",platform="telegram"} 1`, `oneclaw_opinions_total{opinion="withdrawn",platform="telegram"} 1`, `oneclaw_budget_refusals_total 1`, `oneclaw_platform_ready{platform="slack"} 0`,
		`oneclaw_platform_ready{platform="telegram"} 1`, `oneclaw_jobs_open 3`, `oneclaw_jobs_waiting 2`, `oneclaw_database_size_bytes 4096`,
		`oneclaw_replica_info{host="box-1",id="R1"} 1`, `oneclaw_leases_held 22`,
		`oneclaw_model_tokens_total{kind="cached",model="preset/m-1"} 4`, `oneclaw_oldest_job_age_seconds 36`)
}

// An alert on an increase sees the first event of a platform only where the counter was there before.
func TestCountersOfPlatformsBeginAtZero(t *testing.T) {
	m := NewMetrics("devel", redact.New())
	m.RegisterGauges(metricsHarness{}, func(context.Context) (int64, error) { return 0, nil }, time.Now)
	wantIn(t, shownBy(t, m), `oneclaw_answers_total{outcome="failed",platform="slack"} 0`, `oneclaw_approvals_decided_total{decision="expired",platform="telegram"} 0`,
		`oneclaw_approvals_asked_total{platform="telegram"} 0`, `oneclaw_send_problems_total{outcome="unknown",platform="slack"} 0`)
}

func TestM18LabelsAreFewAndWithoutSecrets(t *testing.T) {
	secret := "gh" + "p_" + "q7Rv2LxN8mKd4TzB6wYc0PfHs3Jg5Ua9abcd"
	m := NewMetrics("devel", redact.New())
	for i := range 10 * maxLabelValues {
		for _, name := range []string{secret, fmt.Sprint("model-", i), "bad\xff" + strings.Repeat("ü", 500)} {
			m.recordCall(t.Context(), m.models.labelFor(name), time.Second, agent.Usage{}, nil)
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
