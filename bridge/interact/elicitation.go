package interact

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/bridge/turn"
	"oneclaw/internal/wording"
	"oneclaw/toolgroups"
)

// ElicitationKind is the [Card.Kind] of a question.
const ElicitationKind = "question"

// maxQuestions bounds the questions of one call.
const maxQuestions = 5

// ElicitationConfig configures an [Elicitation].
type ElicitationConfig struct {
	// Platforms are all platforms, by name.
	Platforms map[string]chats.Platform
	Log       *slog.Logger
	Now       func() time.Time
	Cards     *Cards
	// Timeout is how long a question waits for its answer.
	Timeout time.Duration
	// Turns parks the turns that ask.
	Turns Turns
	Queue Queue
}

// Turns parks running turns. Its methods are called by the goroutine of the turn.
type Turns interface {
	// Park stores a job whose turn waits for a user, and frees its slot.
	Park(ctx context.Context, j *queue.Run) error
	// Unpark ends that: the turn continues.
	Unpark(ctx context.Context, j *queue.Run)
	// AwaitSlot waits until a job has a slot again.
	AwaitSlot(ctx context.Context, j *queue.Run)
}

// Elicitation asks the questions of running tools. Memory holds only which calls wait here; questions
// and answers are cards.
type Elicitation struct {
	cfg ElicitationConfig

	mu      sync.Mutex
	waiting map[string]chan struct{} // by card token: closed with its card
}

// NewElicitation returns an Elicitation.
func NewElicitation(cfg ElicitationConfig) *Elicitation {
	return &Elicitation{cfg: cfg, waiting: make(map[string]chan struct{})}
}

// asker asks the questions of the calls of one run of a turn, one after another.
type asker struct {
	*Elicitation
	job *queue.Run
	at  turn.Position
	one chan struct{}

	mu    sync.Mutex
	asked map[string]int // how often, by call, and by call and question
}

// place identifies a call in its conversation. Only the goroutine of the turn may call it.
func (a *asker) place(call toolgroups.Call) string { return a.at.ReplyPosition() + "/" + call.ID }

// For returns the [agent.Turn.Ask] of a job's turn. It is nil for a task, which no user attends.
func (d *Elicitation) For(j *queue.Run, at turn.Position) func(context.Context, toolgroups.Call, toolgroups.Question, agent.InTurn) (toolgroups.Answer, error) {
	if turn.TaskOf(j) != nil {
		return nil
	}
	return (&asker{Elicitation: d, job: j, at: at, one: make(chan struct{}, 1), asked: make(map[string]int)}).ask
}

func (a *asker) count(what string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked[what]++
	return a.asked[what]
}

// ask asks, and waits for the answer. If a call is run again, the same question already has its card,
// and perhaps its answer.
func (a *asker) ask(ctx context.Context, call toolgroups.Call, q toolgroups.Question, inTurn agent.InTurn) (toolgroups.Answer, error) {
	decline := toolgroups.Answer{Action: toolgroups.AnswerDecline}
	fault := whyDeclined(&q)
	if fault == "" && a.count(call.ID) > maxQuestions {
		fault = "its call has asked too much"
	}
	if fault != "" {
		a.cfg.Log.Warn("a question of a tool is declined", "tool", call.Name, "job", a.job.Key(), "why", fault)
		return decline, inTurn(func() error { return a.refused(ctx, call, &q, fault) })
	}
	select {
	case a.one <- struct{}{}:
		defer func() { <-a.one }()
	case <-ctx.Done():
		return decline, fmt.Errorf("ask: %w", context.Cause(ctx))
	}
	var token string
	err := inTurn(func() (err error) {
		token, err = a.postQuestion(ctx, call, &q)
		return err
	})
	if errors.Is(err, ErrNoButtons) {
		return decline, nil
	}
	if err != nil {
		return decline, err
	}
	answer, err := a.await(ctx, token, q.Done)
	over := inTurn(func() error {
		a.cfg.Turns.Unpark(ctx, a.job)
		if err != nil { // the call continues, so the question is withdrawn
			return a.Ended(context.WithoutCancel(ctx), a.job, call.ID)
		}
		a.close(token, receipts.Decision{Choice: string(answer.Action), By: call.User, At: a.cfg.Now()})
		return nil
	})
	if over == nil {
		a.cfg.Turns.AwaitSlot(ctx, a.job)
	}
	if err = errors.Join(err, over); err != nil {
		return decline, err
	}
	a.cfg.Log.Info("a question of a tool is answered", "tool", call.Name, "job", a.job.Key(), "answer", answer.Action)
	return answer, nil
}

// postQuestion posts a question, unless it is posted, and records that the job waits for it.
func (a *asker) postQuestion(ctx context.Context, call toolgroups.Call, q *toolgroups.Question) (string, error) {
	place := a.place(call)
	asked, err := json.Marshal(q)
	if err != nil {
		return "", fmt.Errorf("encode question: %w", err)
	}
	hash := queue.Hash(string(asked))
	j := a.job
	f := &form{
		Requester: j.Message.By(), Name: j.Message.UserName, Direct: j.Message.Direct, Tool: call.Name, Question: *q, Within: a.cfg.Timeout,
		Threaded: a.threaded(j.Message.Chat.Platform),
	}
	card, err := f.card()
	if err != nil {
		return "", err
	}
	card.Of, card.Expires = f.Requester, a.cfg.Now().Add(a.cfg.Timeout)
	if !j.Message.Direct {
		card.ReplyTo = j.Message.ReplyTarget()
	}
	key := fmt.Sprintf("%s/%s/%s/%s/%d", ElicitationKind, call.Session, place, hash, a.count(place+"/"+hash))
	token, err := a.cfg.Cards.Post(ctx, key, outbox.Address(j).Chat, card)
	if err != nil {
		return "", err
	}
	if w := turn.Of(j); !slices.ContainsFunc(w.Approvals, func(known receipts.Approval) bool { return known.Card == token }) {
		asked := receipts.Approval{Call: place, Tool: call.Name, Hash: hash, Question: true, Card: token}
		a.cfg.Queue.Change(func() { w.Approvals = append(w.Approvals, asked) })
	}
	a.cfg.Log.Info("a tool asks", "tool", call.Name, "job", j.Key(), "fields", len(q.Fields))
	return token, a.cfg.Turns.Park(ctx, j)
}

