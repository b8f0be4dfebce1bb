package conversation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge/queue"
	"oneclaw/storage"
)

// History is the end of a conversation, read from its log and compacted by [agent.CompactedHistory]:
// enough for the window of a turn. Messages are appended to the log before they are added to the
// History. It belongs to one goroutine at a time.
type History struct {
	store storage.Store
	Log   string
	// Staged is the question of a turn, with the agent's records in front of its first reply, kept until
	// the next write. The question is on disk in the job, so one write for all is enough.
	Staged    []agent.Message
	authorOps []storage.Op // written with Staged
	// Charges, if not nil, are stored with the messages of a turn that they paid for.
	Charges   Charges
	Messages  []agent.Message
	sizes     []int
	positions []storage.Position
	size      int // bytes
	Last      storage.Position
	Window    int // bytes
	// Truncated is set if messages were dropped that no summary covers.
	Truncated bool
	// Damaged are the records that were skipped while reading.
	Damaged []*queue.DamagedError
	// groups are the loaded groups, if known.
	groups      []string
	groupsKnown bool
	// NoSummaryUntil is the time until which no summary is attempted after a failed one.
	NoSummaryUntil time.Time

	readAt  time.Time
	lastPut int64 // when it was last put into the cache
	era     int64 // of the cache when it was read
}

// Charges are what the calls of models cost that are not stored yet.
type Charges interface {
	// Take returns the operations that store the charges, for a write that stores a message. done is called
	// with the outcome of the write. After a conflict, the charges are taken again by the next write.
	Take() (ops []storage.Op, done func(err error))
	// Flush stores the charges for which there is no message.
	Flush()
}

// Append writes messages to the log, after the staged ones and together with other operations, and
// returns the revision of the write. Then it adds the messages to the window. If there are no messages,
// it writes nothing, not even the other operations.
func (h *History) Append(ctx context.Context, others []storage.Op, messages ...agent.Message) (rev storage.Revision, err error) {
	messages = append(h.Staged, messages...)
	if len(messages) == 0 {
		return 0, nil
	}
	records := make([]storage.Record, 0, len(messages))
	for _, m := range messages {
		record, err := Encode(m)
		if err != nil {
			return 0, fmt.Errorf("append to %s: %w", h.Log, err)
		}
		records = append(records, record)
	}
	if len(h.Staged) > 0 {
		others = slices.Concat(h.authorOps, others)
	}
	if h.Charges != nil {
		ops, done := h.Charges.Take()
		others = slices.Concat(others, ops)
		defer func() { done(err) }()
	}
	rev, err = h.store.Write(ctx, append(others, storage.Append(h.Log, h.Last, records...))...)
	if err != nil {
		return 0, fmt.Errorf("append to %s: %w", h.Log, err)
	}
	h.Staged = nil
	for i, m := range messages {
		h.groupsKnown = h.groupsKnown && records[i].Label != agent.LabelLoad
		m.Overheard = "" // the log does not have ambient messages
		h.Last++
		if m.Role == agent.RoleRefused {
			from := firstRefused(&m, h.Last)
			h.retain(func(i int) bool { return h.positions[i] < from })
			continue
		}
		size := len(records[i].Data)
		h.Messages, h.sizes, h.positions = append(h.Messages, m), append(h.sizes, size), append(h.positions, h.Last)
		h.size += size
		if m.Role == agent.RoleSummary {
			h.applySummary(&m)
		} else if h.size > 2*h.Window { // so that this is rare
			h.dropOldest()
		}
	}
	return rev, nil
}

// LoadedGroups returns the [LoadedGroups] of the conversation. They are read once until another group is
// loaded.
func (h *History) LoadedGroups(ctx context.Context) (groups []string, err error) {
	if !h.groupsKnown {
		if h.groups, err = LoadedGroups(ctx, h.store, h.Log); err != nil {
			return nil, err
		}
		h.groupsKnown = true
	}
	return slices.Clone(h.groups), nil
}

