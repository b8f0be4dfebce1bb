package telemetry

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
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

// jobSpans are the spans of a job that have children: the message, and its turn.
type jobSpans struct{ message, turn trace.SpanContext }

// spansOf returns the spans of a job; false if the job is not traced or not sampled.
func (t *Tracer) spansOf(j *queue.Run) (jobSpans, bool) {
	fields := strings.Split(j.Trace.Parent, "-")
	if len(fields) != 4 || fields[3] != "01" {
		return jobSpans{}, false
	}
	id, bad := trace.TraceIDFromHex(fields[1])
	span, worse := trace.SpanIDFromHex(fields[2])
	if bad != nil || worse != nil {
		return jobSpans{}, false
	}
	message := trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: span, TraceFlags: trace.FlagsSampled, Remote: true})
	turn := sha256.Sum256([]byte("turn of " + fields[1] + fields[2]))
	return jobSpans{message, message.WithSpanID(trace.SpanID(turn[:8]))}, true
}

// QueueTracer returns the tracer for the bridge; nil if there is none.
func (t *Tracer) QueueTracer() queue.Tracer {
	if t == nil {
		return nil
	}
	return t
}

// isTraced reports whether a job is traced: messages, tasks and their results are, internal work is not.
func isTraced(j *queue.Run) bool { return receipts.IsUserMessage(j.Message) }

// Begin implements [queue.Tracer]. The ids are derived from the job, so that
// they survive even if an older program rewrites its record without them.
func (t *Tracer) Begin(j *queue.Run) {
	if !isTraced(j) || j.Trace.Parent != "" {
		return
	}
	sum := sha256.Sum256([]byte("trace of " + j.Key() + " " + j.Accepted.UTC().Format(time.RFC3339Nano)))
	c := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID(sum[:16]), SpanID: trace.SpanID(sum[16:24])})
	_, drawn := t.tracer.Start(withIDs(context.Background(), c), "message") // asks the sampler and is never ended
	flags := "00"
	if drawn.SpanContext().IsSampled() {
		flags = "01"
	}
	j.Trace.Parent = "00-" + hex.EncodeToString(sum[:16]) + "-" + hex.EncodeToString(sum[16:24]) + "-" + flags
}

// StartRun implements [queue.Tracer].
func (t *Tracer) StartRun(ctx context.Context, j *queue.Run) context.Context {
	t.Begin(j)
	r, ok := t.spansOf(j)
	if !ok {
		return ctx
	}
	now, since := t.cfg.Now(), j.WaitingSince
	switch first := j.Trace.TurnStarted.IsZero() && outbox.DeliveryOf(j).Parts == nil; {
	case first && !since.IsZero():
		t.recordLeaf(r.message, "accept", trace.SpanKindInternal, j.Accepted, since)
		t.recordLeaf(r.message, "wait", trace.SpanKindInternal, since, now, attribute.String("oneclaw.wait.for", "queue"))
	case first:
		t.recordLeaf(r.message, "wait", trace.SpanKindInternal, j.Accepted, now, attribute.String("oneclaw.wait.for", "queue"))
	case !since.IsZero():
		t.recordLeaf(r.message, "wait", trace.SpanKindInternal, since, now, attribute.String("oneclaw.wait.for", "approval"))
	}
	if j.HasSlot && j.Trace.TurnStarted.IsZero() {
		j.Trace.TurnStarted = now
	}
	t.spansByJob.Put(j.Key(), r, cache.Forever)
	return context.WithValue(ctx, spansKey{}, r)
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
	t.recordLeaf(r.turn, "execute_tool "+name, kind, began, t.cfg.Now(), append(about, errorType(failure)...)...)
}

