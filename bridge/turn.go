package bridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	"oneclaw/agent"
	"oneclaw/bridge/jobs"
	"oneclaw/bridge/sessions"
	"oneclaw/bridge/wording"
	"oneclaw/internal/runes"
	"oneclaw/internal/workspace"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// maxResumes is how many restarts may find a turn begun before it is given up: a turn
// that takes the program down would do so for ever.
const maxResumes = 10

// answer runs the turn of a message, or goes on with it where its log stops.
func (b *Bridge) answer(ctx context.Context, j *jobs.Job) (text string, err error) {
	session, err := b.session(ctx, j)
	if err != nil {
		return "", err
	}
	if err := session.Overtaken(j); err != nil {
		return "", err
	}
	if err := b.awake(ctx, j); err != nil {
		return "", err
	}
	j.Generation = session.Generation
	h, err := b.history.Take(ctx, session.Log())
	if err != nil {
		return "", err
	}
	defer func() {
		if errors.Is(err, agent.ErrSuspended) {
			b.history.Give(h, nil)
			return
		}
		b.history.Give(h, err)
	}()
	text, done, err := b.mendHistory(ctx, j, h)
	if done || err != nil {
		return text, err
	}
	scope, err := b.scope(j, session)
	if err != nil {
		return "", err
	}
	text, done, err = b.begin(ctx, j, h, scope)
	if !done && err == nil {
		text, err = b.run(ctx, j, h, scope)
	}
	if err == nil && j.Parts == nil {
		// A turn that failed may have made files all the same; the log says it did.
		j.Files = b.made(ctx, h, j.Key())
	}
	return text, err
}

// begin stages the message, if the log does not have it yet. Where the log has even
// its answer, there is nothing left to run.
func (b *Bridge) begin(ctx context.Context, j *jobs.Job, h *sessions.History, scope toolgroups.Scope) (string, bool, error) {
	again := j.Found || j.Begun
	j.Begun = true
	if again {
		turn, err := h.Turn(ctx, j.Key())
		if err != nil {
			return "", false, err
		}
		if len(turn) > 0 {
			text, done, err := b.continued(ctx, j, turn)
			if !done {
				h.Lead(turn)
			}
			return text, done, err
		}
	}
	if h.Last == 0 {
		if err := b.list(ctx, j, scope); err != nil {
			return "", false, err
		}
	}
	files, notes := b.fetchFiles(ctx, j, scope.Workspace)
	if err := context.Cause(ctx); err != nil {
		return "", false, err
	}
	message := b.question(j, notes)
	message.Files = files
	message.Recalled = b.recall(ctx, j, scope)
	if _, err := sessions.Encode(message); err != nil {
		return b.failed(j, err), true, nil
	}
	h.Stage(message)
	return "", false, nil
}

// list enters the conversation that a job begins into those of its owner.
func (b *Bridge) list(ctx context.Context, j *jobs.Job, scope toolgroups.Scope) error {
	entry := sessions.Conversation{
		Owner: scope.Owner, Chat: j.Message.Chat, Generation: j.Generation,
		Title: title(cmp.Or(j.Title, j.Message.Text)), Begun: b.cfg.Now(),
	}
	if jobs.IsTask(j) {
		entry.Task, entry.Chat = j.Message.ID, j.Origin()
	}
	return entry.Enter(ctx, b.store)
}

// continued looks at a turn that an earlier try or a former run of the program began: it
// may have its answer already, or may have taken the program down too often.
func (b *Bridge) continued(ctx context.Context, j *jobs.Job, turn []agent.Message) (string, bool, error) {
	if i := slices.IndexFunc(turn, func(m agent.Message) bool { return m.Final }); i >= 0 {
		return turn[i].Text, true, nil
	}
	if !j.Found || j.Counted {
		return "", false, nil
	}
	if j.Resumes >= maxResumes {
		return b.failed(j, fmt.Errorf("given up after %d restarts in the middle of this turn", j.Resumes)), true, nil
	}
	j.Resumes++
	j.Counted = true
	return "", false, b.jobs.Save(ctx, j)
}

// recall searches the memory for a message. A memory that can not be read is no reason
// not to answer.
func (b *Bridge) recall(ctx context.Context, j *jobs.Job, scope toolgroups.Scope) string {
	if b.cfg.Recall == nil {
		return ""
	}
	found, err := b.cfg.Recall(ctx, scope, j.Message.Text)
	if err != nil {
		b.log.Warn("memory can not be searched", "job", j.Key(), "err", err)
	}
	return found
}

