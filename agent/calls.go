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
	// again is set where an earlier run may have begun the call.
	again bool
}

func (j job) toolCall(scope toolgroups.Scope) toolgroups.Call {
	return toolgroups.Call{ID: j.call.ID, Name: j.tool.Name, Arguments: json.RawMessage(j.call.Arg()), Scope: scope}
}

// resolve brings the calls of history[at] to the results that they lack.
func (r *run) resolve(ctx context.Context, at int) error {
	again := r.round == nil
	if again {
		r.round = r.offer()
	}
	answers, jobs := r.sort(at)
	for i := range jobs {
		jobs[i].again = again
	}
	answers, jobs, pending, err := r.gate(ctx, answers, jobs)
	if err != nil {
		return err
	}
	// Refusals first: a load that ends before them must not, after a crash, make
	// callable what was refused.
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

// sort looks all open calls up, in their order, before any of them runs. It
// returns the results of those that cannot run, and those that can.
func (r *run) sort(at int) (answers []Message, jobs []job) {
	m := r.history[at]
	x := pair(r.history, at)
	b := tally(r.history)
	for n, call := range m.Calls {
		switch {
		case x.results[n] >= 0:
			continue
		case x.started[n]:
			answers = append(answers, r.cutOff(call))
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

// cutOff is the result of a call whose start is on record. One that only reads has such
// a record since it was run again, so it has been cut off twice.
func (r *run) cutOff(call Call) Message {
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

// runAll runs tools side by side and emits the result of each as it ends. Loads of groups take no
// time and run in their order: what one answers depends on what is loaded before it. Those
// that only read begin first; before any other begins, that is put on record. Those
// that only read and may have been cut off run one by one, so that one that ends the
// program takes no other with it. When it returns, nothing runs any more.
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
			if ctx, j := r.asking(r.watched(ctx, jobs[next]), jobs[next], work), jobs[next]; j.tool.Name == toolgroups.LoadToolGroup {
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
		// What a cancelled call has done is unknown, so it keeps no result and is
		// taken for interrupted. What succeeded all the same is recorded.
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

// settle emits the result of a call that has run.
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

// start puts the beginning of a call with effects on record, and that of any call that
// runs again.
func (r *run) start(j job) error {
	if j.tool.Effect == toolgroups.ReadOnly && !j.again {
		return nil
	}
	return r.emit(Message{Role: RoleStarted, CallID: j.call.ID, Tool: j.tool.Name, Hash: Hash(j.tool.Name, j.call.Arg())})
}

// runSafely runs a tool in a goroutine of its own. A panic around it is a result, too.
func (r *run) runSafely(ctx context.Context, j job) (m Message) {
	if err := rescue.Do(func() error { m = r.runOne(ctx, j); return nil }); err != nil {
		r.agent.log.Error("a call of a tool panicked", "tool", j.tool.Name, "session", r.turn.Scope.Session, "err", err)
		m = failure(j.call, toolgroups.CodeExecution, "This call broke off because of an internal fault. Try something else.")
	}
	return m
}

// runOne runs a tool and makes the record of its result.
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

// asking lets a call ask the person on whose behalf it runs.
func (r *run) asking(ctx context.Context, j job, work chan<- func()) context.Context {
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
	return toolgroups.Asking(ctx, func(ctx context.Context, q toolgroups.Question) (toolgroups.Answer, error) {
		return r.turn.Ask(ctx, j.toolCall(r.turn.Scope), q, inTurn)
	})
}

// watched tells who observes the turn that a call begins, and what its tool says about how
// far it is. Secrets are masked.
func (r *run) watched(ctx context.Context, j job) context.Context {
	if r.turn.Observe == nil {
		return ctx
	}
	told := ToolEvent{Call: j.call.ID, Tool: j.tool.Name}
	began := told
	began.Doing = toolgroups.Doing(j.tool, json.RawMessage(j.call.Arg()), r.turn.Redact)
	r.observe(Event{Began: &began})
	return toolgroups.Reporting(ctx, func(text string) {
		if r.turn.Redact != nil {
			text = r.turn.Redact(text)
		}
		step := told
		step.Step = toolgroups.Step(text)
		r.observe(Event{Step: &step})
	})
}
