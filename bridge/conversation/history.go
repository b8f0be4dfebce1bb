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

// History is the end of a conversation as its log has it, compacted as
// [agent.Compacted] does: enough for the window of a turn. What is appended goes to
// the log first. It belongs to one goroutine at a time.
type History struct {
	store storage.Store
	Log   string
	// Staged is the question of a turn, kept until there is something to write after
	// it: its job has it on disk, so one write for both is enough.
	Staged   []agent.Message
	asked    []storage.Op // that go with it
	Messages []agent.Message
	sizes    []int
	at       []storage.Position
	size     int
	Last     storage.Position
	Window   int
	// Cut says that messages were let go that no summary stands for.
	Cut bool
	// Damaged are the records that were skipped when it was read.
	Damaged []*queue.DamagedError
	// groups are those that it has loaded, if they are known.
	groups      []string
	groupsKnown bool
	// Rest is until when no summary is tried, after one that failed.
	Rest time.Time

	read  time.Time
	given int64 // when it was given back to the cache last
	era   int64 // of the cache when it was read
}

// Append writes messages to the log, behind the staged ones, with other operations in one
// write, whose revision it returns; then to the window.
func (h *History) Append(ctx context.Context, others []storage.Op, messages ...agent.Message) (storage.Revision, error) {
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
		others = slices.Concat(h.asked, others)
	}
	rev, err := h.store.Write(ctx, append(others, storage.Append(h.Log, h.Last, records...))...)
	if err != nil {
		return 0, fmt.Errorf("append to %s: %w", h.Log, err)
	}
	h.Staged = nil
	for i, m := range messages {
		h.groupsKnown = h.groupsKnown && records[i].Label != agent.LabelLoad
		m.Overheard = "" // the copy has what the log has
		h.Last++
		if m.Role == agent.RoleRefused {
			from := firstRefused(&m, h.Last)
			h.keep(func(i int) bool { return h.at[i] < from })
			continue
		}
		size := len(records[i].Data)
		h.Messages, h.sizes, h.at = append(h.Messages, m), append(h.sizes, size), append(h.at, h.Last)
		h.size += size
		if m.Role == agent.RoleSummary {
			h.fold(&m)
		} else if h.size > 2*h.Window { // so that it is seldom done
			h.letGo()
		}
	}
	return rev, nil
}

// LoadedGroups is [LoadedGroups] of the conversation, read once as long as nothing is loaded.
func (h *History) LoadedGroups(ctx context.Context) (groups []string, err error) {
	if !h.groupsKnown {
		if h.groups, err = LoadedGroups(ctx, h.store, h.Log); err != nil {
			return nil, err
		}
		h.groupsKnown = true
	}
	return slices.Clone(h.groups), nil
}

// fold puts the last message, a summary, in front of what it keeps.
func (h *History) fold(m *agent.Message) {
	from, n := firstKept(m, h.Last), len(h.at)-1
	h.keep(func(i int) bool { return i == n || h.Messages[i].Role != agent.RoleSummary && h.at[i] >= from })
	n = len(h.Messages) - 1
	h.Messages = slices.Insert(h.Messages[:n:n], 0, h.Messages[n])
	h.sizes = slices.Insert(h.sizes[:n:n], 0, h.sizes[n])
	h.at = slices.Insert(h.at[:n:n], 0, h.at[n])
}

// letGo lets go the oldest messages that the window does not hold.
func (h *History) letGo() {
	excess, last := h.size-h.Window, len(h.Messages)-1
	h.keep(func(i int) bool {
		if excess <= 0 || i == last || h.Messages[i].Role == agent.RoleSummary {
			return true
		}
		excess -= h.sizes[i]
		h.Cut = true
		return false
	})
}

// keep lets go all messages but some, in memory of its own: views stay as they are.
func (h *History) keep(which func(i int) bool) {
	var messages []agent.Message
	var sizes []int
	var at []storage.Position
	size := 0
	for i := range h.Messages {
		if which(i) {
			messages, sizes, at = append(messages, h.Messages[i]), append(sizes, h.sizes[i]), append(at, h.at[i])
			size += h.sizes[i]
		}
	}
	h.Messages, h.sizes, h.at, h.size = messages, sizes, at, size
}

