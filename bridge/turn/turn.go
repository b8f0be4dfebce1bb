package turn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"oneclaw/agent"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/internal/wording"
	"oneclaw/internal/workspace"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// Answer runs the turn of a message, or continues it where its log ends.
func (t *Runner) Answer(ctx context.Context, j *queue.Run) (text string, err error) {
	session, err := conversation.Of(ctx, t.cfg.Store, &j.Job)
	if err == nil && j.State == receipts.Waiting {
		err = t.awake(ctx, j)
	}
	if err != nil {
		return "", err
	}
	Of(j).Generation = session.Generation
	h, err := t.Cache.Take(ctx, session.Log())
	if err != nil {
		return "", err
	}
	defer func() {
		if err == nil || errors.Is(err, agent.ErrSuspended) {
			t.Cache.Put(h)
		}
	}()
	if err := t.settle(ctx, j, h); err != nil {
		return "", err
	}
	if len(h.Damaged) > 0 {
		if text, done, err := t.mendHistory(ctx, j, h); done || err != nil {
			return text, err
		}
	}
	scope, err := t.cfg.Host.Scope(j, session.Log())
	if err != nil {
		return "", err
	}
	text, done, err := t.begin(ctx, j, h, scope)
	if !done && err == nil {
		text, err = t.run(ctx, j, h, scope)
	}
	if err == nil && Of(j).Parts == nil {
		// A failed turn may have made files all the same; the log has them.
		Of(j).Files = t.createdFiles(ctx, h, j.Key())
	}
	return text, err
}

// begin stages the message, unless the log already has it. If the log even has its answer, nothing is
// left to run.
func (t *Runner) begin(ctx context.Context, j *queue.Run, h *conversation.History, scope toolgroups.Scope) (string, bool, error) {
	if !j.Unstarted {
		turn, err := h.Turn(ctx, j.Key())
		if err != nil {
			return "", false, err
		}
		if len(turn) > 0 {
			answer, done := continued(h, turn)
			return answer, done, nil
		}
	}
	j.Unstarted = false
	message := t.question(j, h)
	if m := &j.Message; len(m.Files)+len(m.Quoted) > 0 || !m.Direct || m.Inside {
		if answer, err := t.take(ctx, j, h, scope, &message); answer != "" || err != nil {
			return answer, answer != "", err
		}
	}
	if h.Last == 0 {
		if err := t.List(ctx, j, scope); err != nil {
			return "", false, err
		}
	}
	if err := context.Cause(ctx); err != nil {
		return "", false, err
	}
	if t.cfg.Recall != nil {
		message.Recalled = t.recall(ctx, j, scope)
	}
	if _, err := conversation.Encode(message); err != nil {
		return t.Failed(ctx, j, err), true, nil
	}
	h.Staged = []agent.Message{message}
	return "", false, nil
}

// List adds the conversation of a job to its owner's list.
func (t *Runner) List(ctx context.Context, j *queue.Run, scope toolgroups.Scope) error {
	entry := conversation.Conversation{
		Owner: scope.Owner, Chat: j.Message.Chat, Generation: Of(j).Generation,
		Title: title(cmp.Or(words(j), quotedText(j.Message))), Begun: t.cfg.Now(),
	}
	if task := TaskOf(j); task != nil {
		entry.Task, entry.Chat, entry.Title = j.Message.ID, j.Origin(), title(cmp.Or(task.Title, entry.Title))
		if !j.Message.Direct {
			entry.By = j.Message.By()
		}
	}
	return entry.AddToLists(ctx, t.cfg.Store)
}

// continued reads a turn that an earlier attempt or a former run of the program began: it may have its
// answer already.
func continued(h *conversation.History, turn []agent.Message) (answer string, done bool) {
	for i, m := range turn {
		if i > 0 && m.Ref != "" {
			break // the rest answers another question
		}
		if m.Final {
			return m.Text, true
		}
	}
	h.EnsureQuestion(turn)
	return "", false
}

// recall searches the memory for a message. Errors are logged: the message is answered all the same.
func (t *Runner) recall(ctx context.Context, j *queue.Run, scope toolgroups.Scope) string {
	found, err := t.cfg.Recall(ctx, scope, words(j))
	if err != nil {
		t.cfg.Log.Warn("memory cannot be searched", "job", j.Key(), "err", err)
	}
	return found
}

