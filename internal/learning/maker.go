package learning

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"oneclaw/agent"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/internal/budget"
	"oneclaw/storage"
	"oneclaw/toolgroups/search"
)

// Why a receipt has no case.
var (
	errRefused = errors.New("learning: somebody has said no")
	errUnfit   = errors.New("learning: the conversation cannot be exported")
)

// leftOut replaces quoted messages: others wrote them, and were not asked.
const leftOut = "[What this message points at is left out: others wrote it.]\n"

// maker makes the case of a receipt.
type maker struct {
	*export

	job   *receipts.Receipt
	names *names
	calls int
	ids   map[string]string // of the calls of the last reply
}

func (m *maker) make(ctx context.Context) (c Case, err error) {
	session, begun := conversation.Answered(ctx, m.Store, m.job)
	if !begun {
		return c, errUnfit
	}
	good, bad, err := m.judged(ctx)
	if err != nil {
		return c, err
	}
	log := session.Log()
	at, err := m.find(ctx, log)
	if err != nil {
		return c, err
	}
	turn, err := m.turn(ctx, log, at)
	if err != nil {
		return c, err
	}
	past, err := conversation.Before(ctx, m.Store, log, at, m.WindowTokens)
	if err != nil {
		return c, err
	}
	asked := agent.Arrange(append(slices.Clip(past.Messages), turn[0]))
	answered := agent.Arrange(turn[1:])
	if err := m.authors(ctx, slices.Concat(asked, answered)); err != nil {
		return c, err
	}
	c = Case{Asked: turn[0].Time, Ended: turn[len(turn)-1].Time, Seen: Seen{
		ID: m.stands.of("Case", m.job.Key()), Person: m.stands.person(m.job.Message.By()), Chat: m.stands.chat(m.job.Message.Chat.WithoutThread().String()),
		Direct: m.job.Message.Direct, Messages: m.messages(asked), Incomplete: past.Cut, Groups: past.Groups,
	}, Outcome: Outcome{Messages: m.messages(answered), Good: good, Bad: bad}}
	m.measure(&c.Outcome, turn)
	if c.check() != nil {
		return c, errUnfit
	}
	return c, nil
}

// judged counts the feedback of users who have not opted out. The author of the question must
// not have, either.
func (m *maker) judged(ctx context.Context) (good, bad int, err error) {
	no := map[string]bool{m.job.Message.By(): false}
	for _, o := range m.job.Turn.Feedback {
		no[o.By] = false
	}
	for user := range no {
		if no[user], err = m.consent.Refused(ctx, user); err != nil {
			return 0, 0, err
		}
	}
	kept := slices.DeleteFunc(slices.Clone(m.job.Turn.Feedback), func(o receipts.Feedback) bool { return no[o.By] })
	if good, bad = receipts.FeedbackCounts(kept); no[m.job.Message.By()] || good+bad == 0 {
		return 0, 0, errRefused
	}
	return good, bad, nil
}

// find returns the position of the question.
func (m *maker) find(ctx context.Context, log string) (storage.Position, error) {
	key := []byte(m.job.Key())
	for record, err := range m.Store.Records(ctx, log, storage.Query{Backward: true}) {
		if err != nil {
			return 0, fmt.Errorf("look for a question in %s: %w", log, err)
		}
		if !bytes.Contains(record.Data, key) {
			continue
		}
		if one, err := conversation.Decode(log, record); err == nil && one.Ref == m.job.Key() {
			return record.Pos, nil
		}
	}
	return 0, errUnfit
}

// turn reads the question and what follows, up to the answer.
func (m *maker) turn(ctx context.Context, log string, at storage.Position) (turn []agent.Message, err error) {
	size := 0
	for record, err := range conversation.Records(ctx, m.Store, log, storage.Query{After: at - 1}) {
		if err != nil {
			return nil, fmt.Errorf("read a turn in %s: %w", log, err)
		}
		one, err := conversation.Decode(log, record)
		if size += len(record.Data); err != nil || size > MaxLine || len(turn) > 0 && one.BeginsTurn() {
			return nil, errUnfit
		}
		turn = append(turn, one)
		if one.Final {
			return turn, nil
		}
	}
	return nil, errUnfit
}