// View is the window for a turn. What is appended later does not change it: the staged
// messages stand where append will put them, so that a long history is not copied.
func (h *History) View() []agent.Message {
	if !h.Shortened() {
		return slices.Clip(append(h.Messages, h.Staged...))
	}
	head := h.Staged[0]
	from := firstKept(&head, h.Last+1)
	head.Kept = 0 // what it counts is in its place already
	view := []agent.Message{head}
	for i, m := range h.Messages {
		if h.at[i] >= from && m.Role != agent.RoleSummary {
			view = append(view, m)
		}
	}
	return append(view, h.Staged[1:]...)
}

// textShortened stands for what [History.DropOlderTurns] leaves out.
const textShortened = "[What was said before is left out here, because the provider of the language model refuses a part of it. It is on record: a search of the history finds it.]"

// Shortened reports whether what is staged begins with what [History.DropOlderTurns] makes.
func (h *History) Shortened() bool {
	return len(h.Staged) > 1 && h.Staged[0].Role == agent.RoleSummary
}

// DropOlderTurns stages, in front of the staged question, a record that leaves out most of the turns that
// the model was shown last before it, the older ones. It reports false where none is left.
func (h *History) DropOlderTurns(now time.Time) bool {
	from := storage.Position(0)
	if h.Shortened() {
		from = firstKept(&h.Staged[0], h.Last+1)
	}
	var turns []storage.Position
	routing, shown := "", false
	for i := range h.Messages {
		m := &h.Messages[i]
		routing = cmp.Or(m.Routing, routing)
		if h.at[i] < from {
			continue
		}
		if shown = true; m.Asks() {
			turns = append(turns, h.at[i])
		}
	}
	if !shown {
		return false
	}
	head := agent.Message{Role: agent.RoleSummary, Time: now, Text: textShortened, Routing: routing}
	if n := len(turns) / 3; n > 0 {
		head.Kept = int(h.Last + 1 - turns[len(turns)-n]) //nolint:gosec // no log is so long
	}
	h.Staged = []agent.Message{head, h.Staged[len(h.Staged)-1]}
	return true
}

// LastRefused reports whether the newest exchange was left out because a model refused it.
func (h *History) LastRefused(ctx context.Context) (bool, error) {
	for record, err := range h.store.Records(ctx, h.Log, storage.Query{Label: agent.LabelRefused, Backward: true, Limit: 1}) {
		if err != nil {
			return false, fmt.Errorf("look for refusals in %s: %w", h.Log, err)
		}
		return record.Pos == h.Last, nil
	}
	return false, nil
}

// Turn returns a turn from its question on, which has the given Ref; nothing where the
// log does not have that. A turn can be larger than the window.
func (h *History) Turn(ctx context.Context, ref string) ([]agent.Message, error) {
	if indexOf(h.Staged, ref) >= 0 {
		return nil, nil
	}
	at := indexOf(h.Messages, ref)
	if at >= 0 && int(h.Last-h.at[at]) == len(h.at)-1-at {
		return h.Messages[at:], nil
	}
	if at < 0 && int(h.Last) == len(h.at) {
		return nil, nil // all there is
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
			return nil, nil // the turns of a conversation follow each other
		}
	}
	return nil, nil
}

// EnsureQuestion has the window of a turn begin with its question, where that was let go: a model
// has to see what it works on.
func (h *History) EnsureQuestion(turn []agent.Message) {
	question := turn[0]
	if indexOf(h.Messages, question.Ref) >= 0 {
		return
	}
	n := 0
	if len(h.Messages) > 0 && h.Messages[0].Role == agent.RoleSummary {
		n = 1
	}
	h.Messages = slices.Insert(slices.Clone(h.Messages), n, question)
	h.sizes = slices.Insert(slices.Clone(h.sizes), n, len(question.Text))
	h.at = slices.Insert(slices.Clone(h.at), n, h.Last+1-storage.Position(len(turn)))
	h.size += len(question.Text)
}

// Cache keeps the ends of conversations between turns. It is only ever a copy:
// an append to a log that has grown meanwhile is a conflict, and the copy is dropped.
type Cache struct {
	store  storage.Store
	window int // bytes

	mu    sync.Mutex
	size  int
	given int64 // counts what was given back
	era   int64 // counts how often all was forgotten
	byLog map[string]*History
}