// applySummary moves the last message, a summary, in front of the messages that it keeps.
func (h *History) applySummary(m *agent.Message) {
	from, n := firstKept(m, h.Last), len(h.positions)-1
	h.retain(func(i int) bool { return i == n || h.Messages[i].Role != agent.RoleSummary && h.positions[i] >= from })
	n = len(h.Messages) - 1
	h.Messages = slices.Insert(h.Messages[:n:n], 0, h.Messages[n])
	h.sizes = slices.Insert(h.sizes[:n:n], 0, h.sizes[n])
	h.positions = slices.Insert(h.positions[:n:n], 0, h.positions[n])
}

// dropOldest drops the oldest messages that do not fit into the window.
func (h *History) dropOldest() {
	excess, last := h.size-h.Window, len(h.Messages)-1
	h.retain(func(i int) bool {
		if excess <= 0 || i == last || h.Messages[i].Role == agent.RoleSummary {
			return true
		}
		excess -= h.sizes[i]
		h.Truncated = true
		return false
	})
}

// retain drops all messages except those for which which returns true. It copies the rest, so that views
// do not change.
func (h *History) retain(which func(i int) bool) {
	var messages []agent.Message
	var sizes []int
	var at []storage.Position
	size := 0
	for i := range h.Messages {
		if which(i) {
			messages, sizes, at = append(messages, h.Messages[i]), append(sizes, h.sizes[i]), append(at, h.positions[i])
			size += h.sizes[i]
		}
	}
	h.Messages, h.sizes, h.positions, h.size = messages, sizes, at, size
}

// View returns the window for a turn. Later appends do not change it. The view shares the history's
// memory, so that a long history is not copied: Append puts the staged messages where the view already
// has them.
func (h *History) View() []agent.Message {
	if !h.IsShortened() {
		return slices.Clip(append(h.Messages, h.Staged...))
	}
	head := h.Staged[0]
	from := firstKept(&head, h.Last+1)
	head.Kept = 0 // the messages that it counts are already in place
	view := []agent.Message{head}
	for i, m := range h.Messages {
		if h.positions[i] >= from && m.Role != agent.RoleSummary {
			view = append(view, m)
		}
	}
	return append(view, h.Staged[1:]...)
}

// textShortened replaces the messages that [History.DropOlderTurns] drops.
const textShortened = "[What was said before is left out here, because the provider of the language model refuses a part of it. It is on record: a search of the history finds it.]"

// IsShortened reports whether the staged messages begin with the record of [History.DropOlderTurns].
func (h *History) IsShortened() bool {
	return len(h.Staged) > 1 && h.Staged[0].Role == agent.RoleSummary
}

// DropOlderTurns stages a record in front of the staged question that drops the older two thirds of the
// earlier turns that the model was last shown. It returns false, with the question alone staged, if none
// is left.
func (h *History) DropOlderTurns(now time.Time) bool {
	from := storage.Position(0)
	question := h.Staged[slices.IndexFunc(h.Staged, func(m agent.Message) bool { return m.Role == agent.RoleUser })]
	if h.IsShortened() {
		from = firstKept(&h.Staged[0], h.Last+1)
	}
	var turns []storage.Position
	routing, shown := "", false
	for i := range h.Messages {
		m := &h.Messages[i]
		routing = cmp.Or(m.Routing, routing)
		if h.positions[i] < from {
			continue
		}
		if shown = true; m.BeginsTurn() {
			turns = append(turns, h.positions[i])
		}
	}
	if !shown {
		h.Staged = []agent.Message{question}
		return false
	}
	head := agent.Message{Role: agent.RoleSummary, Time: now, Text: textShortened, Routing: routing, Gated: agent.GatedCalls(h.Messages)}
	if n := len(turns) / 3; n > 0 {
		head.Kept = int(h.Last + 1 - turns[len(turns)-n]) //nolint:gosec // logs are shorter
	}
	h.Staged = []agent.Message{head, question}
	return true
}

