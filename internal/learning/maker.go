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
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/search"
)

// Reasons why a receipt has no case.
var (
	errOptedOut      = errors.New("learning: a user has opted out")
	errNotExportable = errors.New("learning: the conversation cannot be exported")
)

// quoteNotice replaces quoted messages, whose authors were not asked.
const quoteNotice = "[What this message points at is left out: others wrote it.]\n"

// caseBuilder makes the case of a receipt.
type caseBuilder struct {
	*export

	job   *receipts.Receipt
	names *nameIndex
	calls int
	ids   map[string]string // of the calls of the last reply
}

func (m *caseBuilder) build(ctx context.Context) (c Case, err error) {
	session, begun := conversation.AnsweredSession(ctx, m.Store, m.job)
	if !begun {
		return c, errNotExportable
	}
	good, bad, err := m.countFeedback(ctx)
	if err != nil {
		return c, err
	}
	log := session.Log()
	at, err := m.findQuestion(ctx, log)
	if err != nil {
		return c, err
	}
	turn, err := m.readTurn(ctx, log, at)
	if err != nil {
		return c, err
	}
	past, err := conversation.ReadPast(ctx, m.Store, log, at, m.WindowTokens)
	if err != nil {
		return c, err
	}
	asked := agent.Arrange(append(slices.Clip(past.Messages), turn[0]))
	answered := agent.Arrange(turn[1:])
	if err := m.checkAuthors(ctx, slices.Concat(asked, answered)); err != nil {
		return c, err
	}
	c = Case{Asked: turn[0].Time, Ended: turn[len(turn)-1].Time, Seen: Seen{
		ID: m.pseudonyms.derive("Case", m.job.Key()), Person: m.pseudonyms.person(m.job.Message.SenderID()), Chat: m.pseudonyms.chat(m.job.Message.Chat.WithoutThread().String()),
		Direct: m.job.Message.Direct, Messages: m.exportMessages(asked), Incomplete: past.Truncated, Groups: past.Groups,
	}, Outcome: Outcome{Messages: m.exportMessages(answered), Good: good, Bad: bad}}
	m.addUsage(&c.Outcome, turn)
	if c.check() != nil {
		return c, errNotExportable
	}
	return c, nil
}

// countFeedback counts the feedback of users who have not opted out. It returns errOptedOut
// if there is none, or if the author of the question has opted out.
func (m *caseBuilder) countFeedback(ctx context.Context) (good, bad int, err error) {
	no := map[string]bool{m.job.Message.SenderID(): false}
	for _, o := range m.job.Turn.Feedback {
		no[o.By] = false
	}
	for user := range no {
		if no[user], err = m.consent.HasOptedOut(ctx, user); err != nil {
			return 0, 0, err
		}
	}
	kept := slices.DeleteFunc(slices.Clone(m.job.Turn.Feedback), func(o receipts.Feedback) bool { return no[o.By] })
	if good, bad = receipts.CountFeedback(kept); no[m.job.Message.SenderID()] || good+bad == 0 {
		return 0, 0, errOptedOut
	}
	return good, bad, nil
}

// findQuestion returns the position of the question.
func (m *caseBuilder) findQuestion(ctx context.Context, log string) (storage.Position, error) {
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
	return 0, errNotExportable
}

// readTurn reads the question and what follows, up to the answer.
func (m *caseBuilder) readTurn(ctx context.Context, log string, at storage.Position) (turn []agent.Message, err error) {
	size := 0
	for record, err := range conversation.Records(ctx, m.Store, log, storage.Query{After: at - 1}) {
		if err != nil {
			return nil, fmt.Errorf("read a turn in %s: %w", log, err)
		}
		one, err := conversation.Decode(log, record)
		if size += len(record.Data); err != nil || size > MaxLine || len(turn) > 0 && one.BeginsTurn() {
			return nil, errNotExportable
		}
		turn = append(turn, one)
		if one.Final {
			return turn, nil
		}
	}
	return nil, errNotExportable
}

// checkAuthors adds the names of the messages' authors to the index. It returns errOptedOut if an
// author may have opted out.
func (m *caseBuilder) checkAuthors(ctx context.Context, messages []agent.Message) error {
	here := newNameIndex(m.names)
	for i := range messages {
		one := &messages[i]
		if one.Role != agent.RoleUser && one.Role != agent.RoleSummary || m.job.Message.Direct {
			continue
		}
		by, err := m.findAuthor(ctx, one)
		if err != nil {
			return err
		}
		if one.Sender == "" {
			continue
		}
		if by == "" {
			by = "name:" + one.Sender
		}
		here.add(one.Sender, m.pseudonyms.person(by), true)
	}
	m.names = here
	return nil
}

