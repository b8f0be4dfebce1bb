package telemetry

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"oneclaw/agent"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/internal/cache"
)

// jobSpans are the spans of a run that have children: the run, and its turn, which is the run itself if it has
// none. They are in memory alone. All spans of all runs of a job have its id.
type jobSpans struct {
	job           attribute.KeyValue
	message, turn trace.Span
}

// QueueTracer returns the tracer for the bridge; nil if there is none.
func (t *Tracer) QueueTracer() queue.Tracer {
	if t == nil {
		return nil
	}
	return t
}

// spansOf returns the spans of a job's run; false if the job is not traced or not sampled.
func (t *Tracer) spansOf(j *queue.Run) (jobSpans, bool) {
	r, ok := t.spansByJob.Get(j.Key())
	return r, ok && r.message.IsRecording()
}

// StartRun implements [queue.Tracer]. Messages, tasks and their results are traced, internal work is not.
func (t *Tracer) StartRun(ctx context.Context, j *queue.Run) context.Context {
	if !receipts.IsUserMessage(j.Message) {
		return ctx
	}
	now, since, reason := t.cfg.Now(), j.WaitingSince, "queue"
	began := now // after a restart it is not known since when the job waits
	switch {
	case j.State == receipts.Waiting && !since.IsZero():
		began, reason = since, "approval"
	case !j.Found:
		began = j.Accepted
	}
	// With the time, because ids of chats alone could be guessed.
	r := jobSpans{job: attribute.String("oneclaw.job", queue.Hash(j.Key(), j.Accepted.UTC().Format(time.RFC3339Nano)))}
	r.message = t.start(r, nil, runName(j), trace.SpanKindServer, began)
	if !r.message.IsRecording() {
		return ctx
	}
	if began.Equal(j.Accepted) && !since.IsZero() {
		t.record(r, r.message, "accept", trace.SpanKindInternal, began, since)
		began = since
	}
	if began != now {
		t.record(r, r.message, "wait", trace.SpanKindInternal, began, now, attribute.String("oneclaw.wait.for", reason))
	}
	r.turn = r.message
	if j.HasSlot {
		r.turn = t.start(r, r.message, "invoke_agent oneclaw", trace.SpanKindInternal, now,
			attribute.String("gen_ai.operation.name", "invoke_agent"), attribute.String("gen_ai.agent.name", "oneclaw"))
	}
	t.spansByJob.Put(j.Key(), r, cache.Forever)
	return context.WithValue(ctx, spansKey{}, r)
}

func runName(j *queue.Run) string {
	switch {
	case j.Message.Kind == receipts.KindResult, receipts.IsTask(j.Message):
		return string(j.Message.Kind)
	case strings.HasPrefix(strings.TrimSpace(j.Message.Text), "/"):
		return "command"
	}
	return "message"
}

// WrapObserver implements [queue.Tracer].
func (t *Tracer) WrapObserver(j *queue.Run, observe func(agent.Event)) func(agent.Event) {
	r, ok := t.spansOf(j)
	if !ok {
		return observe
	}
	var mu sync.Mutex
	began := make(map[string]time.Time)
	return func(e agent.Event) {
		switch {
		case e.ToolBegan != nil:
			mu.Lock()
			began[e.ToolBegan.Call] = t.cfg.Now()
			mu.Unlock()
		case e.ToolEnded != nil:
			mu.Lock()
			at, ok := began[e.ToolEnded.Call]
			delete(began, e.ToolEnded.Call)
			mu.Unlock()
			if ok {
				t.recordTool(r, e.ToolEnded, at)
			}
		}
		observe(e)
	}
}

// recordTool records a tool call. For an MCP server the span
// also stands for its request, as the conventions allow.
func (t *Tracer) recordTool(r jobSpans, e *agent.ToolEvent, began time.Time) {
	name := t.cfg.Redact.Text(e.Tool)
	group := t.cfg.Redact.Text(t.cfg.Group(e.Tool))
	about := []attribute.KeyValue{
		attribute.String("gen_ai.operation.name", "execute_tool"), attribute.String("gen_ai.tool.name", name),
		attribute.String("gen_ai.tool.call.id", e.Call), attribute.String("gen_ai.tool.type", "function"),
		attribute.String("oneclaw.tool.group", group),
	}
	kind := trace.SpanKindInternal
	if server, is := strings.CutPrefix(group, "mcp:"); is {
		kind = trace.SpanKindClient
		about = append(about, attribute.String("mcp.method.name", "tools/call"), attribute.String("oneclaw.mcp.server", server))
	}
	failure := ""
	if e.Status == agent.StatusError {
		failure = "tool_error"
	}
	t.record(r, r.turn, "execute_tool "+name, kind, began, t.cfg.Now(), append(about, errorType(failure)...)...)
}

