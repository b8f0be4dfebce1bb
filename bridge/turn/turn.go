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
	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/provenance"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/internal/wording"
	"oneclaw/internal/workspace"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// Answer runs the turn of a message, or continues it where its log ends.
func (t *Runner) Answer(ctx context.Context, j *queue.Run) (text string, err error) {
	session, err := conversation.SessionOf(ctx, t.cfg.Store, &j.Job)
	if WorkOf(j).waited = j.State == receipts.Waiting; err == nil && WorkOf(j).waited {
		err = t.applyDecisions(ctx, j)
	}
	if err != nil {
		return "", err
	}
	WorkOf(j).Generation = session.Generation
	h, err := t.Cache.Take(ctx, session.Log())
	if err != nil {
		return "", err
	}
	defer func() {
		if err == nil || errors.Is(err, agent.ErrSuspended) {
			t.Cache.Put(h)
		}
	}()
	if err := t.storeHeld(ctx, j, h); err != nil {
		return "", err
	}
	if len(h.Damaged) > 0 {
		if text, done, err := t.deadLetterDamaged(ctx, j, h); done || err != nil {
			return text, err
		}
	}
	scope, err := t.cfg.Host.Scope(j, session.Log())
	if err != nil {
		return "", err
	}
	text, done, err := t.stageQuestion(ctx, j, h, scope)
	if !done && err == nil {
		text, err = t.run(ctx, j, h, scope)
	}
	if err == nil && WorkOf(j).Parts == nil {
		// Even a failed turn may have made files, which are in the log.
		WorkOf(j).Files = t.createdFiles(ctx, j, h)
	}
	return text, err
}

// stageQuestion stages the message of a job for the next write, unless the log contains it already. If
// the turn has an answer already, it returns that answer and true.
func (t *Runner) stageQuestion(ctx context.Context, j *queue.Run, h *conversation.History, scope toolgroups.Scope) (answer string, done bool, err error) {
	if !j.Unstarted {
		turn, err := h.Turn(ctx, j.Key())
		if err != nil {
			return "", false, err
		}
		if len(turn) > 0 {
			answer, done := readContinued(h, turn)
			return answer, done, nil
		}
	}
	unstarted := j.Unstarted
	j.Unstarted = false
	defer func() { j.Unstarted = unstarted && err != nil }() // the next attempt asks again whether it may begin
	message := t.newQuestion(j, h)
	if m := &j.Message; len(m.Files)+len(m.Quoted) > 0 || !m.Direct || m.InThread {
		if answer, err := t.gatherOrAnswer(ctx, j, h, scope, &message); answer != "" || err != nil {
			return answer, answer != "", err
		}
	}
	if h.Last == 0 {
		if err := t.addToList(ctx, j, scope); err != nil {
			return "", false, err
		}
	}
	if err := context.Cause(ctx); err != nil {
		return "", false, err
	}
	if t.cfg.Recall != nil {
		t.recall(ctx, j, scope, &message)
	}
	if _, err := conversation.Encode(message); err != nil {
		return t.ReportFailure(ctx, j, err), true, nil
	}
	h.Staged, WorkOf(j).question = []agent.Message{message}, message
	return "", false, nil
}

// addToList adds the conversation of a job to the list of its owner's conversations.
func (t *Runner) addToList(ctx context.Context, j *queue.Run, scope toolgroups.Scope) error {
	entry := conversation.Conversation{
		Owner: scope.Owner, Chat: j.Message.Chat, Generation: WorkOf(j).Generation,
		Title: t.titleOf(cmp.Or(textOrTranscript(j), quotedText(j.Message))), StartedAt: t.cfg.Now(),
	}
	if task := TaskOf(j); task != nil {
		entry.Task, entry.Chat, entry.Title = j.Message.ID, j.Origin(), t.titleOf(cmp.Or(task.Title, entry.Title))
		if !j.Message.Direct {
			entry.By = j.Message.SenderID()
		}
	}
	return entry.AddToList(ctx, t.cfg.Store)
}