// findAuthor returns the author of a message in a shared chat, or errOptedOut. An author who is
// unknown, or was forgotten, is "", but counts as opted out if any user of the platform has.
func (m *caseBuilder) findAuthor(ctx context.Context, one *agent.Message) (string, error) {
	key := one.Ref + one.JoinedRef // it has at most one of them
	entry, err := m.Store.Get(ctx, receipts.Prefix+key)
	var j receipts.Receipt
	if key == "" || errors.Is(err, storage.ErrNotFound) || err == nil && (queue.Decode(entry, &j) != nil || j.Message.User == "") {
		no, err := m.consent.anyOptedOut(ctx, m.job.Message.Chat.Platform)
		if no {
			err = errOptedOut
		}
		return "", err
	}
	if err != nil {
		return "", fmt.Errorf("look for an author: %w", err)
	}
	no, err := m.consent.HasOptedOut(ctx, j.Message.SenderID())
	if no {
		err = errOptedOut
	}
	return j.Message.SenderID(), err
}

// exportMessages returns messages as they are exported.
func (m *caseBuilder) exportMessages(all []agent.Message) []agent.Message {
	out := make([]agent.Message, 0, len(all))
	for i := range all {
		out = append(out, m.exportMessage(&all[i]))
	}
	return out
}

// meanwhile replaces the key of a message that arrived while the question was being answered.
const meanwhile = "meanwhile"

// exportMessage returns the part of a message that a model sees and that may be exported.
func (m *caseBuilder) exportMessage(from *agent.Message) agent.Message {
	to := agent.Message{
		Role: from.Role, Text: m.anonymize(from.Text), Recalled: m.anonymize(from.Recalled), Final: from.Final,
		Tool: from.Tool, Status: from.Status, Code: from.Code,
	}
	if from.Quoted != "" {
		to.Text = quoteNotice + to.Text
	}
	if from.Sender != "" {
		to.Sender = m.names.pseudonymOf(from.Sender)
	}
	if from.JoinedRef != "" {
		to.JoinedRef = meanwhile
	}
	if from.Role == agent.RoleUser {
		for _, f := range from.Files {
			to.Files = append(to.Files, toolgroups.File{Path: m.anonymize(f.Path)})
		}
	}
	if from.Role == agent.RoleAssistant {
		m.ids = map[string]string{}
	}
	for _, call := range from.Calls {
		m.calls++
		m.ids[call.ID] = "call_" + strconv.Itoa(m.calls)
		call.ID, call.Arguments, call.Input = m.ids[call.ID], m.anonymize(call.Arguments), m.anonymize(call.Input)
		to.Calls = append(to.Calls, call)
	}
	if from.Role == agent.RoleTool {
		to.CallID = m.ids[from.CallID]
	}
	return to
}

// anonymize removes secrets, names, ids and contact data from a text.
func (m *caseBuilder) anonymize(text string) string {
	masked := m.Redact(text)
	if plain := unescape(masked); plain != masked {
		masked = m.Redact(plain)
	}
	return m.pseudonyms.replaceHandles(m.names.text(m.pseudonyms.replaceContacts(masked)))
}

// addUsage adds up the usage of a turn's replies.
func (m *caseBuilder) addUsage(out *Outcome, turn []agent.Message) {
	for i := range turn {
		one := &turn[i]
		if one.Role != agent.RoleAssistant {
			continue
		}
		out.Model, out.Routing = one.Model, string(search.RecordedRouting(one.Routing))
		if one.Usage != nil {
			out.Used.Add(UsageOf(*one.Usage, one.Model, m.Price))
		}
	}
}

// UsageOf returns the usage of a reply.
func UsageOf(u agent.Usage, model string, money func(model string) (budget.Price, bool)) Usage {
	used := Usage{Rounds: 1, Input: u.Input, Cached: u.Cached, Written: u.CacheWritten, Output: u.Output}
	p, ok := money(model)
	if !ok {
		used.Unpriced = 1
		return used
	}
	used.USD = p.Cost(budget.TokensOf(u)).Float()
	return used
}

// pseudonymOf returns the pseudonym of a whole name, or "Person" if the name is not in the index.
func (n *nameIndex) pseudonymOf(text string) string {
	for all := n; all != nil; all = all.parent {
		if stand := all.fullNames[normalizeName(text)]; stand != "" {
			return stand
		}
	}
	return "Person"
}
