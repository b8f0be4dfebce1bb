package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"oneclaw/internal/rescue"
	"oneclaw/toolgroups"
)

type job struct {
	call Call
	tool toolgroups.Tool
	// maybeBegun is set if an earlier run may have begun the call.
	maybeBegun bool
	// decision is that of the gate.
	decision Decision
}

func (j job) toolCall(scope toolgroups.Scope) toolgroups.Call {
	scope.Role = cmp.Or(j.decision.Role, scope.Role)
	scope.ReadOthers, scope.HoldsOthers, scope.Approved = j.decision.ReadOthers, j.decision.HoldsOthers, j.decision.ApprovedBy != ""
	return toolgroups.Call{ID: j.call.ID, Name: j.tool.Name, Arguments: json.RawMessage(j.call.EffectiveArguments()), Scope: scope}
}

// resolve obtains a result for each call of history[at] that has none.
func (r *run) resolve(ctx context.Context, at int) error {
	again := r.round == nil && !r.turn.Waited
	if r.spending == nil {
		r.spending = NewSpending(r.history)
	} else {
		r.spending.beginReply()
	}
	if r.round == nil {
		r.round = r.routeTools()
	}
	answers, jobs := r.triage(at)
	for i := range jobs {
		jobs[i].maybeBegun = again
	}
	first, last := make([]job, 0, len(jobs)), []job(nil)
	for _, j := range jobs {
		if j.tool.RunsLast {
			last = append(last, j)
		} else {
			first = append(first, j)
		}
	}
	if err := r.runAllowed(ctx, answers, first); err != nil {
		return err
	}
	return r.runAllowed(ctx, nil, last)
}

// runAllowed runs the jobs that the gate allows, after emitting answers and its refusals. It returns
// [ErrSuspended] if the gate left a call open.
func (r *run) runAllowed(ctx context.Context, answers []Message, jobs []job) error {
	answers, jobs, pending, err := r.applyGate(ctx, answers, jobs)
	if err != nil {
		return err
	}
	// Emit refusals first. If a group were loaded before them, a crash in between could make a refused
	// call runnable.
	for _, m := range answers {
		m.NotRun = !m.IsUnknownOutcome()
		if err := r.emit(m); err != nil {
			return err
		}
	}
	if err := r.runAll(ctx, jobs); err != nil {
		return err
	}
	if pending {
		return ErrSuspended
	}
	return nil
}

// triage checks all open calls, in order, before any of them runs. It returns results for the calls
// that cannot run, and jobs for the others.
func (r *run) triage(at int) (answers []Message, jobs []job) {
	m := r.history[at]
	x := pairCalls(r.history, at)
	b, isLast := countFailures(r.history), r.checkBounds() != nil
	r.round.NoteLoads(loadedBy(m.Calls), r.turn.Scope)
	for n, call := range m.Calls {
		switch {
		case x.results[n] >= 0:
			continue
		case x.started[n]:
			answers = append(answers, r.interruptedResult(call))
			continue
		case isLast:
			answers = append(answers, failure(call, CodeLastStep, "Not run: this was the last step of the turn."))
			continue
		case n >= maxCalls:
			answers = append(answers, failure(call, CodeTooMany, fmt.Sprintf(
				"Not run: a reply may make %d calls, this one made %d. Use a tool that takes many items in one call "+
					"where there is one, or make the remaining calls in your next reply.", maxCalls, len(m.Calls))))
			continue
		case m.Truncated && !json.Valid([]byte(call.Arguments)):
			answers = append(answers, failure(call, CodeTruncated,
				"Not run: your reply reached the output limit and the arguments were cut off. Make the call again with shorter arguments, or in several parts."))
			continue
		}
		call, tool, refused := r.lookup(call)
		if refused != nil {
			answer := b.refuse(call, refused)
			if r.round.IsOfOthers(call.EffectiveTool()) {
				answer.Origin = "" // it says what its parameters are
			}
			answers = append(answers, answer)
			continue
		}
		if answer, blocked := b.blockedResult(call); blocked {
			r.agent.log.Warn("call not run because it failed too often", "session", r.turn.Scope.Session, "tool", call.EffectiveTool())
			answers = append(answers, answer)
			continue
		}
		jobs = append(jobs, job{call: call, tool: tool})
	}
	return answers, jobs
}