// question returns the message as the conversation stores it.
func (t *Runner) question(j *queue.Run, h *conversation.History) agent.Message {
	message := agent.Message{Role: agent.RoleUser, Time: t.cfg.Now(), Text: asked(j), Ref: j.Key()}
	if !j.Message.Direct {
		message.Sender, message.By = j.Message.UserName, j.Message.By()
		h.NoteAuthor(&j.Job)
	}
	for _, note := range j.Message.Skipped {
		message.Text += notReceived(note)
	}
	message.Text = strings.TrimSpace(message.Text)
	return message
}

// ask lets the agent answer and stores each message before the agent acts on it. The error is [errAskAgain]
// if the question grew.
func (t *Runner) ask(ctx context.Context, j *queue.Run, h *conversation.History, scope toolgroups.Scope, more *additions) (string, error) {
	groups, err := h.LoadedGroups(ctx)
	if err != nil {
		return "", err
	}
	limited, cancel := toolgroups.WithPausableTimeout(ctx, t.cfg.Timeout)
	defer cancel()
	var persona Profile
	if t.cfg.Profile != nil {
		if persona, err = t.cfg.Profile(limited, scope, purpose(j)); err != nil {
			if err := t.append(context.WithoutCancel(ctx), j, h); err != nil {
				return "", err
			}
			return t.failureAnswer(ctx, j, h, scope, err)
		}
	}
	if more.take() {
		return "", errAskAgain // an earlier addition costs no call
	}
	files := &checkout{Runner: t, job: j, dir: scope.Workspace}
	turn := agent.Turn{
		Prompt: persona.Prompt, Tail: persona.Tail, Model: persona.Model, Summarizer: persona.Summarizer, History: t.view(ctx, j, h), Set: toolgroups.NewSet(t.cfg.Tools, groups), Router: t.cfg.Router, Scope: scope, CacheKey: h.Log,
		Temperature: persona.Temperature, Effort: persona.Effort, MaxRounds: persona.MaxRounds,
		ReadFile: func(path string, limit int64) ([]byte, error) { return files.read(limited, path, limit) },
		Gate: func(ctx context.Context, call toolgroups.Call, tool toolgroups.Tool) (agent.Decision, error) {
			return t.decide(ctx, j, h, call, tool, files)
		},
		Settle: files.settle,
		Redact: t.cfg.Redact,
		Ask:    t.cfg.Asker.For(j, h),
	}
	if !t.cfg.SeparateTurns {
		turn.Steer = func(ctx context.Context) ([]agent.Message, error) { return t.steer(ctx, j, h, scope) }
	}
	observe, withhold, end := t.cfg.Watcher.Watch(j)
	defer end()
	asking, over := more.ask(limited, withhold)
	defer over(nil)
	turn.Observe = func(e agent.Event) { more.observe(e, observe) }
	missing := t.watch(j, h, &turn)
	answer, shortened := "", h.Shortened()
	for m, err := range t.cfg.Agent.Run(asking, turn) {
		if more.isBroken() {
			return "", errAskAgain
		}
		if err != nil {
			end() // the question may be asked again
			return t.ended(ctx, j, h, scope, errors.Join(err, context.Cause(limited)))
		}
		if m.Final {
			end()
			if missing.first || len(h.Staged) == 0 { // else a tool has run
				m.Text = missing.addNotice(h, t.withSources(ctx, j, h, m.Text))
			}
			if shortened {
				m.Text += NoticeShortened
			}
			answer = m.Text
		}
		if err = t.proceed(context.WithoutCancel(ctx), j, h, m); errors.Is(err, storage.ErrInvalid) {
			// The model is paid for already, and its next reply would be as large.
			return t.ended(ctx, j, h, scope, err)
		}
		if err != nil {
			return "", err
		}
	}
	if cause := context.Cause(ctx); cause != nil && answer == "" {
		return "", cause
	}
	if !wording.Visible(answer) {
		return t.failureAnswer(ctx, j, h, scope, errors.New("the agent ended without an answer"))
	}
	return answer, nil
}

// proceed stores a message, and returns an error if the agent must not act on it.
func (t *Runner) proceed(ctx context.Context, j *queue.Run, h *conversation.History, m agent.Message) error {
	if err := t.store(ctx, j, h, m); err != nil {
		return err
	}
	if m.Role == agent.RoleTool {
		if err := t.cfg.Asker.Ended(ctx, j, m.CallID); err != nil {
			return err
		}
	}
	if m.Final {
		return nil
	}
	return t.checkOwnership(j)
}

// errMaybeLost says that another process may own the chat.
var errMaybeLost = errors.New("turn: this process has not proved for too long that it answers in this chat")

