package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

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
	var held, read bool
	if r.turn.NoteShown != nil {
		held, read = r.turn.NoteShown(r.input())
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
	if r.turn.OnReply != nil {
		r.turn.OnReply(reply)
	}
	m := r.assistantMessage(reply)
	if m.ReadOthers = read; held {
		m.Origin = toolgroups.OriginComputed
	}
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

// maxHalved bounds how often the window of a refused request is halved.
const maxHalved = 2

// complete sends one request. If it overflows the model's context, or may do so, it retries with smaller
// windows. If it is rejected for another reason, it retries without the groups of tools, the last one first: one
// tool that a server does not accept must not silence the chat.
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
	leftOut := r.withoutRefusedGroups(&req)
	req.System = r.prompt()
	tried, isSmaller := "", false
	for halved := 0; ; {
		reply, err := r.sendRequest(ctx, req)
		var failure *ModelError
		if err == nil {
			r.rememberRefused(tried)
		}
		if err == nil || !errors.As(err, &failure) {
			r.reportCut(round, isSmaller)
			reply.LeftOut = append(leftOut, reply.LeftOut...)
			return reply, err
		}
		group := lastGroup(req.Tools)
		if halved < maxHalved && r.mayOverflow(failure, &req) && (group == "" || !failure.AboutTools) && r.halve(&req, nudge) {
			halved, isSmaller = halved+1, true
			req.System = r.prompt()
			continue
		}
		if failure.Kind != KindRejected {
			r.reportCut(round, isSmaller)
		}
		if group == "" || !mayRefuseTools(failure) {
			return reply, err
		}
		if isSmaller { // the size was not the cause
			halved, isSmaller, r.windowLimit = maxHalved, false, 0
			req.Messages = r.window(nudge)
			req.System = r.prompt()
		}
		r.agent.log.Warn("request refused, retrying without a group of tools", "session", r.turn.Scope.Session, "group", group, "err", err)
		tried = group
		leftOut = append(leftOut, dropGroup(&req, group)...)
	}
}

// halve halves the window of a request. It returns false if that leaves nothing out.
func (r *run) halve(req *Request, nudge string) bool {
	size := EstimateTokens(req.Messages)
	r.windowLimit = max(1, size/2)
	req.Messages = r.window(nudge)
	if EstimateTokens(req.Messages) >= size {
		return false
	}
	r.agent.log.Warn("window halved because the model refused the request", "session", r.turn.Scope.Session,
		"before", size, "after", EstimateTokens(req.Messages))
	return true
}

// guessedContext is the context size of a model of which none is known: Ollama's default.
const guessedContext = 4096

// mayOverflow reports whether a request may have been refused because it is too large. Servers say so in many
// words, but a request that takes half of the context, or more, is what they say it about.
func (r *run) mayOverflow(failure *ModelError, req *Request) bool {
	if failure.Kind == KindOverflow {
		return true
	}
	return mayRefuseTools(failure) &&
		2*req.EstimateTokens() >= cmp.Or(r.contextSize(), guessedContext)
}

// mayRefuseTools reports whether a request may have been refused for one of its tools.
func mayRefuseTools(failure *ModelError) bool {
	return failure.Kind == KindRejected && !failure.Filtered && !isMisdirected(failure)
}

// isMisdirected reports whether a request was refused for the model's name or the address.
func isMisdirected(failure *ModelError) bool { return failure.Status == 404 || failure.Status == 405 }

// lastGroup returns the last group that has tools in an array; "" if none has.
func lastGroup(tools []toolgroups.Tool) string {
	for i := range slices.Backward(tools) {
		if tools[i].Group != "" {
			return tools[i].Group
		}
	}
	return ""
}

// dropGroup removes the tools of a group from a request, and returns their names.
func dropGroup(req *Request, group string) (names []string) {
	var kept []toolgroups.Tool
	for i := range req.Tools {
		if req.Tools[i].Group == group {
			names = append(names, req.Tools[i].Name)
		} else {
			kept = append(kept, req.Tools[i])
		}
	}
	req.Tools = kept
	return names
}

// refusedFor is how long a group is left out of requests to a model that accepted a request only without it.
const refusedFor = time.Hour

// rememberRefused remembers that a model accepted a request only without a group; "" for none.
func (r *run) rememberRefused(group string) {
	if group != "" {
		r.agent.refused.Put(ProfileOf(r.model).Name+"\n"+group, struct{}{}, refusedFor)
	}
}

// withoutRefusedGroups removes the groups that the model's server does not accept, and returns the names of
// their tools.
func (r *run) withoutRefusedGroups(req *Request) (names []string) {
	if r.agent.refused.Len() == 0 {
		return nil
	}
	model := ProfileOf(r.model).Name
	for _, tool := range r.round.Tools() {
		if tool.Group != "" && r.agent.refused.Has(model+"\n"+tool.Group) {
			names = append(names, dropGroup(req, tool.Group)...)
		}
	}
	return names
}

// systemPrompt returns the system prompt, the static part first so that it can be cached.
func (r *run) systemPrompt() string {
	prompt := toolgroups.JoinPrompt(r.turn.Prompt, r.round.Listing())
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
	if thought := thoughtIn(reply.Text); thought != "" && reply.Reasoning == "" {
		reply.Reasoning = r.packThought(thought)
	}
	if len(reply.Calls) == 0 && err == nil {
		reply.Calls, reply.Text = callsInText(reply.Text, req.Tools)
		reply.CallsInText = len(reply.Calls) > 0
	}
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
		Routing: r.round.Mode(), CacheFor: r.cacheFor(),
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