// loadedBy returns the groups that calls load.
func loadedBy(calls []Call) (groups []string) {
	for _, call := range calls[:min(len(calls), maxCalls)] {
		if call.Name != toolgroups.LoadToolGroup {
			continue
		}
		if name, ok := toolgroups.ParseLoadArgument(json.RawMessage(call.Arguments)); ok {
			groups = append(groups, name)
		}
	}
	return groups
}

// interruptedResult returns the result of a call that was started and has none. A call that may run again
// is recorded as started only when it does, so it has been cut off twice.
func (r *run) interruptedResult(call Call) Message {
	_, tool, refused := r.lookup(call)
	switch {
	case refused == nil && tool.RunsAgain():
		return failure(call, CodeCrashed, TextCrashed)
	case refused == nil && tool.Paid:
		return failure(call, CodeInterrupted, textInterruptedPaid)
	}
	return failure(call, CodeInterrupted, TextInterrupted)
}

// input returns what the model has been shown until now.
func (r *run) input() Input {
	return Input{
		Prompt: r.systemPrompt(), PromptOthers: r.turn.PromptOthers, PromptShown: r.turn.PromptShown, PromptOutside: r.turn.PromptOutside,
		ToolsOfOthers: r.round != nil && r.round.HasOthers(), Messages: r.history, Incomplete: r.turn.Incomplete, Spending: r.spending,
	}
}

// applyGate asks the turn's gate about each job. It adds an answer for each refused call, and reports
// whether the gate left a call open.
func (r *run) applyGate(ctx context.Context, answers []Message, jobs []job) (all []Message, allowed []job, pending bool, err error) {
	if r.turn.Gate == nil {
		return answers, jobs, false, nil
	}
	input := r.input()
	for _, j := range jobs {
		d, err := r.turn.Gate(ctx, j.toolCall(r.turn.Scope), j.tool, input)
		if err != nil {
			return nil, nil, false, fmt.Errorf("agent: check approval of %s: %w", j.tool.Name, err)
		}
		switch d.Verdict {
		case Allow:
			j.decision = d
			allowed = append(allowed, j)
		case Pending:
			pending = true
		default:
			if d.Fault != nil {
				answers = append(answers, failure(j.call, d.Fault.Code, d.Fault.Message).of(d.Fault))
				continue
			}
			answers = append(answers, failure(j.call, CodeGated, "This call was not allowed: "+cmp.Or(d.Reason, "no reason was given")+
				". Do not repeat it; go on without it or tell the user."))
		}
	}
	return answers, allowed, pending, nil
}

// runAll runs tools in parallel and emits each result as its tool returns. Calls that load groups take
// no time and run in order, because the result of one depends on the loads before it. Read-only tools
// begin first; recordStart precedes each call. If a call that can be repeated may have been cut off, all
// calls run one by one, so that a call that crashes the program interrupts no other. When runAll returns,
// no tool is running.
func (r *run) runAll(ctx context.Context, jobs []job) error {
	slices.SortStableFunc(jobs, func(a, b job) int { return runOrder(a.tool) - runOrder(b.tool) })
	ctx, cancel := context.WithCancel(ctx)
	ended, work := make(chan Message, len(jobs)), make(chan func())
	running, parallel := 0, r.agent.parallel
	if slices.ContainsFunc(jobs, func(j job) bool { return j.maybeBegun && j.tool.RunsAgain() }) {
		parallel = 1
	}
	defer func() {
		cancel()
		for ; running > 0; running-- {
			<-ended
		}
	}()
	for next := 0; ; {
		for ; next < len(jobs) && running < parallel && ctx.Err() == nil; next++ {
			if err := r.recordStart(jobs[next]); err != nil {
				return err
			}
			running++
			run := func(ctx context.Context, j job) { ended <- r.runSafely(ctx, j) }
			if ctx, j := r.withQuestions(r.withProgress(ctx, jobs[next]), jobs[next], work), jobs[next]; j.tool.Name == toolgroups.LoadToolGroup {
				run(ctx, j)
			} else {
				go run(ctx, j)
			}
		}
		if running == 0 {
			break
		}
		var m Message
		select {
		case do := <-work:
			do()
			continue
		case m = <-ended:
		}
		running--
		// The effect of a cancelled call is unknown, so it gets no result and counts as interrupted.
		// Successful results are still recorded.
		if ctx.Err() != nil && m.Status != StatusOK {
			continue
		}
		if err := r.emitResult(ctx, m); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return fmt.Errorf("agent: %w", context.Cause(ctx))
	}
	return nil
}