// recall adds what the memory has about a message. After an error, which is logged, it adds nothing.
func (t *Runner) recall(ctx context.Context, j *queue.Run, scope toolgroups.Scope, message *agent.Message) {
	found, own, shown, err := t.cfg.Recall(ctx, scope, textOrTranscript(j))
	if err != nil {
		t.cfg.Log.Warn("memory cannot be searched", "job", j.Key(), "err", err)
	}
	if found != "" {
		message.Recalled, message.RecalledOwn, message.RecalledShown = found, own, shown
	}
}

// newQuestion returns the message of a job in the form that the conversation stores.
func (t *Runner) newQuestion(j *queue.Run, h *conversation.History) agent.Message {
	message := agent.Message{Role: agent.RoleUser, Time: t.cfg.Now(), Text: questionText(j), Ref: j.Key(), Origin: originOf(j)}
	t.noteSender(&message, j, h)
	if j.Message.Kind == receipts.KindResult {
		message.Sender = "" // a result has no sender
	}
	for _, note := range j.Message.Skipped {
		message.Text += notReceivedNote(wording.OneLine(note, maxSkipped))
	}
	message.Text = strings.TrimSpace(message.Text)
	return message
}

// noteSender records in a message of a shared chat who has sent it. The name of a chat, in whose name people write, is
// no sender's own: others may have chosen it.
func (t *Runner) noteSender(message *agent.Message, j *queue.Run, h *conversation.History) {
	if j.Message.Direct {
		return
	}
	message.Sender, message.AuthorKey, message.Seq = j.Message.UserName, j.Message.SenderID(), j.Seq
	if platform, can := t.cfg.Platforms[j.Message.Chat.Platform].(chats.ChatSender); can && platform.IsChat(j.Message.User) {
		message.Sender = "somebody in the name of a chat"
	}
	h.NoteAuthor(&j.Job)
}

// maxSkipped bounds a note about what could not be read, in characters.
const maxSkipped = 300

// originOf returns the [agent.Message.Origin] of a job's text: empty for its user's own words, and not if it
// holds what a webhook received, names that others chose, such as those of files, what a task answered, or one
// that the model wrote among words of others.
func originOf(j *queue.Run) toolgroups.Origin {
	switch task := TaskOf(j); {
	case j.Message.Kind == receipts.KindResult, task != nil && task.Outside:
		return toolgroups.OriginComputed
	case task != nil && task.Hook != "", j.Message.Foreign, len(j.Message.Skipped) > 0:
		return agent.OriginQuoted
	}
	return ""
}