// maxCached bounds the bytes of all conversations that are kept between turns.
const maxCached = 32 << 20

// maxCachedTime is how long one is kept: another process may have erased what was too old in it.
const maxCachedTime = 24 * time.Hour

// NewCache makes a cache whose histories are as long as a window.
func NewCache(store storage.Store, windowTokens int) *Cache {
	return &Cache{store: store, window: 4 * windowTokens, byLog: make(map[string]*History)}
}

// Take returns the end of a conversation for the caller alone, to be given back.
func (c *Cache) Take(ctx context.Context, log string) (*History, error) {
	c.mu.Lock()
	h := c.byLog[log]
	if h != nil {
		delete(c.byLog, log)
		c.size -= h.size
	}
	era := c.era
	c.mu.Unlock()
	if h != nil && time.Since(h.read) < maxCachedTime {
		return h, nil
	}
	h, err := readHistory(ctx, c.store, log, c.window)
	if err == nil {
		h.era = era
	}
	return h, err
}

// Clear lets go all that was read until now, because others may have written since: chats
// have come back that another process answered in.
func (c *Cache) Clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.era++
	c.size = 0
	clear(c.byLog)
}

// Put keeps a history for the next turn, unless all was forgotten since it was read. One
// whose last append failed is not given back.
func (c *Cache) Put(h *History) {
	h.Staged = nil
	c.mu.Lock()
	defer c.mu.Unlock()
	if h.era != c.era {
		return
	}
	c.given++
	h.given = c.given
	c.byLog[h.Log] = h
	c.size += h.size
	if c.size > maxCached {
		c.shrink()
	}
}

// shrink lets go a quarter, of what was given back first: so it is seldom done.
func (c *Cache) shrink() {
	all := slices.SortedFunc(maps.Values(c.byLog), func(a, b *History) int { return cmp.Compare(a.given, b.given) })
	for _, h := range all {
		if c.size <= maxCached-maxCached/4 {
			return
		}
		delete(c.byLog, h.Log)
		c.size -= h.size
	}
}

// readHistory reads a log backward until the window is full or the newest summary stands
// for the rest. The summary is read in any case.
func readHistory(ctx context.Context, store storage.Store, log string, window int) (*History, error) {
	h := &History{store: store, Log: log, Window: window, read: time.Now()}
	first := storage.Position(1)    // of those that no summary stands for
	refused := ^storage.Position(0) // where the refused exchange begins that was met last
	var summary *agent.Message
	var at storage.Position
	for record, err := range unerased(store.Records(ctx, log, storage.Query{Backward: true}), h.ends) {
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", log, err)
		}
		if record.Pos < first || h.size > window {
			h.Cut = record.Pos >= first
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
			h.Messages, h.sizes, h.at = append(h.Messages, m), append(h.sizes, len(record.Data)), append(h.at, record.Pos)
			h.size += len(record.Data)
		case summary == nil:
			summary, at, first = &m, record.Pos, firstKept(&m, record.Pos)
		}
	}
	if summary == nil && h.Cut {
		var err error
		if summary, at, err = newestSummary(ctx, store, log); err != nil {
			return nil, err
		}
	}
	if summary != nil {
		h.Cut = h.Cut && h.at[len(h.at)-1] > firstKept(summary, at)
		h.Messages, h.sizes, h.at = append(h.Messages, *summary), append(h.sizes, len(summary.Text)), append(h.at, at)
		h.size += len(summary.Text)
	}
	slices.Reverse(h.Messages)
	slices.Reverse(h.sizes)
	slices.Reverse(h.at)
	return h, nil
}

// ends notes that a record is there: the last is the end of the log, also where it was erased.
func (h *History) ends(r storage.Record) { h.Last = max(h.Last, r.Pos) }

func indexOf(messages []agent.Message, ref string) int {
	for i, message := range slices.Backward(messages) {
		if message.Ref == ref {
			return i
		}
	}
	return -1
}

// ReplyPosition is the position of the reply whose calls are being resolved.
func (h *History) ReplyPosition() string {
	for i, m := range slices.Backward(h.Messages) {
		if m.Role == agent.RoleAssistant {
			return strconv.FormatUint(uint64(h.at[i]), 10)
		}
	}
	return "0"
}
