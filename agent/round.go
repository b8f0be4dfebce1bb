package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"oneclaw/toolgroups"
)

// Texts of the agent to the model and to the user. A nudge is added to one request only, and is not part
// of the conversation.
const (
	nudgeAnswer = "Your last reply was empty. Answer the message above now, in words."
	nudgeLast   = "This is the last step of this turn. Answer now with what you have; no more tools will be run."
	// noteTruncated and noteFiltered are appended to an answer that was cut off.
	noteTruncated = "\n\n[The answer was cut off at the model's output limit.]"
	noteFiltered  = "\n\n[The provider's filter cut the answer off.]"
)

// Shares of the context, in percent. A request may fill requestShare; the rest is for the reply. The
// messages may use messageShare even if the tools leave less.
const (
	requestShare = 85
	messageShare = 25
)

// ask sends a request and emits the reply. done reports whether the reply was the answer.
func (r *run) ask(ctx context.Context) (done bool, err error) {
	if err := r.checkBounds(); err != nil {
		return false, err
	}
	if b := countFailures(r.history); b.loopRounds >= maxLoopRounds {
		return false, &ModelError{Kind: KindRounds, Err: fmt.Errorf("%d rounds in which all calls had failed too often", b.loopRounds)}
	}
	r.round = r.routeTools()
	if err := r.addToolNote(); err != nil {
		return false, err
	}
	if err := r.clearOldResults(); err != nil {
		return false, err
	}
	nudge := ""
	rounds, spent, last := r.countReplies()
	if rounds > 0 && (rounds == r.maxRounds()-1 || r.turn.MaxTokens > 0 && spent+2*last >= r.turn.MaxTokens) {
		nudge = nudgeLast
	}
	reply, err := r.complete(ctx, rounds+1, nudge)
	if err == nil && isEmpty(reply) {
		before := reply.Usage
		reply, err = r.complete(ctx, rounds+1, nudgeAnswer)
		reply.Usage = before.Plus(reply.Usage)
		if err == nil && isEmpty(reply) {
			err = &ModelError{Kind: KindUnavailable, Err: ErrNoAnswer}
		}
	}
	if err != nil {
		if ctx.Err() != nil {
			return false, fmt.Errorf("agent: %w", context.Cause(ctx))
		}
		return false, err
	}
	m := r.assistantMessage(reply)
	return m.Final, r.emit(m)
}

func (r *run) maxRounds() int { return cmp.Or(r.turn.MaxRounds, maxRounds) }

// checkBounds returns an error if the turn has no further reply: it has used its rounds or tokens.
func (r *run) checkBounds() error {
	rounds, spent, _ := r.countReplies()
	if rounds >= r.maxRounds() {
		return &ModelError{Kind: KindRounds, Err: fmt.Errorf("no answer after %d rounds", rounds)}
	}
	if r.turn.MaxTokens > 0 && spent >= r.turn.MaxTokens {
		return &ModelError{Kind: KindTokens, Err: fmt.Errorf("no answer within %d tokens", r.turn.MaxTokens)}
	}
	return nil
}

// countReplies returns the number of replies in this turn, their tokens, and those of the last one.
func (r *run) countReplies() (n, tokens, last int) {
	for i := turnStart(r.history) + 1; i < len(r.history); i++ {
		m := &r.history[i]
		if m.Role != RoleAssistant {
			continue
		}
		if n++; m.Usage != nil {
			last = m.Usage.Input + m.Usage.Output
			tokens += last
		}
	}
	return n, tokens, last
}

func isEmpty(r Reply) bool { return len(r.Calls) == 0 && strings.TrimSpace(r.Text) == "" }

// Plus returns the sum of two usages, with the tools of the second.
func (u Usage) Plus(v Usage) Usage {
	return Usage{
		Input: u.Input + v.Input, Cached: u.Cached + v.Cached, CacheWritten: u.CacheWritten + v.CacheWritten, CacheWrittenHour: u.CacheWrittenHour + v.CacheWrittenHour,
		Output: u.Output + v.Output, Tools: v.Tools,
	}
}