// ask lets the agent answer, and stores each message before the agent acts on it. It returns
// [errAskAgain] if messages were added to the question.
func (t *Runner) ask(ctx context.Context, j *queue.Run, h *conversation.History, scope toolgroups.Scope, more *additions) (string, error) { //nolint:cyclop // The steps of a turn, each with its error.
	groups, err := h.LoadedGroups(ctx)
	if err != nil {
		return "", err
	}
	limited, cancel := toolgroups.WithPausableTimeout(ctx, t.timeoutOf(j))
	defer cancel()
	var persona Profile
	if t.cfg.Profile != nil {
		if persona, err = t.cfg.Profile(limited, scope, purposeOf(j)); err != nil {
			if err := t.appendMessages(context.WithoutCancel(ctx), j, h); err != nil {
				return "", err
			}
			return t.failureAnswer(ctx, j, h, scope, err)
		}
	}
	if more.hasPending() {
		return "", errAskAgain // before a call to the model is paid for
	}
	if h.Charges = persona.Charges; h.Charges != nil {
		defer h.Charges.Flush()
	}
	scope.Unasked = IsUnasked(j) // messages may have joined
	files := &checkout{Runner: t, job: j, dir: scope.Workspace}
	turn := agent.Turn{
		Prompt: persona.Prompt, PromptTail: persona.Tail, PromptOthers: persona.PromptOthers, PromptShown: persona.PromptShown, PromptOutside: persona.PromptOutside, Model: persona.Model, Summarizer: persona.Summarizer, History: t.turnHistory(ctx, j, h), Waited: WorkOf(j).waited, Set: toolgroups.NewSet(t.toolsFor(scope), groups), Router: t.cfg.Router, Scope: scope, CacheKey: h.Log,
		Temperature: persona.Temperature, Effort: persona.Effort, MaxRounds: persona.MaxRounds,
		ReadFile: func(path string, limit int64) ([]byte, error) { return files.readFile(limited, path, limit) },
		Gate: func(ctx context.Context, call toolgroups.Call, tool toolgroups.Tool, input agent.Input) (agent.Decision, error) {
			return t.decide(ctx, j, h, call, tool, input, files)
		},
		NoteShown: func(input agent.Input) (held, read bool) {
			w := WorkOf(j)
			w.NoteOthers(&provenance.Input{Input: input, User: scope.User, Tool: t.cfg.Tools().Tool})
			return w.HeldOthers, w.ReadOthers
		},
		OnResult: files.storeFiles,
		Redact:   t.cfg.Redact, RedactLines: t.cfg.RedactLines,
		Ask: t.cfg.Asker.AskFunc(j, h),
	}
	if IsBackground(j) {
		turn.MaxTokens = t.cfg.Background.Tokens
	}
	if !t.cfg.SeparateTurns {
		turn.Steer = func(ctx context.Context) ([]agent.Message, bool, error) {
			messages, err := t.steer(ctx, j, h, scope)
			return messages, IsUnasked(j), err
		}
	}
	observe, withhold, end := t.cfg.Watcher.Watch(j)
	defer end()
	asking, over := more.beginCall(limited, withhold)
	defer over(nil)
	turn.Observe = func(e agent.Event) { more.observe(e, observe) }
	missing := t.trackCuts(j, h, &turn, persona)
	answer, shortened := "", h.IsShortened()
	for m, err := range t.cfg.Agent.Run(asking, turn) {
		if more.isCallCancelled() {
			return "", errAskAgain
		}
		if err != nil {
			end() // the question may be asked again
			return t.handleEnd(ctx, j, h, scope, errors.Join(err, context.Cause(limited)))
		}
		if m.Final {
			end()
			m.Text = t.breakSilence(ctx, j, h, m.Text)
			if missing.firstWasCut || len(h.Staged) == 0 { // otherwise no tool has run
				m.Text = missing.addNotice(h, t.withSources(ctx, j, h, m.Text))
			}
			if shortened {
				m.Text += noticeShortened
			}
			m.Text = missing.addLeftOutNotice(h, addModelNotices(h, persona.Model, m.Text))
			answer = m.Text
			t.notifyCallsInText(ctx, missing, persona.Model)
			if t.cfg.SpeechFor != nil {
				WorkOf(j).Speak = t.cfg.SpeechFor(ctx, scope, wasSpoken(j))
			}
		}
		if err = t.storeAndCheck(context.WithoutCancel(ctx), j, h, m); errors.Is(err, storage.ErrInvalid) {
			// A retry would be paid for again, and its reply would be as large.
			return t.handleEnd(ctx, j, h, scope, err)
		}
		if err != nil {
			return "", err
		}
	}
	if cause := context.Cause(ctx); cause != nil && answer == "" {
		return "", cause
	}
	if !wording.HasVisible(answer) {
		return t.failureAnswer(ctx, j, h, scope, errors.New("the agent ended without an answer"))
	}
	return answer, nil
}

// storeAndCheck stores a message, and returns an error if the agent must not act on the message. Records
// in front of the first reply are staged behind the question: they have no effect, and the question of a
// turn that is not answered stays the only message of its turn.
func (t *Runner) storeAndCheck(ctx context.Context, j *queue.Run, h *conversation.History, m agent.Message) error {
	if len(h.Staged) > 0 && (m.Role == agent.RoleCleared || m.Role == agent.RoleNote) {
		h.Staged = append(h.Staged, m)
		return nil
	}
	if err := t.saveOrHold(ctx, j, h, m); err != nil {
		return err
	}
	if m.Role == agent.RoleTool {
		if err := t.cfg.Asker.EndCall(ctx, j, m.CallID); err != nil {
			return err
		}
	}
	if m.Final {
		return nil
	}
	return t.checkOwnership(j)
}

