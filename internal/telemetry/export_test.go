package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"oneclaw/agent"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/internal/emulator/collector"
	"oneclaw/internal/redact"
)

// A secret as one that a person may write, and the collector's own.
const (
	written = "sk-" + "proj-Zq3vT8mWx1Lr5Kd9Bn7Yc2Hf6Gj4Ps0A"
	header  = "basic-credentials-of-the-collector"
)

// harness is a tracer with its collector and its log.
type harness struct {
	*Tracer

	collector *collector.Collector
	log       *bytes.Buffer
}

func newOffice(t *testing.T, texts bool, refuse int) *harness {
	t.Helper()
	o := &harness{collector: &collector.Collector{RefuseStatus: refuse, Authorization: "Basic " + header}, log: &bytes.Buffer{}}
	server := httptest.NewServer(o.collector)
	t.Cleanup(func() {
		server.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", strings.Replace(server.URL, "://", "://somebody:"+header+"@", 1))
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Basic%20"+header)
	o.Tracer = NewTraces(o.config(texts))
	return o
}

func (o *harness) config(texts bool) TracesConfig {
	known := redact.New()
	return TracesConfig{
		Version: "devel", IncludeTexts: texts, Redact: known, Now: time.Now, Logger: slog.New(slog.NewJSONHandler(known.Writer(o.log), nil)),
		Group: func(tool string) string {
			if tool == "files_look" {
				return "mcp:files"
			}
			return "core"
		},
	}
}

// answer follows one message with a call of a model and one of an MCP server to its end.
func (o *harness) answer(t testing.TB, text string) *queue.Run {
	t.Helper()
	j := &queue.Run{Job: queue.Job{Message: chats.Message{Chat: chats.Chat{Platform: "slack", ID: "C77"}, ID: "1.2", User: "U99", Kind: chats.KindText, Text: text}, Accepted: time.Now()}}
	j.WaitingSince, j.HasSlot = time.Now(), true
	ctx := o.StartRun(t.Context(), j)
	if c := trace.SpanContextFromContext(ctx); c.IsValid() {
		t.Errorf("a client that knows OpenTelemetry would pass on %v", c)
	}
	model := o.WrapModel(silent{}, "GEMINI", "m", func(u agent.Usage) (float64, bool) { return float64(u.Input) / 4, true })
	if _, err := model.Complete(ctx, agent.Request{Messages: []agent.Message{{Role: agent.RoleUser, Text: text}}}, nil); err != nil {
		t.Fatal(err)
	}
	watch := o.WrapObserver(j, func(agent.Event) {})
	watch(agent.Event{ToolBegan: &agent.ToolEvent{Call: "1", Tool: "files_look"}})
	watch(agent.Event{ToolEnded: &agent.ToolEvent{Call: "1", Tool: "files_look", Status: agent.StatusError}})
	outbox.DeliveryOf(j).Parts = []receipts.Part{{}}
	o.StartSend(j, &outbox.DeliveryOf(j).Parts[0])(&chats.SendError{Outcome: chats.Later, Err: errors.New("wait")})
	o.StartSend(j, &outbox.DeliveryOf(j).Parts[0])(nil)
	j.State, j.Closed = receipts.Done, time.Now()
	o.End(j)
	return j
}

// TestWhatATraceTells has a collector receive a message, without and with what was said.
func TestWhatATraceTells(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	for _, texts := range []bool{false, true} {
		o := newOffice(t, texts, 0)
		j := o.answer(t, "good morning "+written)
		o.WrapLogger(slog.New(slog.NewJSONHandler(o.log, nil))).Warn("part not sent yet", "job", j.Key())
		o.Close()
		spans := o.collector.Spans()
		if err := collector.CheckTrees(spans); err != nil || len(spans) != 8 {
			t.Fatalf("%d spans, %v: %s", len(spans), err, o.log)
		}
		byName := make(map[string]collector.Span)
		for _, s := range spans {
			byName[s.Name] = s
			data, err := json.Marshal(s)
			if err != nil || strings.Contains(string(data), written) || strings.Contains(string(data), "C77") || strings.Contains(string(data), "U99") {
				t.Errorf("%v; a span says too much: %s", err, data)
			}
			if said := strings.Contains(string(data), "good morning"); said != (texts && strings.HasPrefix(s.Name, "chat ")) {
				t.Errorf("texts %v: %s", texts, data)
			}
		}
		turn := byName["invoke_agent oneclaw"]
		for name, want := range map[string]map[string]string{
			"chat m": {
				"gen_ai.operation.name": "chat", "gen_ai.provider.name": "gcp.gemini", "gen_ai.request.model": "m", "gen_ai.response.model": "m-1",
				"gen_ai.usage.input_tokens": "10", "gen_ai.usage.output_tokens": "2", "gen_ai.usage.cache_read.input_tokens": "4", "oneclaw.cost.usd": "2.5",
			},
			"execute_tool files_look": {
				"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "files_look", "mcp.method.name": "tools/call", "oneclaw.mcp.server": "files", "error.type": "tool_error",
			},
			"message": {"oneclaw.platform": "slack", "oneclaw.state": "done"},
		} {
			s := byName[name]
			for key, value := range want {
				if s.Attributes[key] != value {
					t.Errorf("%s: %s is %q, want %q", name, key, s.Attributes[key], value)
				}
			}
			if s.ParentID != "" && s.ParentID != turn.ID || s.Resource["service.name"] != "oneclaw" {
				t.Errorf("%s hangs on %s of %s", name, s.ParentID, s.Resource)
			}
		}
		if !strings.Contains(o.log.String(), `"trace_id":"`+turn.TraceID+`","span_id":"`+byName["message"].ID) {
			t.Errorf("the log names no trace: %s", o.log)
		}
	}
}

// TestACollectorThatRefusesIsToldOfOnce shows that nothing of an answer waits for a collector,
// and that its credentials stay out of the log.
func TestACollectorThatRefusesIsToldOfOnce(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	o := newOffice(t, false, http.StatusForbidden)
	for range 3 {
		o.answer(t, "hello")
		if err := o.provider.ForceFlush(t.Context()); err != nil {
			t.Error(err)
		}
	}
	o.Close()
	if log := o.log.String(); strings.Count(log, "\n") != 1 || !strings.Contains(log, "traces cannot be exported") || strings.Contains(log, header) {
		t.Errorf("the log is %q", log)
	}
}

// TestNothingIsMadeUnlessACollectorIsNamed goes through the variables that decide that.
func TestNothingIsMadeUnlessACollectorIsNamed(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT"
	for _, c := range []struct {
		env  map[string]string
		told string
	}{
		{nil, ""},
		{map[string]string{endpoint: "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "TRUE"}, ""},
		{map[string]string{endpoint: "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"}, ""},
		{map[string]string{endpoint: "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "zipkin"}, "has to be otlp"},
		{map[string]string{endpoint: "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc"}, "has to be http/protobuf"},
		{map[string]string{endpoint: "collector:4318"}, "begins with http"},
	} {
		t.Run("", func(t *testing.T) {
			for name, value := range c.env {
				t.Setenv(name, value)
			}
			o := &harness{log: &bytes.Buffer{}}
			tracer := NewTraces(o.config(false))
			if tracer != nil || tracer.QueueTracer() != nil || !strings.Contains(o.log.String(), c.told) || c.told == "" && o.log.Len() > 0 {
				t.Errorf("%v: %v, %q", c.env, tracer, o.log)
			}
			tracer.Close()
			if log := slog.Default(); tracer.WrapLogger(log) != log || tracer.WrapModel(silent{}, "", "", nil) != (silent{}) {
				t.Error("a tracer that is none changes something")
			}
		})
	}
}

// TestWhatIsNotDrawnIsNotFollowed samples nothing.
func TestWhatIsNotDrawnIsNotFollowed(t *testing.T) {
	t.Setenv("OTEL_TRACES_SAMPLER", "always_off")
	o := newOffice(t, false, 0)
	o.answer(t, "hello")
	o.Close()
	if n := len(o.collector.Spans()); n > 0 {
		t.Errorf("%d spans", n)
	}
}

var _ agent.Model = silent{}

// BenchmarkMessage follows a message with a call of a model and a tool to its end, for a
// collector that takes nothing.
func BenchmarkMessage(b *testing.B) {
	b.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	o := &harness{log: &bytes.Buffer{}}
	o.Tracer = NewTraces(o.config(false))
	b.ReportAllocs()
	for b.Loop() {
		o.answer(b, "hello")
	}
}

type silent struct{}

func (silent) Complete(context.Context, agent.Request, func(agent.Delta)) (agent.Reply, error) {
	return agent.Reply{Text: "hi", Model: "m-1", Usage: agent.Usage{Input: 10, Cached: 4, Output: 2}}, nil
}

// Each process that works on a message has a trace of its own, and so has each run; the id of the job links them.
func TestEachRunOfAMessageIsATraceWithItsJob(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	o := newOffice(t, false, 0)
	j := &queue.Run{Job: queue.Job{Message: chats.Message{Chat: chats.Chat{Platform: "slack", ID: "C77"}, ID: "1.2", User: "U99", Kind: chats.KindText}, Accepted: time.Now()}}
	o.StartRun(t.Context(), j)
	j.State, j.WaitingSince = receipts.Waiting, time.Now()
	o.End(j)
	o.StartRun(t.Context(), j) // after the decision
	o.End(j)
	o.StartRun(t.Context(), &queue.Run{Job: j.Job, Found: true}) // after a restart
	j.State = receipts.Done
	o.End(j)
	o.End(j) // ends nothing twice
	o.Close()
	spans := o.collector.Spans()
	if err := collector.CheckTrees(spans); err != nil {
		t.Error(err)
	}
	traces, jobs, told := map[string]bool{}, map[string]bool{}, []string{}
	for _, s := range spans {
		traces[s.TraceID], jobs[s.Attributes["oneclaw.job"]] = true, true
		told = append(told, s.Name+" "+s.Attributes["oneclaw.state"]+s.Attributes["oneclaw.wait.for"])
	}
	slices.Sort(told)
	if want := []string{"message done", "message waiting", "message waiting", "wait approval", "wait queue"}; !slices.Equal(told, want) || len(traces) != 3 || len(jobs) != 1 {
		t.Errorf("%d traces of %d jobs tell %q, want %q", len(traces), len(jobs), told, want)
	}
}