// LastRefused reports whether the newest exchange was dropped because a model refused it.
func (h *History) LastRefused(ctx context.Context) (bool, error) {
	for record, err := range h.store.Records(ctx, h.Log, storage.Query{Label: agent.LabelRefused, Backward: true, Limit: 1}) {
		if err != nil {
			return false, fmt.Errorf("look for refusals in %s: %w", h.Log, err)
		}
		return record.Pos == h.Last, nil
	}
	return false, nil
}

// Turn returns a turn, beginning with its question, which has the given Ref; nil if the log does not
// have it. A turn can be larger than the window.
func (h *History) Turn(ctx context.Context, ref string) ([]agent.Message, error) {
	if indexOfRef(h.Staged, ref) >= 0 {
		return nil, nil
	}
	at := indexOfRef(h.Messages, ref)
	if at >= 0 && int(h.Last-h.positions[at]) == len(h.positions)-1-at {
		return h.Messages[at:], nil
	}
	if at < 0 && int(h.Last) == len(h.positions) {
		return nil, nil // the window has the whole log
	}
	var turn []agent.Message
	for m, err := range RecentMessages(ctx, h.store, h.Log) {
		if queue.IsDamaged(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look for a turn in %s: %w", h.Log, err)
		}
		turn = append(turn, m)
		switch {
		case m.Ref == ref:
			slices.Reverse(turn)
			return turn, nil
		case m.Ref != "":
			return nil, nil // turns do not overlap
		}
	}
	return nil, nil
}

// EnsureQuestion puts the turn's question at the beginning of the window if it was dropped: the model
// has to see the question that it works on. What the dropped results have spent goes with the question.
func (h *History) EnsureQuestion(turn []agent.Message) {
	question := turn[0]
	if indexOfRef(h.Messages, question.Ref) >= 0 {
		return
	}
	n := 0
	if len(h.Messages) > 0 && h.Messages[0].Role == agent.RoleSummary {
		n = 1
	}
	for _, dropped := range turn[:max(0, len(turn)-len(h.Messages[n:]))] {
		question.Spent = question.Spent.Plus(dropped.Spent)
	}
	h.Messages = slices.Insert(slices.Clone(h.Messages), n, question)
	h.sizes = slices.Insert(slices.Clone(h.sizes), n, len(question.Text))
	h.positions = slices.Insert(slices.Clone(h.positions), n, h.Last+1-storage.Position(len(turn)))
	h.size += len(question.Text)
}

// Cache keeps the ends of conversations between turns. It is only a copy: if a log has grown in the
// meantime, it is read again, and an append to it is a conflict.
type Cache struct {
	store  storage.Store
	window int // bytes

	mu    sync.Mutex
	size  int
	puts  int64 // counts calls of Put
	era   int64 // counts calls of Clear
	byLog map[string]*History
}

// maxCached bounds the total size of the cached conversations, in bytes.
const maxCached = 32 << 20

// maxCachedTime bounds how long a conversation is cached, because another process may have erased messages
// in it because of their age.
const maxCachedTime = 24 * time.Hour

// NewCache returns a cache of histories whose window is windowTokens tokens, estimated at four bytes
// each.
func NewCache(store storage.Store, windowTokens int) *Cache {
	return &Cache{store: store, window: 4 * windowTokens, byLog: make(map[string]*History)}
}

// Take returns the end of a conversation for exclusive use by the caller, who returns it with Put.
func (c *Cache) Take(ctx context.Context, log string) (*History, error) {
	c.mu.Lock()
	h := c.byLog[log]
	if h != nil {
		delete(c.byLog, log)
		c.size -= h.size
	}
	era := c.era
	c.mu.Unlock()
	if h != nil && time.Since(h.readAt) < maxCachedTime {
		if current, err := h.isCurrent(ctx); current || err != nil {
			return h, err
		}
	}
	h, err := readHistory(ctx, c.store, log, c.window)
	if err == nil {
		h.era = era
	}
	return h, err
}