// errMaybeLost is returned when another process may have taken over the chat.
var errMaybeLost = errors.New("turn: cannot verify that this process still owns the chat")

// checkOwnership returns an error if another process may own the chat, because a process that was paused
// after it stored a message must not act on the message.
func (t *Runner) checkOwnership(j *queue.Run) error {
	if t.cfg.OwnsSafely == nil || t.cfg.OwnsSafely(j) {
		return nil
	}
	return errMaybeLost
}

// errGate wraps an error of the gate. The turn is retried.
var errGate = errors.New("turn: cannot decide whether a call may run")

// decide returns whether a call may run. If it may, decide loads the files of the turn.
func (t *Runner) decide(ctx context.Context, j *queue.Run, h *conversation.History, call toolgroups.Call, tool toolgroups.Tool, input agent.Input, files *checkout) (agent.Decision, error) {
	input.Incomplete = h.Truncated
	d, err := t.cfg.Gate.Decide(ctx, j, h, call, tool, input)
	if err != nil {
		return d, fmt.Errorf("%w: %w", errGate, err)
	}
	if d.Verdict == agent.Allow {
		err = files.load(ctx)
	}
	if workspace.IsFull(err) {
		return agent.Decision{Verdict: agent.Deny, Reason: err.Error()}, nil
	}
	return d, err
}

// saveMessage stores a message of a turn. One write stores the final answer and records that its first
// part is being sent, so that the request can follow without another write.
func (t *Runner) saveMessage(ctx context.Context, j *queue.Run, h *conversation.History, m agent.Message) error {
	if !m.Final || !wording.HasVisible(m.Text) || TaskOf(j).IsSilence(m.Text) || IsBackground(j) {
		return t.appendMessages(ctx, j, h, m)
	}
	ctx, cancel := context.WithTimeout(ctx, queue.WriteTimeout)
	defer cancel()
	WorkOf(j).Files = nil
	if len(h.Staged) == 0 { // otherwise the question is not stored yet, and no tool has run
		WorkOf(j).Files = t.createdFiles(ctx, j, h)
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
		WorkOf(j).DropParts(0)
	}
	if errors.Is(err, storage.ErrInvalid) {
		return t.appendMessages(ctx, j, h, m) // the job may be too large; the delivery handles that
	}
	return err
}

// isToolResult reports whether a message is the result that a call returned. It is false for a
// call that a shutdown or a crash interrupted.
func isToolResult(m agent.Message) bool {
	return m.Role == agent.RoleTool && m.Code != agent.CodeInterrupted && m.Code != agent.CodeCrashed
}

// appendMessages adds messages to the conversation of a job, if the job still belongs to this process.
// If it adds the question, it also records that the turn has begun, and with a reply what the model was shown of others. If
// it adds the result of a call, it also resets the count of restarts without progress.
func (t *Runner) appendMessages(ctx context.Context, j *queue.Run, h *conversation.History, messages ...agent.Message) error {
	noteAnnounced(j, messages) // also if the write fails: it may be made later, or have been made nevertheless
	return t.cfg.Jobs.WriteFenced(ctx, j, func() (err error) {
		changes, of := len(h.Staged) > 0 || WorkOf(j).notedOthers, storage.Check(queue.OpenPrefix+j.Key(), j.Rev)
		if j.Stall.Restarts > 0 && slices.ContainsFunc(messages, isToolResult) {
			j.RecordProgress()
			changes = true
		}
		if changes {
			if of, err = j.Record(); err != nil {
				return err
			}
		}
		rev, err := h.Append(ctx, []storage.Op{of}, messages...)
		if changes && err == nil {
			j.Rev, WorkOf(j).notedOthers = rev, false
		}
		return err
	})
}

