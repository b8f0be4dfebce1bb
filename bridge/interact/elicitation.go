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
	// Announce tells what a turn has left behind so far.
	Announce(ctx context.Context, j *queue.Run) error
	// Unpark undoes Park: the turn continues.
	Unpark(ctx context.Context, j *queue.Run)
	// AwaitSlot waits until a job has a slot again.
	AwaitSlot(ctx context.Context, j *queue.Run)
}

// Elicitation asks the questions of running tools. Memory holds only the waiting calls; questions and
// answers are stored as cards.
type Elicitation struct {
	cfg ElicitationConfig

	mu      sync.Mutex
	waiting map[string]chan struct{} // by card token; closed when the card is closed
}

// NewElicitation returns an Elicitation.
func NewElicitation(cfg ElicitationConfig) *Elicitation {
	return &Elicitation{cfg: cfg, waiting: make(map[string]chan struct{})}
}

// asker asks the questions of the calls of one run of a turn, one after another.
type asker struct {
	*Elicitation
	job      *queue.Run
	position turn.Position
	sem      chan struct{}

	mu     sync.Mutex
	counts map[string]int // how often a call, and a call with a question, has asked
}

// callKey identifies a call in its turn. Only the goroutine of the turn may call it.
func (a *asker) callKey(call toolgroups.Call) string {
	return a.position.ReplyPosition() + "/" + call.ID
}

// AskFunc returns the [agent.Turn.Ask] of a job's turn. It is nil for a task, because no user waits for
// its answer.
func (d *Elicitation) AskFunc(j *queue.Run, at turn.Position) func(context.Context, toolgroups.Call, toolgroups.Question, agent.InTurn) (toolgroups.Answer, error) {
	if turn.TaskOf(j) != nil {
		return nil
	}
	return (&asker{Elicitation: d, job: j, position: at, sem: make(chan struct{}, 1), counts: make(map[string]int)}).ask
}

func (a *asker) increment(what string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.counts[what]++
	return a.counts[what]
}

// ask asks a question and waits for the answer. If a call runs again, its question already has a card,
// and perhaps an answer.
func (a *asker) ask(ctx context.Context, call toolgroups.Call, q toolgroups.Question, inTurn agent.InTurn) (toolgroups.Answer, error) {
	decline := toolgroups.Answer{Action: toolgroups.AnswerDecline}
	fault := declineReason(&q)
	if fault == "" && a.increment(call.ID) > maxQuestions {
		fault = "its call has asked too much"
	}
	if fault != "" {
		a.cfg.Log.Warn("a tool's question is declined", "tool", call.Name, "job", a.job.Key(), "why", fault)
		decline.Fault = fault
		return decline, inTurn(func() error { return a.reportDeclined(ctx, call, &q, fault) })
	}
	select {
	case a.sem <- struct{}{}:
		defer func() { <-a.sem }()
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
			return a.EndCall(context.WithoutCancel(ctx), a.job, call.ID)
		}
		a.recordOutcome(token, receipts.Decision{Choice: string(answer.Action), By: call.User, At: a.cfg.Now()})
		return nil
	})
	if over == nil {
		a.cfg.Turns.AwaitSlot(ctx, a.job)
	}
	if err = errors.Join(err, over); err != nil {
		return decline, err
	}
	a.cfg.Log.Info("a tool's question is answered", "tool", call.Name, "job", a.job.Key(), "answer", answer.Action)
	return answer, nil
}

// postQuestion posts a question, unless it is posted already, and records that the job waits for it.
func (a *asker) postQuestion(ctx context.Context, call toolgroups.Call, q *toolgroups.Question) (string, error) {
	place := a.callKey(call)
	asked, err := json.Marshal(q)
	if err != nil {
		return "", fmt.Errorf("encode question: %w", err)
	}
	hash := queue.Hash(string(asked))
	j := a.job
	f := &form{
		Requester: j.Message.SenderID(), Name: j.Message.UserName, Direct: j.Message.Direct, ByChat: a.cfg.Cards.IsChat(j.Message.SenderID()), Tool: call.Name, Question: *q, Timeout: a.cfg.Timeout,
		Threaded: a.repliesInThreads(j.Message.Chat.Platform),
	}
	card, err := f.card()
	if err != nil {
		return "", err
	}
	card.QuotedUser, card.Expires = f.Requester, a.cfg.Now().Add(a.cfg.Timeout)
	if !j.Message.Direct {
		card.ReplyTo = j.Message.ReplyTarget()
	}
	key := fmt.Sprintf("%s/%s/%s/%s/%d", ElicitationKind, j.Key(), place, hash, a.increment(place+"/"+hash))
	token, err := a.cfg.Cards.Post(ctx, key, outbox.Address(j).Chat, card)
	if err != nil {
		return "", err
	}
	if w := turn.WorkOf(j); !slices.ContainsFunc(w.Approvals, func(known receipts.Approval) bool { return known.CardToken == token }) {
		asked := receipts.Approval{Call: place, Tool: call.Name, Hash: hash, Question: true, CardToken: token}
		a.cfg.Queue.WithLock(func() { w.Approvals = append(w.Approvals, asked) })
	}
	a.cfg.Log.Info("a tool asks a question", "tool", call.Name, "job", j.Key(), "fields", len(q.Fields))
	return token, a.cfg.Turns.Park(ctx, j)
}