// checkOwnership returns an error if another process may own the chat: a process that was paused while it stored
// a message must not act on it.
func (t *Runner) checkOwnership(j *queue.Run) error {
	if t.cfg.Safe == nil || t.cfg.Safe(j) {
		return nil
	}
	return errMaybeLost
}

// errGate wraps a failure of the gate: the turn is retried.
var errGate = errors.New("turn: cannot decide whether a call may run")

// decide returns whether a call may run, and loads the files for one that may.
func (t *Runner) decide(ctx context.Context, j *queue.Run, h *conversation.History, call toolgroups.Call, tool toolgroups.Tool, files *checkout) (agent.Decision, error) {
	d, err := t.cfg.Gate.Decide(ctx, j, h, call, tool)
	if err != nil {
		return d, fmt.Errorf("%w: %w", errGate, err)
	}
	if d.Verdict == agent.Allow {
		err = files.here(ctx)
	}
	if workspace.NoRoom(err) {
		return agent.Decision{Verdict: agent.Deny, Reason: err.Error()}, nil
	}
	return d, err
}

// keep stores a message of a turn. The answer, and the record that its first part is being sent, are
// one write: if the platform works, the request comes next.
func (t *Runner) keep(ctx context.Context, j *queue.Run, h *conversation.History, m agent.Message) error {
	if m.Role == agent.RoleStarted {
		m.Approved = Of(j).approvedBy(m)
	}
	if !m.Final || !wording.Visible(m.Text) || TaskOf(j).Ends(m.Text) {
		return t.append(ctx, j, h, m)
	}
	ctx, cancel := context.WithTimeout(ctx, queue.WriteTimeout)
	defer cancel()
	Of(j).Files = nil
	if len(h.Staged) == 0 { // else the question is unrecorded, and no tool has run
		Of(j).Files = t.createdFiles(ctx, h, j.Key())
	}
	t.cfg.Sender.Prepare(j, m.Text, true)
	err := t.cfg.Jobs.WriteFenced(ctx, j, func() error {
		record, err := j.Record()
		if err != nil {
			return err
		}
		rev, err := h.Append(ctx, []storage.Op{record}, m)
		if err == nil {
			j.Rev = rev
		}
		return err
	})
	if err != nil {
		Of(j).Drop(0)
	}
	if errors.Is(err, storage.ErrInvalid) {
		return t.append(ctx, j, h, m) // the job may be too large; delivery saves it
	}
	return err
}

// returned reports whether a message is the result that a call returned, and not one for a call that
// the end of the program cut off.
func returned(m agent.Message) bool {
	return m.Role == agent.RoleTool && m.Code != agent.CodeInterrupted && m.Code != agent.CodeCrashed
}

// append adds messages to the conversation of a job, while this process has it. Together with the
// question it records that the turn has begun, and with the result of a call it resets the count of
// restarts without progress.
func (t *Runner) append(ctx context.Context, j *queue.Run, h *conversation.History, messages ...agent.Message) error {
	return t.cfg.Jobs.WriteFenced(ctx, j, func() (err error) {
		changes, of := len(h.Staged) > 0, storage.Check(queue.OpenPrefix+j.Key(), j.Rev)
		if j.Stall.Restarts > 0 && slices.ContainsFunc(messages, returned) {
			j.Progressed()
			changes = true
		}
		if changes {
			if of, err = j.Record(); err != nil {
				return err
			}
		}
		rev, err := h.Append(ctx, []storage.Op{of}, messages...)
		if changes && err == nil {
			j.Rev = rev
		}
		return err
	})
}

// ended handles an error with which the agent ended a turn: the turn continues later, or its answer
// says so.
func (t *Runner) ended(ctx context.Context, j *queue.Run, h *conversation.History, scope toolgroups.Scope, err error) (string, error) {
	if cause := context.Cause(ctx); cause != nil {
		return "", cause
	}
	if errors.Is(err, agent.ErrSuspended) || slices.ContainsFunc([]error{errGate, errFiles, errSteer}, func(again error) bool { return errors.Is(err, again) }) {
		return "", err
	}
	if refused(err) {
		if less, err := t.shorten(ctx, j, h, err); less || err != nil {
			if err != nil {
				return "", err
			}
			return t.run(ctx, j, h, scope)
		}
		return t.leaveOut(context.WithoutCancel(ctx), j, h, err)
	}
	// The question stays on record, so that "try again" has a meaning.
	if err := t.append(context.WithoutCancel(ctx), j, h); err != nil {
		return "", err
	}
	return t.failureAnswer(ctx, j, h, scope, err)
}