// question is the message as the conversation keeps it.
func (b *Bridge) question(j *jobs.Job, notes []string) agent.Message {
	message := agent.Message{Role: agent.RoleUser, Time: b.cfg.Now(), Text: j.Message.Text, Ref: j.Key()}
	if !j.Message.Direct {
		message.Sender = j.Message.UserName
	}
	for _, note := range append(slices.Clone(j.Message.Skipped), notes...) {
		message.Text += "\n[not received: " + note + "]"
	}
	message.Text = strings.TrimSpace(message.Text)
	return message
}

// title is what a list of conversations shows of one.
func title(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return runes.Clip(line, 60)
}

// scope says on whose behalf the tools of a turn run, and makes the workspace.
func (b *Bridge) scope(j *jobs.Job, session sessions.Session) (toolgroups.Scope, error) {
	m := j.Message
	owner := m.Owner()
	folder := workspace.Folder(b.cfg.DataDir, owner)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return toolgroups.Scope{}, fmt.Errorf("make workspace: %w", err)
	}
	return toolgroups.Scope{
		User: m.Chat.Platform + ":" + m.User, Role: b.role(m), Chat: m.Chat.String(), Direct: m.Direct,
		Owner: owner, Session: session.Log(), Workspace: folder, Scheduled: jobs.IsTask(j),
		Quota: b.cfg.WorkspaceQuota, Reserve: b.cfg.DiskReserve,
	}, nil
}

// run has the agent answer and stores each message before the agent acts on it.
func (b *Bridge) run(ctx context.Context, j *jobs.Job, h *sessions.History, scope toolgroups.Scope) (string, error) {
	groups, err := sessions.LoadedGroups(ctx, b.store, h.Log)
	if err != nil {
		return "", err
	}
	limited, cancel := context.WithTimeout(ctx, b.cfg.TurnTimeout)
	defer cancel()
	var persona Persona
	if b.cfg.Persona != nil {
		if persona, err = b.cfg.Persona(limited, scope); err != nil {
			return b.failed(j, err), b.append(context.WithoutCancel(ctx), j, h)
		}
	}
	turn := agent.Turn{
		Prompt: persona.Prompt, Tail: persona.Tail, Model: persona.Model, History: h.View(), Set: toolgroups.NewSet(b.cfg.Tools, groups), Router: b.cfg.Router, Scope: scope, CacheKey: h.Log,
		Temperature: persona.Temperature, MaxRounds: persona.MaxRounds,
		ReadFile: fileReader(scope.Workspace), Gate: b.gate(j, h), Redact: b.cfg.Redact,
	}
	if b.cfg.Observe != nil {
		chat := j.Message.Chat
		turn.Observe = func(e agent.Event) { b.cfg.Observe(chat, e) }
	}
	missing := b.watch(j, h, &turn)
	answer := ""
	for m, err := range b.cfg.Agent.Run(limited, turn) {
		if err != nil {
			return b.ended(ctx, j, h, scope, errors.Join(err, limited.Err()))
		}
		if m.Final {
			m.Text = missing.admit(h, m.Text)
			answer = m.Text
		}
		if m.Role == agent.RoleStarted {
			m.Approved = j.ApprovedBy(m)
		}
		err = b.keep(context.WithoutCancel(ctx), j, h, m)
		if errors.Is(err, storage.ErrInvalid) {
			// The model is paid for already, and its next reply is as large.
			return b.ended(ctx, j, h, scope, err)
		}
		if err != nil {
			return "", err
		}
	}
	if cause := context.Cause(ctx); cause != nil && answer == "" {
		return "", cause
	}
	if !wording.Visible(answer) {
		return b.failed(j, errors.New("the agent ended without an answer")), nil
	}
	return answer, nil
}

// append adds messages to the conversation of a job, as long as that is this process's.
func (b *Bridge) append(ctx context.Context, j *jobs.Job, h *sessions.History, messages ...agent.Message) error {
	return b.jobs.Hold(ctx, j, func() error {
		_, err := h.AppendWith(ctx, []storage.Op{storage.Check(jobs.OpenPrefix+j.Key(), j.Rev)}, messages...)
		return err
	})
}