// StartSend implements [queue.Tracer].
func (t *Tracer) StartSend(j *queue.Run, p *receipts.Part) func(error) {
	r, ok := t.spansOf(j)
	if !ok {
		return func(error) {}
	}
	began := t.cfg.Now()
	about := []attribute.KeyValue{
		attribute.String("oneclaw.platform", j.Message.Chat.Platform), attribute.Bool("oneclaw.part.file", p.File != nil),
		attribute.Bool("oneclaw.part.edit", p.ReplacesID != ""),
	}
	return func(err error) {
		t.recordLeaf(r.message, "deliver", trace.SpanKindClient, began, t.cfg.Now(), append(about, errorType(sendFailure(err))...)...)
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
	t.Begin(j)
	r, ok := t.spansOf(j)
	if !ok {
		return
	}
	command := strings.HasPrefix(strings.TrimSpace(j.Message.Text), "/")
	turn := j.Trace.TurnStarted
	if turn.IsZero() && j.Found && !command {
		turn = j.Closed // an earlier process may have begun the turn and recorded calls
	}
	if !turn.IsZero() {
		ended := j.Trace.AnsweredAt
		if ended.IsZero() {
			ended = j.Closed
		}
		t.recordSpan(withIDs(trace.ContextWithSpanContext(context.Background(), r.message), r.turn), "invoke_agent oneclaw", trace.SpanKindInternal, turn, ended,
			attribute.String("gen_ai.operation.name", "invoke_agent"), attribute.String("gen_ai.agent.name", "oneclaw"),
			attribute.Int("oneclaw.resumes", j.Resumes), attribute.Int("oneclaw.joined", len(j.Joined)))
	}
	name := "message"
	switch {
	case j.Message.Kind == receipts.KindResult, receipts.IsTask(j.Message):
		name = string(j.Message.Kind)
	case command:
		name = "command"
	}
	about := []attribute.KeyValue{
		attribute.String("oneclaw.platform", j.Message.Chat.Platform), attribute.Bool("oneclaw.direct", j.Message.Direct),
		attribute.String("oneclaw.state", string(j.State)), attribute.Int("oneclaw.parts", len(outbox.DeliveryOf(j).Parts)),
	}
	failure := ""
	if j.State == receipts.Failed {
		failure = string(j.State)
	}
	if j.Incident != "" {
		failure = "incident"
		about = append(about, attribute.String("oneclaw.incident", j.Incident))
	}
	t.recordSpan(withIDs(context.Background(), r.message), name, trace.SpanKindServer, j.Accepted, j.Closed, append(about, errorType(failure)...)...)
}

// recordLeaf records a span without children.
func (t *Tracer) recordLeaf(parent trace.SpanContext, name string, kind trace.SpanKind, began, ended time.Time, about ...attribute.KeyValue) {
	t.recordSpan(trace.ContextWithRemoteSpanContext(context.Background(), parent), name, kind, began, ended, about...)
}

// recordSpan records a completed span. One with an error.type is an error.
func (t *Tracer) recordSpan(ctx context.Context, name string, kind trace.SpanKind, began, ended time.Time, about ...attribute.KeyValue) {
	if ended.Before(began) {
		ended = began // the clock was set, or another machine's is slow
	}
	_, s := t.tracer.Start(ctx, name, trace.WithTimestamp(began), trace.WithSpanKind(kind), trace.WithAttributes(about...))
	for _, a := range about {
		if a.Key == errorKey {
			s.SetStatus(codes.Error, a.Value.AsString())
		}
	}
	s.End(trace.WithTimestamp(ended))
}

// errorKey is the attribute with the type of an error.
const errorKey = "error.type"

func errorType(failure string) []attribute.KeyValue {
	if failure == "" {
		return nil
	}
	return []attribute.KeyValue{attribute.String(errorKey, failure)}
}

type (
	spansKey struct{}
	idsKey   struct{}
)

// withIDs makes the next span use the given ids.
func withIDs(ctx context.Context, c trace.SpanContext) context.Context {
	return context.WithValue(ctx, idsKey{}, c)
}

// contextIDs implements sdk.IDGenerator: ids are those in the context, else random.
type contextIDs struct{}

// NewIDs returns the ids of a root span.
func (contextIDs) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if c, ok := ctx.Value(idsKey{}).(trace.SpanContext); ok {
		return c.TraceID(), c.SpanID()
	}
	var id trace.TraceID
	_, _ = rand.Read(id[:]) // never fails
	return id, randomSpanID()
}

// NewSpanID returns the id of a child span.
func (contextIDs) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	if c, ok := ctx.Value(idsKey{}).(trace.SpanContext); ok {
		return c.SpanID()
	}
	return randomSpanID()
}

func randomSpanID() (id trace.SpanID) {
	_, _ = rand.Read(id[:])
	return id
}
