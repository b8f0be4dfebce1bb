package bridge

import (
	"container/list"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"oneclaw/agent"
	"oneclaw/storage"
)

// history is the end of a conversation as its log has it, compacted as
// [agent.Compacted] does: enough for the window of a turn. What is appended goes to
// the log first. It belongs to one goroutine at a time.
type history struct {
	store storage.Store
	log   string
	// staged is the question of a turn, kept until there is something to write after
	// it: its job has it on disk, so one write for both is enough.
	staged   []agent.Message
	messages []agent.Message
	sizes    []int
	at       []storage.Position
	size     int
	last     storage.Position
	window   int
	// cut says that messages were let go that no summary stands for.
	cut bool
	// damaged are the records that were skipped when it was read.
	damaged []*damagedError
	// rest is until when no summary is tried, after one that failed.
	rest time.Time
}

// stage puts a message into the view; the next append writes it first.
func (h *history) stage(m agent.Message) { h.staged = append(h.staged, m) }

// append writes messages to the log, behind the staged ones, then to the window.
func (h *history) append(ctx context.Context, messages ...agent.Message) error {
	_, err := h.appendWith(ctx, nil, messages...)
	return err
}

// appendWith is append and other operations in one write, whose revision it returns.
func (h *history) appendWith(ctx context.Context, others []storage.Op, messages ...agent.Message) (storage.Revision, error) {
	messages = append(h.staged, messages...)
	if len(messages) == 0 {
		return 0, nil
	}
	records := make([]storage.Record, 0, len(messages))
	for _, m := range messages {
		record, err := encodeMessage(m)
		if err != nil {
			return 0, fmt.Errorf("append to %s: %w", h.log, err)
		}
		records = append(records, record)
	}
	rev, err := h.store.Write(ctx, append(others, storage.Append(h.log, h.last, records...))...)
	if err != nil {
		return 0, fmt.Errorf("append to %s: %w", h.log, err)
	}
	h.staged = nil
	for i, m := range messages {
		h.last++
		h.add(m, len(records[i].Data), h.last)
	}
	return rev, nil
}

// add puts a message that was written at a position into the copy.
func (h *history) add(m agent.Message, size int, pos storage.Position) {
	if m.Role == agent.RoleRefused {
		from := firstRefused(&m, pos)
		h.keep(func(i int) bool { return h.at[i] < from })
		return
	}
	h.messages, h.sizes, h.at = append(h.messages, m), append(h.sizes, size), append(h.at, pos)
	h.size += size
	if m.Role == agent.RoleSummary {
		from, n := firstKept(&m, pos), len(h.at)-1
		h.keep(func(i int) bool { return i == n || h.messages[i].Role != agent.RoleSummary && h.at[i] >= from })
		h.toFront()
		return
	}
	// Twice the window is kept before the oldest are let go, so that it is seldom done.
	if h.size <= 2*h.window {
		return
	}
	excess, last := h.size-h.window, len(h.messages)-1
	h.keep(func(i int) bool {
		if excess <= 0 || i == last || h.messages[i].Role == agent.RoleSummary {
			return true
		}
		excess -= h.sizes[i]
		h.cut = true
		return false
	})
}

// keep lets go all messages but some, in memory of its own: views stay as they are.
func (h *history) keep(which func(i int) bool) {
	var messages []agent.Message
	var sizes []int
	var at []storage.Position
	size := 0
	for i := range h.messages {
		if which(i) {
			messages, sizes, at = append(messages, h.messages[i]), append(sizes, h.sizes[i]), append(at, h.at[i])
			size += h.sizes[i]
		}
	}
	h.messages, h.sizes, h.at, h.size = messages, sizes, at, size
}

// toFront moves the last message, a summary, in front of what it kept.
func (h *history) toFront() {
	n := len(h.messages) - 1
	h.messages = slices.Insert(h.messages[:n:n], 0, h.messages[n])
	h.sizes = slices.Insert(h.sizes[:n:n], 0, h.sizes[n])
	h.at = slices.Insert(h.at[:n:n], 0, h.at[n])
}

// view is the window for a turn. What is appended later does not change it: the staged
// messages stand where append will put them, so that a long history is not copied.
func (h *history) view() []agent.Message {
	return slices.Clip(append(h.messages, h.staged...))
}