// handleEnd handles an error with which the agent ended a turn. It returns an error if the turn is
// continued later, otherwise the answer about the failure.
func (t *Runner) handleEnd(ctx context.Context, j *queue.Run, h *conversation.History, scope toolgroups.Scope, err error) (string, error) {
	if cause := context.Cause(ctx); cause != nil {
		return "", cause
	}
	if errors.Is(err, agent.ErrSuspended) || slices.ContainsFunc([]error{errGate, errFiles, errSteer}, func(again error) bool { return errors.Is(err, again) }) {
		return "", err
	}
	if isRefusal(err) {
		if less, err := t.dropOlderTurns(ctx, j, h, err); less || err != nil {
			if err != nil {
				return "", err
			}
			return t.run(ctx, j, h, scope)
		}
		return t.excludeTurn(context.WithoutCancel(ctx), j, h, err)
	}
	// The question is stored, so that the user can ask to try again.
	if err := t.appendMessages(context.WithoutCancel(ctx), j, h); err != nil {
		return "", err
	}
	return t.failureAnswer(ctx, j, h, scope, err)
}

// isRefusal reports whether the question itself causes the failure, so that it must not be part of the
// next request: the provider rejects it, or the answer is too large to store. An unknown model or URL, and a tool
// that the provider rejects, do not count.
func isRefusal(err error) bool {
	if failure, ok := errors.AsType[*agent.ModelError](err); ok {
		return failure.Kind == agent.KindRejected && !failure.AboutTools && failure.Status != http.StatusNotFound && failure.Status != http.StatusMethodNotAllowed
	}
	return errors.Is(err, storage.ErrInvalid)
}

// dropOlderTurns drops older turns from the history of a refused question if the previous question was
// refused, too: then the cause is an older message, and every question would fail. It reports whether it
// dropped any. The next write records the change.
func (t *Runner) dropOlderTurns(ctx context.Context, j *queue.Run, h *conversation.History, failure error) (bool, error) {
	if _, model := errors.AsType[*agent.ModelError](failure); !model || len(h.Staged) == 0 {
		return false, nil // the messages of this turn may be the cause
	}
	again, err := h.LastRefused(ctx)
	if !again || err != nil {
		return false, err
	}
	if !h.DropOlderTurns(t.cfg.Now()) {
		return false, nil // even the question alone was refused
	}
	t.cfg.Log.Warn("the model refuses consecutive questions: asking without the older turns", "job", j.Key(), "err", failure)
	return true, nil
}

// codeNames lists names as code.
func codeNames(names []string) string {
	for i := range names {
		names[i] = wording.InlineCode(names[i])
	}
	return strings.Join(names, ", ")
}

// excludeTurn excludes a failed turn from later requests, and returns its answer. The log keeps it, and
// later requests say which of its calls ran.
func (t *Runner) excludeTurn(ctx context.Context, j *queue.Run, h *conversation.History, failure error) (string, error) {
	turn, err := h.Turn(ctx, j.Key())
	if err != nil {
		return "", err
	}
	text := failureTextOf(failure, t.timeoutOf(j))
	if rejected, ok := errors.AsType[*agent.ModelError](failure); ok && !rejected.Filtered && !isContentFiltered(rejected) && !hasReply(h) {
		text = neverAccepted()
	}
	text, _ = t.explain(ctx, j, failure, text)
	stands, done, unsure := agent.OmittedEffects(turn, t.cfg.Tools())
	if len(done) > 0 {
		text.message += " What I had done by then stays done: " + codeNames(done) + "."
	}
	if len(unsure) > 0 {
		text.message += " I cannot tell whether this was done: " + codeNames(unsure) + ". Please look before you ask for it again."
	}
	messages := append([]agent.Message{{Role: agent.RoleRefused, Text: text.message, Final: true, Omitted: len(turn) + len(h.Staged)}}, stands...)
	for i := range messages {
		messages[i].Time = t.cfg.Now()
	}
	if err := t.appendMessages(ctx, j, h, messages...); err != nil {
		return "", err
	}
	return t.cfg.Host.FailureAnswer(ctx, j, text.message, text.retryHelps), nil
}