// isCurrent reports whether the log still ends where the copy ends.
func (h *History) isCurrent(ctx context.Context) (bool, error) {
	for _, err := range h.store.Records(ctx, h.Log, storage.Query{After: h.Last, Limit: 1}) {
		if err != nil {
			err = fmt.Errorf("read %s: %w", h.Log, err)
		}
		return false, err
	}
	return true, nil
}

// Clear drops everything that was read until now. It is called when this process takes over chats to
// which another process may have written.
func (c *Cache) Clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.era++
	c.size = 0
	clear(c.byLog)
}

// Put returns a history to the cache for the next turn, unless Clear was called since it was read. A
// history whose last append failed must not be put back.
func (c *Cache) Put(h *History) {
	h.Staged, h.Charges = nil, nil
	c.mu.Lock()
	defer c.mu.Unlock()
	if h.era != c.era {
		return
	}
	c.puts++
	h.lastPut = c.puts
	c.byLog[h.Log] = h
	c.size += h.size
	if c.size > maxCached {
		c.shrink()
	}
}

// shrink drops a quarter of the cache, the least recently put histories first, so that this is rare.
func (c *Cache) shrink() {
	all := slices.SortedFunc(maps.Values(c.byLog), func(a, b *History) int { return cmp.Compare(a.lastPut, b.lastPut) })
	for _, h := range all {
		if c.size <= maxCached-maxCached/4 {
			return
		}
		delete(c.byLog, h.Log)
		c.size -= h.size
	}
}

// readHistory reads a log backward until the window is full or the newest summary covers the rest. It
// reads the summary in any case.
func readHistory(ctx context.Context, store storage.Store, log string, window int) (*History, error) {
	h := &History{store: store, Log: log, Window: window, readAt: time.Now()}
	first := storage.Position(1)    // of the records that no summary covers
	refused := ^storage.Position(0) // start of the refused exchange read last
	var summary *agent.Message
	var at storage.Position
	for record, err := range skipErased(store.Records(ctx, log, storage.Query{Backward: true}), h.recordEnd) {
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", log, err)
		}
		if record.Pos < first || h.size > window {
			h.Truncated = record.Pos >= first
			break
		}
		if record.Pos >= refused {
			continue
		}
		m, err := Decode(log, record)
		if d, is := errors.AsType[*queue.DamagedError](err); is {
			h.Damaged = append(h.Damaged, d)
			continue
		}
		switch {
		case m.Role == agent.RoleRefused:
			refused = firstRefused(&m, record.Pos)
		case m.Role != agent.RoleSummary:
			h.Messages, h.sizes, h.positions = append(h.Messages, m), append(h.sizes, len(record.Data)), append(h.positions, record.Pos)
			h.size += len(record.Data)
		case summary == nil:
			summary, at, first = &m, record.Pos, firstKept(&m, record.Pos)
		}
	}
	if summary == nil && h.Truncated {
		var err error
		if summary, at, err = newestSummary(ctx, store, log); err != nil {
			return nil, err
		}
	}
	if summary != nil {
		h.Truncated = h.Truncated && h.positions[len(h.positions)-1] > firstKept(summary, at)
		h.Messages, h.sizes, h.positions = append(h.Messages, *summary), append(h.sizes, len(summary.Text)), append(h.positions, at)
		h.size += len(summary.Text)
	}
	slices.Reverse(h.Messages)
	slices.Reverse(h.sizes)
	slices.Reverse(h.positions)
	return h, nil
}

// recordEnd records a position: the last one is the end of the log, even if it was erased.
func (h *History) recordEnd(r storage.Record) { h.Last = max(h.Last, r.Pos) }

func indexOfRef(messages []agent.Message, ref string) int {
	for i, message := range slices.Backward(messages) {
		if message.Ref == ref {
			return i
		}
	}
	return -1
}

// ReplyPosition returns the position of the reply whose calls are being resolved.
func (h *History) ReplyPosition() string {
	for i, m := range slices.Backward(h.Messages) {
		if m.Role == agent.RoleAssistant {
			return strconv.FormatUint(uint64(h.positions[i]), 10)
		}
	}
	return "0"
}