// turn returns a turn from its question on, which has the given Ref; nothing where the
// log does not have that. A turn can be larger than the window.
func (h *history) turn(ctx context.Context, ref string) ([]agent.Message, error) {
	if indexOf(h.staged, ref) >= 0 {
		return nil, nil
	}
	at := indexOf(h.messages, ref)
	if at >= 0 && int(h.last-h.at[at]) == len(h.at)-1-at {
		return h.messages[at:], nil
	}
	if at < 0 && int(h.last) == len(h.at) {
		return nil, nil // all there is
	}
	var turn []agent.Message
	for m, err := range RecentMessages(ctx, h.store, h.log) {
		if isDamaged(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look for a turn in %s: %w", h.log, err)
		}
		turn = append(turn, m)
		switch {
		case m.Ref == ref:
			slices.Reverse(turn)
			return turn, nil
		case m.Ref != "":
			return nil, nil // the turns of a conversation follow each other
		}
	}
	return nil, nil
}

// lead has the window of a turn begin with its question, where that was let go: a model
// has to see what it works on.
func (h *history) lead(turn []agent.Message) {
	question := turn[0]
	if indexOf(h.messages, question.Ref) >= 0 {
		return
	}
	n := 0
	if len(h.messages) > 0 && h.messages[0].Role == agent.RoleSummary {
		n = 1
	}
	h.messages = slices.Insert(slices.Clone(h.messages), n, question)
	h.sizes = slices.Insert(slices.Clone(h.sizes), n, len(question.Text))
	h.at = slices.Insert(slices.Clone(h.at), n, h.last+1-storage.Position(len(turn)))
	h.size += len(question.Text)
}

// historyCache keeps the ends of conversations between turns. It is only ever a copy:
// an append to a log that has grown meanwhile is a conflict, and the copy is dropped.
type historyCache struct {
	store  storage.Store
	window int // bytes

	mu     sync.Mutex
	size   int
	recent *list.List // of *history, the most recently used first
	byLog  map[string]*list.Element
}

// maxCached bounds the bytes of all conversations that are kept between turns.
const maxCached = 32 << 20

func newHistoryCache(store storage.Store, windowTokens int) *historyCache {
	return &historyCache{store: store, window: 4 * windowTokens, recent: list.New(), byLog: make(map[string]*list.Element)}
}

// take returns the end of a conversation for the caller alone, to be given back.
func (c *historyCache) take(ctx context.Context, log string) (*history, error) {
	c.mu.Lock()
	if e := c.byLog[log]; e != nil {
		h := c.remove(e)
		c.mu.Unlock()
		return h, nil
	}
	c.mu.Unlock()
	return readHistory(ctx, c.store, log, c.window)
}

// give keeps a history for the next turn, unless its last append failed.
func (c *historyCache) give(h *history, err error) {
	if err != nil {
		return
	}
	h.staged = nil
	c.mu.Lock()
	defer c.mu.Unlock()
	c.byLog[h.log] = c.recent.PushFront(h)
	c.size += h.size
	for c.size > maxCached {
		c.remove(c.recent.Back())
	}
}

func (c *historyCache) remove(e *list.Element) *history {
	h := c.recent.Remove(e).(*history)
	delete(c.byLog, h.log)
	c.size -= h.size
	return h
}