// authors refuses messages of users who have, or may have, opted out. It names the authors.
func (m *maker) authors(ctx context.Context, messages []agent.Message) error {
	here := newNames(m.names)
	for i := range messages {
		one := &messages[i]
		if one.Role != agent.RoleUser && one.Role != agent.RoleSummary || m.job.Message.Direct {
			continue
		}
		by, err := m.author(ctx, one)
		if err != nil {
			return err
		}
		if one.Sender == "" {
			continue
		}
		if by == "" {
			by = "name:" + one.Sender
		}
		here.add(one.Sender, m.stands.person(by), true)
	}
	m.names = here
	return nil
}

// author returns the author of a message in a shared chat; empty if the author is unknown or to
// be forgotten, and no user of the platform has opted out.
func (m *maker) author(ctx context.Context, one *agent.Message) (string, error) {
	key := one.Ref + one.Joined // it has at most one of them
	entry, err := m.Store.Get(ctx, receipts.Prefix+key)
	var j receipts.Receipt
	if key == "" || errors.Is(err, storage.ErrNotFound) || err == nil && (queue.Decode(entry, &j) != nil || j.Message.User == "") {
		no, err := m.consent.anyRefused(ctx, m.job.Message.Chat.Platform)
		if no {
			err = errRefused
		}
		return "", err
	}
	if err != nil {
		return "", fmt.Errorf("look for an author: %w", err)
	}
	no, err := m.consent.Refused(ctx, j.Message.By())
	if no {
		err = errRefused
	}
	return j.Message.By(), err
}

// messages makes exportable messages.
func (m *maker) messages(all []agent.Message) []Message {
	out := make([]Message, 0, len(all))
	for i := range all {
		out = append(out, m.message(&all[i]))
	}
	return out
}

func (m *maker) message(from *agent.Message) Message {
	to := Message{
		Role: from.Role, Text: m.text(from.Text), Recalled: m.text(from.Recalled), Final: from.Final, Meanwhile: from.Joined != "",
		Tool: from.Tool, Code: from.Code,
	}
	if from.Quoted != "" {
		to.Text = leftOut + to.Text
	}
	if from.Sender != "" {
		to.Sender = m.names.known(from.Sender)
	}
	if from.Role == agent.RoleUser {
		for _, f := range from.Files {
			to.Files = append(to.Files, m.text(f.Path))
		}
	}
	if from.Role == agent.RoleAssistant {
		m.ids = map[string]string{}
	}
	for _, call := range from.Calls {
		m.calls++
		m.ids[call.ID] = "call_" + strconv.Itoa(m.calls)
		to.Calls = append(to.Calls, Call{
			ID: m.ids[call.ID], Name: call.Name, Arguments: m.text(call.Arguments), Tool: call.Tool, Input: m.text(call.Input),
		})
	}
	if from.Role == agent.RoleTool {
		to.CallID = m.ids[from.CallID]
	}
	return to
}

// text removes secrets, names, ids and contact data from a text.
func (m *maker) text(text string) string {
	masked := m.Redact(text)
	if plain := unescape(masked); plain != masked {
		masked = m.Redact(plain)
	}
	return m.stands.handles(m.names.text(m.stands.contacts(masked)))
}

// measure adds up the usage of a turn's replies.
func (m *maker) measure(out *Outcome, turn []agent.Message) {
	for i := range turn {
		one := &turn[i]
		if one.Role != agent.RoleAssistant {
			continue
		}
		out.Model, out.Routing = one.Model, string(search.Recorded(one.Routing))
		if one.Usage != nil {
			out.Used.Add(UsedBy(*one.Usage, one.Model, m.Money))
		}
	}
}

// UsedBy returns the usage of a reply.
func UsedBy(u agent.Usage, model string, money func(model string) (budget.Price, bool)) Used {
	used := Used{Rounds: 1, Input: u.Input, Cached: u.Cached, Written: u.Written, Output: u.Output}
	p, ok := money(model)
	if !ok {
		used.Unpriced = 1
		return used
	}
	used.USD = p.Of(budget.Tokens{Input: int64(u.Input), Cached: int64(u.Cached), Written: int64(u.Written), Output: int64(u.Output)}).Float()
	return used
}

// known returns the pseudonym of a whole name.
func (n *names) known(text string) string {
	for all := n; all != nil; all = all.wider {
		if stand := all.whole[normal(text)]; stand != "" {
			return stand
		}
	}
	return "Person"
}