// emitResult passes the result of a call to the turn's OnResult and emits it.
func (r *run) emitResult(ctx context.Context, m Message) error {
	if r.turn.OnResult != nil {
		if err := r.turn.OnResult(ctx, &m); err != nil {
			return fmt.Errorf("agent: process the result of %s: %w", m.Tool, err)
		}
	}
	return r.emit(m)
}

func runOrder(t toolgroups.Tool) int {
	if t.Effect == toolgroups.ReadOnly {
		return 0
	}
	return 1
}

// hasStart reports whether the start of a call is recorded: of one that must not run again, or of one that
// an earlier run may have begun.
func (j job) hasStart() bool { return !j.tool.RunsAgain() || j.maybeBegun }

// recordStart records that a call begins, if hasStart says so.
func (r *run) recordStart(j job) error {
	if !j.hasStart() {
		return nil
	}
	return r.emit(Message{
		Role: RoleStarted, CallID: j.call.ID, Tool: j.tool.Name, Hash: Hash(j.tool.Name, j.call.EffectiveArguments()), ApprovedBy: j.decision.ApprovedBy,
	})
}

// runSafely runs a tool and returns its result. A panic becomes an error result.
func (r *run) runSafely(ctx context.Context, j job) (m Message) {
	if err := rescue.Do(func() error { m = r.runOne(ctx, j); return nil }); err != nil {
		r.agent.log.Error("tool call panicked", "tool", j.tool.Name, "session", r.turn.Scope.Session, "err", err)
		m = failure(j.call, toolgroups.CodeExecution, "This call broke off because of an internal fault. Try something else.")
	}
	if !j.hasStart() {
		m.ApprovedBy = j.decision.ApprovedBy
	}
	return m
}

// runOne runs a tool and returns its result.
func (r *run) runOne(ctx context.Context, j job) Message {
	m := Message{Role: RoleTool, CallID: j.call.ID, Tool: j.tool.Name, Status: StatusOK, Origin: j.tool.Origin}
	if j.decision.Limit != nil {
		ctx = j.decision.Limit(ctx)
	}
	call := j.toolCall(r.turn.Scope)
	if size := r.contextSize(); isSmallContext(size) {
		call.TextLimit = size * resultShare / 100 * BytesPerToken
	}
	res, fault := toolgroups.Run(ctx, r.agent.log, r.withMasking(j.tool), call)
	if fault != nil {
		m.Status, m.Code, m.Text = StatusError, fault.Code, fault.Message
		m = m.of(fault)
	} else {
		m.Text, m.Files, m.Sources, m.Origin = res.Text, res.Files, res.Sources, cmp.Or(res.Origin, m.Origin)
		m.Announced, m.Read = res.Announced, res.Read
	}
	m.Spent, _ = r.spending.Of(j.call.ID)
	r.observe(Event{ToolEnded: &ToolEvent{Call: j.call.ID, Tool: j.tool.Name, Status: m.Status}})
	return m
}

// withQuestions returns a context that lets a call ask its user questions.
func (r *run) withQuestions(ctx context.Context, j job, work chan<- func()) context.Context {
	if r.turn.Ask == nil {
		return ctx
	}
	inTurn := func(do func() error) error {
		if ctx.Err() != nil {
			return fmt.Errorf("agent: %w", context.Cause(ctx))
		}
		done := make(chan error, 1)
		select {
		case work <- func() { done <- do() }:
			return <-done
		case <-ctx.Done():
			return fmt.Errorf("agent: %w", context.Cause(ctx))
		}
	}
	return toolgroups.WithAsker(ctx, func(ctx context.Context, q toolgroups.Question) (toolgroups.Answer, error) {
		return r.turn.Ask(ctx, j.toolCall(r.turn.Scope), q, inTurn)
	})
}

// withProgress reports the start of a call to the turn's observer, and returns a context that lets the
// tool report progress. Secrets are masked.
func (r *run) withProgress(ctx context.Context, j job) context.Context {
	if r.turn.Observe == nil {
		return ctx
	}
	told := ToolEvent{Call: j.call.ID, Tool: j.tool.Name}
	began := told
	began.Doing = toolgroups.DescribeCall(j.tool, json.RawMessage(j.call.EffectiveArguments()), r.turn.Redact)
	r.observe(Event{ToolBegan: &began})
	return toolgroups.WithReporter(ctx, func(text string) {
		if r.turn.Redact != nil {
			text = r.turn.Redact(text)
		}
		step := told
		step.Progress = toolgroups.Step(text)
		r.observe(Event{ToolProgress: &step})
	})
}