// complete sends one request, and retries with smaller windows if it overflows the model's context.
func (r *run) complete(ctx context.Context, round int, nudge string) (Reply, error) {
	req := Request{
		Messages:    r.window(nudge),
		Tools:       r.round.Tools(),
		ToolTokens:  r.round.Tokens(),
		AllTokens:   r.round.Registry().AllTokens(),
		CacheKey:    r.turn.CacheKey,
		CacheFor:    r.cacheFor(),
		Temperature: r.turn.Temperature,
		Effort:      r.turn.Effort,
	}
	if len(ShownPictures(req.Messages)) > 0 {
		req.ReadFile = r.turn.ReadFile
	}
	req.System = r.prompt(round, false)
	for halved := 0; ; halved++ {
		reply, err := r.sendRequest(ctx, req)
		var failure *ModelError
		if halved == 2 || !errors.As(err, &failure) || failure.Kind != KindOverflow {
			return reply, err
		}
		size := EstimateTokens(req.Messages)
		r.windowLimit = max(1, size/2)
		req.Messages = r.window(nudge)
		if EstimateTokens(req.Messages) >= size {
			return reply, err
		}
		req.System = r.prompt(round, true)
		r.agent.log.Warn("window halved because the model refused the request", "session", r.turn.Scope.Session,
			"before", size, "after", EstimateTokens(req.Messages))
	}
}

// systemPrompt returns the system prompt, the static part first so that it can be cached.
func (r *run) systemPrompt() string {
	prompt := toolgroups.JoinPrompt(r.turn.Prompt, r.round.Registry().Listing())
	return toolgroups.JoinPrompt(prompt, strings.TrimSpace(r.turn.PromptTail))
}

func (r *run) window(nudge string) []Message {
	messages, left := Window(r.history, r.budget())
	r.omitted = left
	if nudge != "" {
		messages = append(messages, Message{Role: RoleUser, Text: nudge})
	}
	return messages
}

// contextSize returns the size of the model's context in tokens; 0 if unknown.
func (r *run) contextSize() int {
	return cmp.Or(r.turn.ContextTokens, ProfileOf(r.model).ContextTokens)
}

// budget returns how many tokens the messages of a request may take; 0 means no bound.
func (r *run) budget() int {
	size := r.contextSize()
	if size == 0 {
		return r.windowLimit
	}
	room := max(size*requestShare/100-r.round.Tokens()-len(r.systemPrompt())/BytesPerToken, size*messageShare/100, 1)
	if r.windowLimit > 0 {
		room = min(room, r.windowLimit)
	}
	return room
}

func (r *run) sendRequest(ctx context.Context, req Request) (Reply, error) {
	var onDelta func(Delta)
	if r.turn.Observe != nil {
		names := make([]string, len(req.Tools))
		for i := range req.Tools {
			names[i] = req.Tools[i].Name
		}
		r.observe(Event{Request: &RequestEvent{
			Model: ProfileOf(r.model).Name, Routing: r.round.Mode(), Tools: names, Groups: r.turn.Set.Loaded(), ToolTokens: r.round.Tokens(),
			AllTokens: req.AllTokens, Messages: req.Messages,
		}})
		onDelta = func(d Delta) { r.observe(Event{Delta: &d}) }
	}
	reply, err := r.model.Complete(ctx, req, onDelta)
	told := ReplyEvent{Err: err, HasText: reply.Text != ""}
	if r.turn.Observe != nil {
		told.BeganInThought = beganInThought(reply.Text)
	}
	reply.Usage.Tools, reply.Text = r.round.Tokens(), VisibleText(reply.Text)
	r.observe(Event{Reply: &told})
	return reply, err
}

func (r *run) assistantMessage(reply Reply) Message {
	m := Message{
		Role: RoleAssistant, Text: r.redactReply(reply.Text), Reasoning: reply.Reasoning, Calls: r.unwrap(assignIDs(reply.Calls, r.history), reply.Truncated),
		Final: len(reply.Calls) == 0, Truncated: reply.Truncated, Usage: &reply.Usage, Model: reply.Model,
		Routing: r.round.Record(), CacheFor: r.cacheFor(),
	}
	switch {
	case m.Final && reply.Filtered:
		m.Text += noteFiltered
	case m.Final && m.Truncated:
		m.Text += noteTruncated
	}
	return m
}

// assignIDs gives each call without a unique id a new one. The new id of a call without an id occurs in
// no earlier message, because some servers require that.
func assignIDs(calls []Call, history []Message) []Call {
	calls = slices.Clone(calls)
	seen := make(map[string]bool, len(calls))
	if slices.ContainsFunc(calls, func(c Call) bool { return c.ID == "" }) {
		for i := range history {
			for _, c := range history[i].Calls {
				seen[c.ID] = true
			}
		}
	}
	for i := range calls {
		id := cmp.Or(calls[i].ID, fmt.Sprintf("call_%d", i))
		for n := 2; seen[id]; n++ {
			id = fmt.Sprintf("%s_%d", cmp.Or(calls[i].ID, "call"), n)
		}
		calls[i].ID = id
		seen[id] = true
	}
	return calls
}
