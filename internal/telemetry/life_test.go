package telemetry

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"pgregory.net/rapid"

	"oneclaw/agent"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/internal/emulator/collector"
	"oneclaw/internal/redact"
)

// exported keeps what was exported, as a collector would, and loses what is in its queue when
// its process is killed.
type exported struct{ queue, sent []collector.Span }

func (o *exported) ExportSpans(_ context.Context, spans []sdk.ReadOnlySpan) error {
	for _, s := range spans {
		parent := ""
		if s.Parent().IsValid() {
			parent = s.Parent().SpanID().String()
		}
		c := s.SpanContext()
		o.queue = append(o.queue, collector.Span{TraceID: c.TraceID().String(), ID: c.SpanID().String(), ParentID: parent, Name: s.Name()})
	}
	return nil
}

func (o *exported) Shutdown(context.Context) error { return nil }

func (o *exported) flush() { o.sent, o.queue = append(o.sent, o.queue...), nil }

// process is one life of a program that follows jobs.
type process struct {
	*Tracer

	t *rapid.T
	// killed ends it at a step that was drawn.
	killed int
}

// step does something, unless the process was killed before, and then perhaps exports.
func (p *process) step(out *exported, do func()) {
	if p.killed--; p.killed < 0 {
		return
	}
	if do(); rapid.Bool().Draw(p.t, "export") {
		out.flush()
	}
}

// live brings a job as far as the process lives. Disk is its record.
func (p *process) live(out *exported, disk *[]byte, found bool) (closed bool) {
	ok := p.WrapModel(silent{}, "OPENAI", "m", func(agent.Usage) (float64, bool) { return 0, false })
	var j queue.Run
	if err := json.Unmarshal(*disk, &j.Job); err != nil {
		p.t.Fatal(err)
	}
	write := func() {
		data, err := json.Marshal(&j.Job)
		if err != nil {
			p.t.Fatal(err)
		}
		*disk = data
	}
	j.Found, j.HasSlot = found, outbox.DeliveryOf(&j).Parts == nil
	ctx := p.t.Context()
	stopped := rapid.Bool().Draw(p.t, "stopped") // before it ran here
	if !stopped {
		p.step(out, func() { ctx = p.StartRun(ctx, &j) })
	}
	for range rapid.IntRange(0, 3).Draw(p.t, "rounds") {
		if stopped || outbox.DeliveryOf(&j).Parts != nil {
			break
		}
		p.step(out, func() { _, _ = ok.Complete(ctx, agent.Request{}, nil) })
		p.step(out, func() { j.Resumes++; write() })
		watch := p.WrapObserver(&j, func(agent.Event) {})
		watch(agent.Event{ToolBegan: &agent.ToolEvent{Call: "1", Tool: "look"}})
		p.step(out, func() { watch(agent.Event{ToolEnded: &agent.ToolEvent{Call: "1", Tool: "look"}}) })
	}
	if !stopped && outbox.DeliveryOf(&j).Parts == nil {
		p.step(out, func() { j.Trace.AnsweredAt = p.cfg.Now(); outbox.DeliveryOf(&j).Parts = []receipts.Part{{}}; write() })
	}
	for i := range outbox.DeliveryOf(&j).Parts {
		p.step(out, func() { p.StartSend(&j, &outbox.DeliveryOf(&j).Parts[i])(nil) })
	}
	p.step(out, func() { j.State, j.Closed, closed = receipts.Done, p.cfg.Now(), true; p.End(&j) })
	return closed
}

// TestATraceIsOneTreeWhoeverIsKilled has processes work on a message one after another. Each is
// killed somewhere and loses what it had not exported; the last one closes the message.
func TestATraceIsOneTreeWhoeverIsKilled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		out, clock := &exported{}, time.Unix(1_700_000_000, 0)
		now := func() time.Time { clock = clock.Add(time.Second); return clock }
		j := queue.Run{Job: queue.Job{Message: chats.Message{Chat: chats.Chat{Platform: "telegram", ID: "7"}, ID: "1", Kind: chats.KindText, User: "7", Text: "hello"}, Accepted: now()}}
		life := func(killed int) *process {
			tracer := newTracer(TracesConfig{Now: now, Redact: redact.New(), Group: func(string) string { return "core" }}, sdk.WithSyncer(out))
			return &process{Tracer: tracer, t: t, killed: killed}
		}
		if rapid.Bool().Draw(t, "knows traces") { // else nothing was traced when it was accepted
			life(0).Begin(&j)
		}
		disk, err := json.Marshal(&j.Job)
		if err != nil {
			t.Fatal(err)
		}
		for closed, lives := false, 0; !closed; lives++ {
			p := life(1000)
			if lives < 5 {
				p.killed = rapid.IntRange(0, 12).Draw(t, "killed at")
			}
			closed = p.live(out, &disk, lives > 0)
			if closed {
				out.flush() // a kill between the receipt and its export loses the root
			}
			out.queue = nil
		}
		if err := collector.CheckTrees(out.sent); err != nil {
			t.Fatalf("%v in %s", err, fmt.Sprint(out.sent))
		}
	})
}

type silent struct{}

func (silent) Complete(context.Context, agent.Request, func(agent.Delta)) (agent.Reply, error) {
	return agent.Reply{Text: "hi", Model: "m-1", Usage: agent.Usage{Input: 10, Cached: 4, Output: 2}}, nil
}
