package telemetry

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"oneclaw/agent"
	"oneclaw/internal/wording"
)

// WrapModel returns a model whose calls are traced, with the type of its provider and its name
// there. cost returns the dollars of a call, if known. A nil tracer returns the model itself.
func (t *Tracer) WrapModel(inner agent.Model, provider, name string, cost func(agent.Usage) (dollars float64, known bool)) agent.Model {
	if t == nil {
		return inner
	}
	return &tracedModel{Model: inner, tracer: t, provider: providerName(provider), name: t.cfg.Redact.Text(name), cost: cost}
}

type tracedModel struct {
	agent.Model

	tracer         *Tracer
	provider, name string
	cost           func(agent.Usage) (float64, bool)
}

// providerName returns the OpenTelemetry name of the provider.
func providerName(provider string) string {
	if provider = strings.ToLower(provider); provider == "gemini" {
		return "gcp.gemini"
	}
	return provider
}

// Profile returns the profile of the model.
func (m *tracedModel) Profile() agent.Profile { return agent.ProfileOf(m.Model) }

// Complete implements agent.Model.
func (m *tracedModel) Complete(ctx context.Context, req agent.Request, onDelta func(agent.Delta)) (agent.Reply, error) {
	r, ok := ctx.Value(spansKey{}).(jobSpans)
	if !ok {
		return m.Model.Complete(ctx, req, onDelta)
	}
	began := m.tracer.cfg.Now()
	var first atomic.Int64
	watch := onDelta
	if onDelta != nil {
		watch = func(d agent.Delta) {
			if first.Load() == 0 {
				first.Store(int64(m.tracer.cfg.Now().Sub(began)))
			}
			onDelta(d)
		}
	}
	reply, err := m.Model.Complete(ctx, req, watch)
	about := []attribute.KeyValue{
		attribute.String("gen_ai.operation.name", "chat"), attribute.String("gen_ai.provider.name", m.provider),
		attribute.String("gen_ai.request.model", m.name), attribute.Bool("gen_ai.request.stream", onDelta != nil),
		attribute.Int("oneclaw.request.tools", len(req.Tools)), attribute.Int("oneclaw.request.tool_tokens", req.ToolTokens),
	}
	if waited := time.Duration(first.Load()); waited > 0 {
		about = append(about, attribute.Float64("gen_ai.response.time_to_first_chunk", waited.Seconds()))
	}
	if err == nil {
		about = append(about, m.replyAttributes(reply)...)
	}
	if m.tracer.cfg.IncludeTexts {
		about = append(about, m.tracer.messageAttributes(req, reply, err == nil)...)
	}
	m.tracer.record(r, r.turn, "chat "+m.name, trace.SpanKindClient, began, m.tracer.cfg.Now(), append(about, errorType(failureType(ctx, err))...)...)
	return reply, err
}

// replyAttributes returns attributes of a reply and its cost.
func (m *tracedModel) replyAttributes(reply agent.Reply) []attribute.KeyValue {
	u, reason := reply.Usage, "stop"
	switch {
	case reply.Filtered:
		reason = "content_filter"
	case reply.Truncated:
		reason = "length"
	case len(reply.Calls) > 0:
		reason = "tool_call"
	}
	about := []attribute.KeyValue{
		attribute.StringSlice("gen_ai.response.finish_reasons", []string{reason}),
		attribute.Int("gen_ai.usage.input_tokens", u.Input), attribute.Int("gen_ai.usage.output_tokens", u.Output),
		attribute.Int("gen_ai.usage.cache_read.input_tokens", u.Cached), attribute.Int("gen_ai.usage.cache_creation.input_tokens", u.CacheWritten),
	}
	if reply.Model != "" {
		about = append(about, attribute.String("gen_ai.response.model", m.tracer.cfg.Redact.Text(reply.Model)))
	}
	if dollars, known := m.cost(u); known {
		about = append(about, attribute.Float64("oneclaw.cost.usd", dollars))
	}
	return about
}

// failureType returns the error type of a call.
func failureType(ctx context.Context, err error) string {
	var failure *agent.ModelError
	switch {
	case err == nil:
		return ""
	case ctx.Err() != nil:
		return "canceled"
	case errors.As(err, &failure):
		return string(failure.Kind)
	}
	return "error"
}

const (
	// maxText bounds a text in a span, in characters, and maxTexts their number.
	maxText  = 2000
	maxTexts = 8
)

type (
	// spanMessage is a message in the format of the conventions.
	spanMessage struct {
		Role  string `json:"role"`
		Parts []part `json:"parts"`
	}
	part struct {
		Type      string `json:"type"`
		ID        string `json:"id,omitempty"`
		Name      string `json:"name,omitempty"`
		Content   string `json:"content,omitempty"`
		Arguments string `json:"arguments,omitempty"`
		Response  string `json:"response,omitempty"`
	}
)

// messageAttributes returns the new messages of a request, and its reply.
func (t *Tracer) messageAttributes(req agent.Request, reply agent.Reply, replied bool) []attribute.KeyValue {
	var fresh []spanMessage
	for i := len(req.Messages) - 1; i >= 0 && len(fresh) < maxTexts; i-- {
		m := &req.Messages[i]
		if m.Role == agent.RoleAssistant {
			break
		}
		p := part{Type: "text", Content: t.maskAndClip(m.Text)}
		if m.Role == agent.RoleTool {
			p = part{Type: "tool_call_response", ID: m.CallID, Response: t.maskAndClip(m.Text)}
		}
		fresh = append(fresh, spanMessage{string(m.Role), []part{p}})
	}
	slices.Reverse(fresh)
	about := []attribute.KeyValue{attribute.String("gen_ai.input.messages", encodeMessages(fresh))}
	if !replied {
		return about
	}
	answer := spanMessage{Role: "assistant"}
	if reply.Text != "" {
		answer.Parts = append(answer.Parts, part{Type: "text", Content: t.maskAndClip(reply.Text)})
	}
	for _, c := range reply.Calls[:min(len(reply.Calls), maxTexts)] {
		answer.Parts = append(answer.Parts, part{Type: "tool_call", ID: c.ID, Name: t.maskAndClip(c.Name), Arguments: t.maskAndClip(c.Arguments)})
	}
	return append(about, attribute.String("gen_ai.output.messages", encodeMessages([]spanMessage{answer})))
}

// maskAndClip masks secrets in a text and cuts it. It masks first, so that no part of a secret stays.
func (t *Tracer) maskAndClip(text string) string {
	begin, _ := wording.SplitAt(strings.ToValidUTF8(t.cfg.Redact.Text(text), "?"), maxText)
	return begin
}

func encodeMessages(messages []spanMessage) string {
	data, _ := json.Marshal(messages) // only strings
	return string(data)
}