// refused reports whether the question itself causes the failure, so that the next message would fail
// again: a provider rejects it, or the answer is too large to store. An unknown model or address does
// not count.
func refused(err error) bool {
	if failure, ok := errors.AsType[*agent.ModelError](err); ok {
		return failure.Kind == agent.KindRejected && failure.Status != http.StatusNotFound && failure.Status != http.StatusMethodNotAllowed
	}
	return errors.Is(err, storage.ErrInvalid)
}

// shorten leaves out more of the history before a question that was refused if the previous one was
// refused, too: then the cause lies further back, and every question would fail. It reports whether
// there was anything to leave out. That is recorded with the answer.
func (t *Runner) shorten(ctx context.Context, j *queue.Run, h *conversation.History, failure error) (bool, error) {
	if _, model := errors.AsType[*agent.ModelError](failure); !model || len(h.Staged) == 0 {
		return false, nil // the turn's own messages may be the cause
	}
	again, err := h.LastRefused(ctx)
	if !again || err != nil {
		return false, err
	}
	if h.DropOlderTurns(t.cfg.Now()) {
		t.cfg.Log.Warn("the model refuses question after question: asking without the older turns", "job", j.Key(), "err", failure)
		return true, nil
	}
	h.Staged = h.Staged[len(h.Staged)-1:] // the question alone is refused
	return false, nil
}

// leaveOut hides a failed turn from the model. It stays on record.
func (t *Runner) leaveOut(ctx context.Context, j *queue.Run, h *conversation.History, failure error) (string, error) {
	turn, err := h.Turn(ctx, j.Key())
	if err != nil {
		return "", err
	}
	text, _ := t.explain(ctx, j, failure)
	if err := t.append(ctx, j, h, agent.Message{
		Role: agent.RoleRefused, Time: t.cfg.Now(), Text: text.told, Final: true, Left: len(turn) + len(h.Staged),
	}); err != nil {
		return "", err
	}
	return t.cfg.Host.Failed(ctx, j, text.told, text.again), nil
}

// StopTurn adds a note to the conversation that a turn was stopped, so that the model does not continue
// it.
func (t *Runner) StopTurn(ctx context.Context, j *queue.Run, note string) error {
	t.unstored.Forget(j.Key())
	for _, a := range j.Message.Files {
		t.unheard.Forget(unheardKey(j, a))
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), queue.WriteTimeout)
	defer cancel()
	err := t.recordStop(ctx, j, note)
	if err != nil {
		t.cfg.Log.Error("a stopped turn cannot be recorded", "job", j.Key(), "err", err)
	}
	if errors.Is(err, storage.ErrInvalid) {
		return nil // a retry cannot succeed
	}
	return err
}

func (t *Runner) recordStop(ctx context.Context, j *queue.Run, note string) (err error) {
	if Of(j).Generation == 0 && !j.Found {
		return nil // never begun
	}
	session, err := conversation.Of(ctx, t.cfg.Store, &j.Job)
	if err != nil && !errors.Is(err, conversation.ErrStopped) && !errors.Is(err, conversation.ErrCleared) {
		return err
	}
	h, err := t.Cache.Take(ctx, session.In(Of(j).Generation).Log())
	if err != nil {
		return err
	}
	defer func() {
		if err == nil {
			t.Cache.Put(h)
		}
	}()
	turn, err := h.Turn(ctx, j.Key())
	if err != nil || len(turn) == 0 && Of(j).Generation == 0 {
		return err // a job that a restart found may not have begun
	}
	if len(turn) == 0 {
		h.Staged = []agent.Message{t.question(j, h)}
	}
	notes := agent.Stop(h.View(), note)
	for i := range notes {
		notes[i].Time = t.cfg.Now()
	}
	if len(notes) == 0 {
		return nil
	}
	if Of(j).Preview != nil {
		prependShown(Of(j).Preview.Shown, turn, &notes[len(notes)-1])
	}
	return t.append(ctx, j, h, notes...)
}

// prependShown puts the shown part of an answer in front of the note that it was stopped, unless the turn
// has it.
func prependShown(said string, turn []agent.Message, note *agent.Message) {
	has := func(m agent.Message) bool { return strings.Contains(m.Text, said) }
	if wording.Visible(said) && !slices.ContainsFunc(turn, has) {
		note.Text = said + "\n\n" + note.Text
	}
}