func (d *Elicitation) threaded(platform string) bool {
	_, threaded := d.cfg.Platforms[platform].(chats.ThreadReplier)
	return threaded
}

// await waits until a question is answered.
func (a *asker) await(ctx context.Context, token string, done <-chan struct{}) (toolgroups.Answer, error) {
	over := make(chan struct{})
	a.Elicitation.mu.Lock()
	a.waiting[token] = over
	a.Elicitation.mu.Unlock()
	defer func() {
		a.Elicitation.mu.Lock()
		defer a.Elicitation.mu.Unlock()
		delete(a.waiting, token)
	}()
	kept, err := a.cfg.Cards.Get(ctx, token) // it may have been closed before
	if err == nil && kept != nil && kept.Open() {
		select {
		case <-over:
		case <-done:
			err = a.cfg.Cards.Invalidate(ctx, token, "✅ **Done.**")
			return toolgroups.Answer{Action: toolgroups.AnswerAccept}, err
		case <-ctx.Done():
			return toolgroups.Answer{}, fmt.Errorf("wait for an answer: %w", context.Cause(ctx))
		}
		kept, err = a.cfg.Cards.Get(ctx, token)
	}
	if err != nil || kept == nil {
		return toolgroups.Answer{Action: toolgroups.AnswerCancel}, err
	}
	f, err := formOf(kept.Card)
	if err != nil || f.Answer == nil {
		return toolgroups.Answer{Action: toolgroups.AnswerCancel}, err
	}
	return *f.Answer, nil
}

// CardClosed wakes the call that waits for an answer to a card.
func (d *Elicitation) CardClosed(token string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if over, waits := d.waiting[token]; waits {
		close(over)
		delete(d.waiting, token)
	}
}

// close records the outcome of a question in the job.
func (a *asker) close(token string, decision receipts.Decision) {
	for i := range turn.Of(a.job).Approvals {
		if entry := &turn.Of(a.job).Approvals[i]; entry.Card == token && entry.Decision == nil {
			entry.Decision = &decision
		}
	}
}

// Ended closes open questions of a call whose result is recorded: it was cut off, or its server no
// longer wants the answer.
func (d *Elicitation) Ended(ctx context.Context, j *queue.Run, call string) error {
	for i := range turn.Of(j).Approvals {
		a := &turn.Of(j).Approvals[i]
		if !a.Question || a.Decision != nil || !strings.HasSuffix(a.Call, "/"+call) {
			continue
		}
		if err := d.cfg.Cards.Invalidate(ctx, a.Card, "⏹ **Interrupted.** What asked this has ended, so no answer is needed any more."); err != nil {
			return err
		}
		a.Decision = &receipts.Decision{Choice: receipts.ChoiceOver, At: d.cfg.Now()}
	}
	return nil
}

// Answers returns the card that a message answers; empty if none. Users answer with a reply to the
// question, or in its thread on platforms without replies.
func (d *Elicitation) Answers(ctx context.Context, m chats.Message) (string, error) {
	text := strings.TrimSpace(m.Text)
	if m.Kind != chats.KindText || text == "" || strings.HasPrefix(text, "/") {
		return "", nil
	}
	open, err := d.cfg.Cards.Waits(ctx, ElicitationKind, m.Chat)
	for _, kept := range open {
		f, err := formOf(kept.Card)
		if err != nil || f.Requester != m.By() {
			continue
		}
		points := func(q chats.Quoted) bool { // it may arrive before the message's id is stored
			return q.How == chats.PointReply && (slices.Contains(kept.IDs, q.ID) || len(kept.IDs) == 0 && q.Own)
		}
		if d.threaded(m.Chat.Platform) || slices.ContainsFunc(m.Quoted, points) {
			return kept.Token, nil
		}
	}
	return "", err
}

// Reply handles a message that answers a question.
func (d *Elicitation) Reply(ctx context.Context, j *queue.Run) (string, error) {
	text, err := d.cfg.Cards.Reply(ctx, j)
	if err == nil && text == "" {
		outbox.Of(j).Parts = []receipts.Part{} // the card says it
	}
	return text, err
}

// refused tells the user that a question was declined for them, if they should know.
func (a *asker) refused(ctx context.Context, call toolgroups.Call, q *toolgroups.Question, fault string) error {
	if fault != faultSecret {
		return nil
	}
	_, err := a.cfg.Cards.Post(ctx, "declined/"+call.Session+"/"+a.place(call), outbox.Address(a.job).Chat, Card{
		Of: a.job.Message.By(), Exact: true,
		Text: fmt.Sprintf("%s asked for something like a password. Such things do not belong into a chat, so I said no for you.", wording.Shown(q.From)),
	})
	return err
}