func (d *Elicitation) repliesInThreads(platform string) bool {
	_, threaded := d.cfg.Platforms[platform].(chats.ThreadReplier)
	return threaded
}

// await waits until the card of a question is closed, and returns the answer. If done is closed first,
// it closes the card and accepts.
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
	kept, err := a.cfg.Cards.Get(ctx, token) // the card may have been closed before
	if err == nil && kept != nil && kept.IsOpen() {
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
	f, err := decodeForm(kept.Card)
	if err != nil || f.Answer == nil {
		return toolgroups.Answer{Action: toolgroups.AnswerCancel}, err
	}
	return *f.Answer, nil
}

// OnCardClosed wakes the call that waits for an answer to a card.
func (d *Elicitation) OnCardClosed(token string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if over, waits := d.waiting[token]; waits {
		close(over)
		delete(d.waiting, token)
	}
}

// recordOutcome records the outcome of a question in the job.
func (a *asker) recordOutcome(token string, decision receipts.Decision) {
	for i := range turn.WorkOf(a.job).Approvals {
		if entry := &turn.WorkOf(a.job).Approvals[i]; entry.CardToken == token && entry.Decision == nil {
			entry.Decision = &decision
		}
	}
}

// EndCall closes the open questions of a call that needs no answer any more: its result is recorded, or
// the wait for an answer has ended. While others wait, it tells what such a call has left behind.
func (d *Elicitation) EndCall(ctx context.Context, j *queue.Run, call string) error {
	waits := false
	for i := range turn.WorkOf(j).Approvals {
		a := &turn.WorkOf(j).Approvals[i]
		if !a.Question || a.Decision != nil {
			continue
		}
		if !strings.HasSuffix(a.Call, "/"+call) {
			waits = true
			continue
		}
		if err := d.cfg.Cards.Invalidate(ctx, a.CardToken, "⏹ **Interrupted.** What asked this has ended, so no answer is needed any more."); err != nil {
			return err
		}
		a.Decision = &receipts.Decision{Choice: receipts.ChoiceOver, At: d.cfg.Now()}
	}
	if waits {
		return d.cfg.Turns.Announce(ctx, j)
	}
	return nil
}

// AnsweredCard returns the token of the card that a message answers; empty if there is none. Users
// answer with a reply to the question, or in its thread on platforms without replies. What they write in a direct
// chat answers the model's own question, but for a file, which no answer holds.
func (d *Elicitation) AnsweredCard(ctx context.Context, m chats.Message) (string, error) {
	text := strings.TrimSpace(m.Text)
	if m.Kind != chats.KindText || text == "" || strings.HasPrefix(text, "/") {
		return "", nil
	}
	open, err := d.cfg.Cards.openInChat(ctx, ElicitationKind, m.Chat)
	for _, kept := range open {
		f, err := decodeForm(kept.Card)
		if err != nil || f.Requester != m.SenderID() || f.Question.Own && len(m.Files) > 0 {
			continue
		}
		points := func(q chats.Quoted) bool { // the reply may arrive before the ids of the question are stored
			return q.Kind == chats.RefReply && (slices.Contains(kept.IDs, q.ID) || len(kept.IDs) == 0 && q.FromBot)
		}
		own := f.Question.Own && m.Direct && len(kept.IDs) > 0
		if own || d.repliesInThreads(m.Chat.Platform) || slices.ContainsFunc(m.Quoted, points) {
			return kept.Token, nil
		}
	}
	return "", err
}

// HandleReply handles a message that answers a question.
func (d *Elicitation) HandleReply(ctx context.Context, j *queue.Run) (string, error) {
	text, err := d.cfg.Cards.handleReply(ctx, j)
	if err == nil && text == "" {
		outbox.DeliveryOf(j).Parts = []receipts.Part{} // the card shows the outcome
	}
	return text, err
}

// reportDeclined tells the user that a question was declined on their behalf, if it asked for a secret.
func (a *asker) reportDeclined(ctx context.Context, call toolgroups.Call, q *toolgroups.Question, fault string) error {
	if fault != faultSecret || q.Own { // the model is told, and says what it wanted
		return nil
	}
	_, err := a.cfg.Cards.Post(ctx, "declined/"+a.job.Key()+"/"+a.callKey(call), outbox.Address(a.job).Chat, Card{
		QuotedUser: a.job.Message.SenderID(), KeepCommands: true,
		Text: fmt.Sprintf("%s asked for something like a password. Such things do not belong into a chat, so I said no for you.", wording.EscapeRevealed(q.From)),
	})
	return err
}