// hasReply reports whether a model has replied in a conversation.
func hasReply(h *conversation.History) bool {
	return h.Truncated || slices.ContainsFunc(h.Messages, func(m agent.Message) bool { return m.Role == agent.RoleAssistant || m.Role == agent.RoleSummary })
}

// StopTurn adds a note to the conversation that a turn was stopped, so that the model does not continue
// the turn.
func (t *Runner) StopTurn(ctx context.Context, j *queue.Run, note string) error {
	t.unstored.Forget(j.Key())
	for _, a := range j.Message.Files {
		t.unstoredTranscripts.Forget(transcriptKey(j, a))
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), queue.WriteTimeout)
	defer cancel()
	err := t.recordStop(ctx, j, note)
	if err != nil {
		t.cfg.Log.Error("the end of a stopped turn cannot be stored", "job", j.Key(), "err", err)
	}
	if errors.Is(err, storage.ErrInvalid) {
		return nil // a retry cannot succeed
	}
	return err
}

func (t *Runner) recordStop(ctx context.Context, j *queue.Run, note string) (err error) {
	began := WorkOf(j).Generation > 0 || TaskOf(j) != nil && !j.Unstarted
	if !began && !j.Found {
		return nil // the turn never began
	}
	session, err := conversation.SessionOf(ctx, t.cfg.Store, &j.Job)
	if err != nil && !errors.Is(err, conversation.ErrStopped) && !errors.Is(err, conversation.ErrCleared) {
		return err
	}
	h, err := t.Cache.Take(ctx, session.AtGeneration(WorkOf(j).Generation).Log())
	if err != nil {
		return err
	}
	defer func() {
		if err == nil {
			t.Cache.Put(h)
		}
	}()
	turn, err := h.Turn(ctx, j.Key())
	if err != nil || len(turn) == 0 && !began {
		return err // the turn of a job from an earlier run may not have begun
	}
	if len(turn) == 0 {
		h.Staged = []agent.Message{t.stoppedQuestion(j, h)}
	}
	notes := agent.StopMessages(h.View(), note)
	for i := range notes {
		notes[i].Time = t.cfg.Now()
	}
	if len(notes) == 0 {
		return nil
	}
	if w, end := WorkOf(j), &notes[len(notes)-1]; w.Preview != nil && prependShown(w.Preview.Shown, turn, end) {
		if j.Found { // what an earlier run of the program showed the model last may not be stored
			w.HeldOthers, w.ReadOthers, w.notedOthers = true, true, true
		}
		if end.ReadOthers = w.ReadOthers; w.HeldOthers {
			end.Origin = toolgroups.OriginComputed
		}
	}
	return t.appendMessages(ctx, j, h, notes...)
}

// stoppedQuestion returns the question of a turn that is stopped before the question is stored, as the model was shown
// it. What an earlier run of the program showed the model is not known, so if that said anything, the question counts
// as one with words of others.
func (t *Runner) stoppedQuestion(j *queue.Run, h *conversation.History) agent.Message {
	question, said := t.newQuestion(j, h), WorkOf(j).Preview // which notes its author, too
	if asked := WorkOf(j).question; asked.Role != "" {
		question = asked
	}
	if j.Found && said != nil && said.Shown != "" && question.Origin != toolgroups.OriginComputed {
		question.Origin = agent.OriginQuoted
	}
	return question
}

// prependShown puts the part of an answer that was shown in front of the note about the stop, unless the
// turn contains that part already. It reports whether it did.
func prependShown(said string, turn []agent.Message, note *agent.Message) bool {
	has := func(m agent.Message) bool { return strings.Contains(m.Text, said) }
	if !wording.HasVisible(said) || slices.ContainsFunc(turn, has) {
		return false
	}
	note.Text = said + "\n\n" + note.Text
	return true
}