// keep stores a message of a turn. The answer and the record that its first part is being
// sent are one write: a platform that is in order is asked next.
func (b *Bridge) keep(ctx context.Context, j *jobs.Job, h *sessions.History, m agent.Message) error {
	if !m.Final || !wording.Visible(m.Text) {
		return b.append(ctx, j, h, m)
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	j.Files = b.made(ctx, h, j.Key())
	j.Parts = b.sender.Parts(j, headed(j, m.Text))
	b.sender.Begin(j)
	err := b.jobs.Hold(ctx, j, func() error {
		record, err := j.Record()
		if err != nil {
			return err
		}
		rev, err := h.AppendWith(ctx, []storage.Op{record}, m)
		if err == nil {
			j.Rev = rev
		}
		return err
	})
	if err != nil {
		j.Parts = nil
	}
	if errors.Is(err, storage.ErrInvalid) {
		return b.append(ctx, j, h, m) // it may be the job, which is saved when it is delivered
	}
	return err
}

// ended is what becomes of a turn that the agent ended with an error: it goes on later,
// or that is its answer.
func (b *Bridge) ended(ctx context.Context, j *jobs.Job, h *sessions.History, scope toolgroups.Scope, err error) (string, error) {
	if cause := context.Cause(ctx); cause != nil {
		return "", cause
	}
	if errors.Is(err, agent.ErrSuspended) || errors.Is(err, errGate) {
		return "", err
	}
	if refused(err) {
		return b.leaveOut(context.WithoutCancel(ctx), j, h, err)
	}
	// The question stays on record: "try again" has to mean something.
	if err := b.append(context.WithoutCancel(ctx), j, h); err != nil {
		return "", err
	}
	return b.unanswered(ctx, j, scope, err)
}

// refused reports whether what is asked is what failed, so that it would fail again with
// the next message: a provider does not take it, or the answer is too large to keep. An
// unknown model or address is no such thing.
func refused(err error) bool {
	if failure, ok := errors.AsType[*agent.ModelError](err); ok {
		return failure.Kind == agent.KindRejected && failure.Status != http.StatusNotFound && failure.Status != http.StatusMethodNotAllowed
	}
	return errors.Is(err, storage.ErrInvalid)
}

// leaveOut takes a turn that failed out of what the model is shown. It stays on record.
func (b *Bridge) leaveOut(ctx context.Context, j *jobs.Job, h *sessions.History, failure error) (string, error) {
	turn, err := h.Turn(ctx, j.Key())
	if err != nil {
		return "", err
	}
	text := b.failed(j, failure)
	return text, b.append(ctx, j, h, agent.Message{
		Role: agent.RoleRefused, Time: b.cfg.Now(), Text: text, Final: true, Left: len(turn) + len(h.Staged),
	})
}

// stopTurn tells the conversation that a turn was stopped, so that the model does not
// go on with it.
func (b *Bridge) stopTurn(j *jobs.Job) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(b.lanes.Work()), storeTimeout)
	defer cancel()
	err := b.recordStop(ctx, j)
	if errors.Is(err, storage.ErrInvalid) {
		b.log.Error("a stopped turn cannot be recorded", "job", j.Key(), "err", err)
		return nil
	}
	if err != nil {
		b.log.Error("a stopped turn can not be recorded, trying again", "job", j.Key(), "err", err)
	}
	return err
}

func (b *Bridge) recordStop(ctx context.Context, j *jobs.Job) (err error) {
	if j.Generation == 0 && !j.Found {
		return nil // never begun
	}
	session, err := b.session(ctx, j)
	if err != nil {
		return err
	}
	session.Generation = cmp.Or(j.Generation, session.Generation)
	h, err := b.history.Take(ctx, session.Log())
	if err != nil {
		return err
	}
	defer func() { b.history.Give(h, err) }()
	turn, err := h.Turn(ctx, j.Key())
	if err != nil || len(turn) == 0 && j.Generation == 0 {
		return err // what a restart found may not have been begun either
	}
	if len(turn) == 0 {
		h.Stage(b.question(j, nil))
	}
	notes := agent.Stop(h.View())
	for i := range notes {
		notes[i].Time = b.cfg.Now()
	}
	if len(notes) == 0 {
		return nil
	}
	return b.append(ctx, j, h, notes...)
}