// StartSend implements [queue.Tracer].
func (t *Tracer) StartSend(j *queue.Run, p *receipts.Part) func(error) {
	r, ok := t.spansOf(j)
	if !ok {
		return func(error) {}
	}
	began := t.cfg.Now()
	if r.turn != r.message {
		r.turn.End(trace.WithTimestamp(began)) // the answer is ready
	}
	about := []attribute.KeyValue{
		attribute.String("oneclaw.platform", j.Message.Chat.Platform), attribute.Bool("oneclaw.part.file", p.File != nil),
		attribute.Bool("oneclaw.part.edit", p.ReplacesID != ""),
	}
	return func(err error) {
		t.record(r, r.message, "deliver", trace.SpanKindClient, began, t.cfg.Now(), append(about, errorType(sendFailure(err))...)...)
	}
}

// sendFailure returns why a part was not sent.
func sendFailure(err error) string {
	var failure *chats.SendError
	switch {
	case err == nil:
		return ""
	case !errors.As(err, &failure):
		return "interrupted"
	case failure.Outcome == chats.Refused:
		return "refused"
	case failure.Outcome == chats.Later:
		return "later"
	}
	return "unknown"
}

// End implements [queue.Tracer].
func (t *Tracer) End(j *queue.Run) {
	r, ok := t.spansOf(j)
	if !ok {
		return
	}
	now := trace.WithTimestamp(t.cfg.Now())
	if r.turn != r.message {
		r.turn.End(now)
	}
	failure := ""
	if j.State == receipts.Failed {
		failure = string(j.State)
	}
	if j.Incident != "" {
		failure = "incident"
		r.message.SetAttributes(attribute.String("oneclaw.incident", j.Incident))
	}
	setAttributes(r.message, append(errorType(failure),
		attribute.String("oneclaw.platform", j.Message.Chat.Platform), attribute.Bool("oneclaw.direct", j.Message.Direct),
		attribute.String("oneclaw.state", string(j.State)), attribute.Int("oneclaw.parts", len(outbox.DeliveryOf(j).Parts)),
		attribute.Int("oneclaw.resumes", j.Resumes), attribute.Int("oneclaw.joined", len(j.Joined)))...)
	r.message.End(now)
}

// start starts a span below a parent, which is nil for the first one of a trace.
func (t *Tracer) start(r jobSpans, parent trace.Span, name string, kind trace.SpanKind, began time.Time, about ...attribute.KeyValue) trace.Span {
	_, s := t.tracer.Start(trace.ContextWithSpan(context.Background(), parent), name, trace.WithTimestamp(began), trace.WithSpanKind(kind))
	setAttributes(s, append(about, r.job)...)
	return s
}

// record records a completed span.
func (t *Tracer) record(r jobSpans, parent trace.Span, name string, kind trace.SpanKind, began, ended time.Time, about ...attribute.KeyValue) {
	if ended.Before(began) {
		ended = began // the clock was set
	}
	t.start(r, parent, name, kind, began, about...).End(trace.WithTimestamp(ended))
}

// setAttributes adds attributes to a span. One with an error.type is an error.
func setAttributes(s trace.Span, about ...attribute.KeyValue) {
	s.SetAttributes(about...)
	for _, a := range about {
		if a.Key == errorKey {
			s.SetStatus(codes.Error, a.Value.AsString())
		}
	}
}

// errorKey is the attribute with the type of an error.
const errorKey = "error.type"

func errorType(failure string) []attribute.KeyValue {
	if failure == "" {
		return nil
	}
	return []attribute.KeyValue{attribute.String(errorKey, failure)}
}

// spansKey is the key of the [jobSpans] in the context of a run.
type spansKey struct{}