// readHistory reads a log backward until the window is full or the newest summary stands
// for the rest. The summary is read in any case.
func readHistory(ctx context.Context, store storage.Store, log string, window int) (*history, error) {
	h := &history{store: store, log: log, window: window}
	first := storage.Position(1)    // of those that no summary stands for
	refused := ^storage.Position(0) // where the refused exchange begins that was met last
	var summary *agent.Message
	var at storage.Position
	for record, err := range store.Records(ctx, log, storage.Query{Backward: true}) {
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", log, err)
		}
		h.last = max(h.last, record.Pos)
		if record.Pos < first || h.size > window {
			h.cut = record.Pos >= first
			break
		}
		if record.Pos >= refused {
			continue
		}
		m, err := decodeMessage(log, record)
		if d, is := errors.AsType[*damagedError](err); is {
			h.damaged = append(h.damaged, d)
			continue
		}
		switch {
		case m.Role == agent.RoleRefused:
			refused = firstRefused(&m, record.Pos)
		case m.Role != agent.RoleSummary:
			h.messages, h.sizes, h.at = append(h.messages, m), append(h.sizes, len(record.Data)), append(h.at, record.Pos)
			h.size += len(record.Data)
		case summary == nil:
			summary, at, first = &m, record.Pos, firstKept(&m, record.Pos)
		}
	}
	if summary == nil && h.cut {
		var err error
		if summary, at, err = newestSummary(ctx, store, log); err != nil {
			return nil, err
		}
	}
	if summary != nil {
		h.cut = h.cut && h.at[len(h.at)-1] > firstKept(summary, at)
		h.messages, h.sizes, h.at = append(h.messages, *summary), append(h.sizes, len(summary.Text)), append(h.at, at)
		h.size += len(summary.Text)
	}
	slices.Reverse(h.messages)
	slices.Reverse(h.sizes)
	slices.Reverse(h.at)
	return h, nil
}

// encodeMessage makes the record of a message. One that is larger than a record can be is
// [storage.ErrInvalid]: trying again does not help.
func encodeMessage(m agent.Message) (storage.Record, error) {
	data, err := json.Marshal(m)
	if err != nil {
		return storage.Record{}, fmt.Errorf("encode message: %w", err)
	}
	if len(data) > storage.MaxValue {
		return storage.Record{}, fmt.Errorf("%w: a message of %d bytes, at most %d", storage.ErrInvalid, len(data), storage.MaxValue)
	}
	return storage.Record{Label: m.Label(), Data: data}, nil
}

func decodeMessage(log string, r storage.Record) (agent.Message, error) {
	var m agent.Message
	if err := json.Unmarshal(r.Data, &m); err != nil {
		return m, &damagedError{key: log, data: r.Data, pos: r.Pos, err: err}
	}
	return m, nil
}

// Messages yields a conversation from its first message on. A record that cannot be
// decoded is yielded as an error, and the others after it.
func Messages(ctx context.Context, store storage.Log, log string) iter.Seq2[agent.Message, error] {
	return messages(ctx, store, log, storage.Query{})
}

// RecentMessages yields a conversation from its newest message back.
func RecentMessages(ctx context.Context, store storage.Log, log string) iter.Seq2[agent.Message, error] {
	return messages(ctx, store, log, storage.Query{Backward: true})
}

// RecentMatches is [RecentMessages] without the messages whose record, as JSON, is not
// wanted: those are not decoded.
func RecentMatches(ctx context.Context, store storage.Log, log string, wanted func(record []byte) bool) iter.Seq2[agent.Message, error] {
	return func(yield func(agent.Message, error) bool) {
		for record, err := range store.Records(ctx, log, storage.Query{Backward: true}) {
			var m agent.Message
			switch {
			case err != nil:
			case !wanted(record.Data):
				continue
			default:
				m, err = decodeMessage(log, record)
			}
			if !yield(m, err) {
				return
			}
		}
	}
}

func messages(ctx context.Context, store storage.Log, log string, q storage.Query) iter.Seq2[agent.Message, error] {
	return func(yield func(agent.Message, error) bool) {
		for record, err := range store.Records(ctx, log, q) {
			var m agent.Message
			if err == nil {
				m, err = decodeMessage(log, record)
			}
			if !yield(m, err) {
				return
			}
		}
	}
}

// LoadedGroups returns the groups that a conversation has loaded, in first-load order,
// as its log tells. Only the labelled records are read.
func LoadedGroups(ctx context.Context, store storage.Log, log string) ([]string, error) {
	var failure error
	groups := agent.RestoreGroups(func(yield func(agent.Message) bool) {
		for m, err := range messages(ctx, store, log, storage.Query{Label: agent.LabelLoad}) {
			if isDamaged(err) {
				continue // what it loaded can be loaded again
			}
			if err != nil {
				failure = errors.Join(failure, err)
				continue
			}
			if !yield(m) {
				return
			}
		}
	})
	if failure != nil {
		return nil, fmt.Errorf("restore groups of %s: %w", log, failure)
	}
	return groups, nil
}
