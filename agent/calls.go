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
	// again says that an earlier run may have begun the call.
	again bool
}

func (j job) toolCall(scope toolgroups.Scope) toolgroups.Call {
	return toolgroups.Call{ID: j.call.ID, Name: j.tool.Name, Arguments: json.RawMessage(j.call.Arg()), Scope: scope}
}

// resolve gives each call of history[at] without a result one.
func (r *run) resolve(ctx context.Context, at int) error {
	again := r.round == nil
	if again {
		r.round = r.offer()
	}
	answers, jobs := r.triage(at)
	for i := range jobs {
		jobs[i].again = again
	}
	answers, jobs, pending, err := r.gate(ctx, answers, jobs)
	if err != nil {
		return err
	}
	// Refusals first: if a load of a group came before them, a crash in between could make a refused
	// call runnable.
	for _, m := range answers {
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

// triage checks all open calls, in their order, before any of them runs. It returns the results of those
// that cannot run, and the jobs of the others.
func (r *run) triage(at int) (answers []Message, jobs []job) {
	m := r.history[at]
	x := pair(r.history, at)
	b := tally(r.history)
	for n, call := range m.Calls {
		switch {
		case x.results[n] >= 0:
			continue
		case x.started[n]:
			answers = append(answers, r.interrupted(call))
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
			answers = append(answers, b.refuse(call, refused))
			continue
		}
		if answer, blocked := b.blocks(call); blocked {
			r.agent.log.Warn("call not run because it failed too often", "session", r.turn.Scope.Session, "tool", call.Runs())
			answers = append(answers, answer)
			continue
		}
		jobs = append(jobs, job{call: call, tool: tool})
	}
	return answers, jobs
}

// interrupted returns the result of a call that had been started. A call that only reads is recorded as
// started only when it runs again, so it has been cut off twice.
func (r *run) interrupted(call Call) Message {
	if _, tool, refused := r.lookup(call); refused == nil && tool.Effect == toolgroups.ReadOnly {
		return failure(call, CodeCrashed, TextCrashed)
	}
	return failure(call, CodeInterrupted, TextInterrupted)
}

func (r *run) gate(ctx context.Context, answers []Message, jobs []job) (all []Message, allowed []job, pending bool, err error) {
	if r.turn.Gate == nil {
		return answers, jobs, false, nil
	}
	for _, j := range jobs {
		d, err := r.turn.Gate(ctx, j.toolCall(r.turn.Scope), j.tool)
		if err != nil {
			return nil, nil, false, fmt.Errorf("agent: ask whether %s may run: %w", j.tool.Name, err)
		}
		switch d.Verdict {
		case Allow:
			allowed = append(allowed, j)
		case Pending:
			pending = true
		default:
			if d.Fault != nil {
				answers = append(answers, failure(j.call, d.Fault.Code, d.Fault.Message))
				continue
			}
			answers = append(answers, failure(j.call, CodeGated, "This call was not allowed: "+cmp.Or(d.Reason, "no reason was given")+
				". Do not repeat it; go on without it or tell the user."))
		}
	}
	return answers, allowed, pending, nil
}

// runAll runs tools in parallel and emits each result as its tool ends. Loads of groups take no time
// and run in their order: the answer of one depends on the loads before it. Tools that only read begin
// first; the start of any other is recorded before it runs. Reading tools that may have been cut off
// run one by one, so that one that crashes the program takes no other with it. When runAll returns, no
// tool is running.
func (r *run) runAll(ctx context.Context, jobs []job) error {
	slices.SortStableFunc(jobs, func(a, b job) int { return rank(a.tool) - rank(b.tool) })
	ctx, cancel := context.WithCancel(ctx)
	ended, work := make(chan Message, len(jobs)), make(chan func())
	running, parallel := 0, r.agent.parallel
	if slices.ContainsFunc(jobs, func(j job) bool { return j.again && j.tool.Effect == toolgroups.ReadOnly }) {
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
			if err := r.start(jobs[next]); err != nil {
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
		// The effect of a cancelled call is unknown, so it gets no result and counts as interrupted. A
		// success is recorded all the same.
		if ctx.Err() != nil && m.Status != StatusOK {
			continue
		}
		if err := r.settle(ctx, m); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return fmt.Errorf("agent: %w", context.Cause(ctx))
	}
	return nil
}

// settle emits the result of a call.
func (r *run) settle(ctx context.Context, m Message) error {
	if r.turn.Settle != nil {
		if err := r.turn.Settle(ctx, &m); err != nil {
			return fmt.Errorf("agent: settle the result of %s: %w", m.Tool, err)
		}
	}
	return r.emit(m)
}

func rank(t toolgroups.Tool) int {
	if t.Effect == toolgroups.ReadOnly {
		return 0
	}
	return 1
}

// start records that a call with effects begins, or that any call runs again.
func (r *run) start(j job) error {
	if j.tool.Effect == toolgroups.ReadOnly && !j.again {
		return nil
	}
	return r.emit(Message{Role: RoleStarted, CallID: j.call.ID, Tool: j.tool.Name, Hash: Hash(j.tool.Name, j.call.Arg())})
}

// runSafely runs a tool in a goroutine of its own. A panic becomes a result.
func (r *run) runSafely(ctx context.Context, j job) (m Message) {
	if err := rescue.Do(func() error { m = r.runOne(ctx, j); return nil }); err != nil {
		r.agent.log.Error("a call of a tool panicked", "tool", j.tool.Name, "session", r.turn.Scope.Session, "err", err)
		m = failure(j.call, toolgroups.CodeExecution, "This call broke off because of an internal fault. Try something else.")
	}
	return m
}

// runOne runs a tool and returns its result.
func (r *run) runOne(ctx context.Context, j job) Message {
	m := Message{Role: RoleTool, CallID: j.call.ID, Tool: j.tool.Name, Status: StatusOK}
	res, fault := toolgroups.Run(ctx, r.agent.log, r.masked(j.tool), j.toolCall(r.turn.Scope))
	if fault != nil {
		m.Status, m.Code, m.Text = StatusError, fault.Code, fault.Message
	} else {
		m.Text, m.Files, m.Sources = res.Text, res.Files, res.Sources
	}
	r.observe(Event{Ended: &ToolEvent{Call: j.call.ID, Tool: j.tool.Name, Status: m.Status}})
	return m
}

// withQuestions returns a context with which a call can question its user.
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

// withProgress reports the start of a call to the turn's observer, and returns a context with which its tool
// reports progress. Secrets are masked.
func (r *run) withProgress(ctx context.Context, j job) context.Context {
	if r.turn.Observe == nil {
		return ctx
	}
	told := ToolEvent{Call: j.call.ID, Tool: j.tool.Name}
	began := told
	began.Doing = toolgroups.Doing(j.tool, json.RawMessage(j.call.Arg()), r.turn.Redact)
	r.observe(Event{Began: &began})
	return toolgroups.WithReporter(ctx, func(text string) {
		if r.turn.Redact != nil {
			text = r.turn.Redact(text)
		}
		step := told
		step.Step = toolgroups.Step(text)
		r.observe(Event{Step: &step})
	})
}
