package lanes

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/jobs"
	"oneclaw/bridge/wording"
)

// Lane holds the jobs of one chat. Messages are answered one after another in the order of
// their Seq, commands likewise beside them: a command waits for no message, but a message
// waits for the commands before it.
type Lane struct {
	Chat chats.Chat
	// Accepting is held while messages of the chat are numbered, written and queued.
	Accepting sync.Mutex

	// users counts who needs the lane; guarded by Lanes.mu.
	users int

	mu       sync.Mutex
	messages queue
	commands queue
	// moving says that its chat moves: no message is answered meanwhile. Gone says that
	// it has moved: its jobs are in the lane of another.
	moving, gone bool
	// place is where the messages stand in line for a turn; nil where they do not.
	place *place
}

// queue is a line of jobs with at most one worker.
type queue struct {
	waiting []*jobs.Job
	running *jobs.Job
	// held waits for a decision: nothing behind it runs.
	held   *Held
	cancel context.CancelCauseFunc
	worker bool
}

// Held is a job that waits for a decision, with what does not change while it does.
type Held struct {
	job *jobs.Job
	// Cards ask for the decisions, about these tools.
	Cards, Tools []string
}

func newHeld(j *jobs.Job) *Held {
	h := &Held{job: j, Cards: j.Undecided()}
	for _, a := range j.Approvals {
		if name := wording.Code(a.Tool); a.Decision == nil && !slices.Contains(h.Tools, name) {
			h.Tools = append(h.Tools, name)
		}
	}
	return h
}

// Before reports whether it stands in front of a job.
func (h *Held) Before(j *jobs.Job) bool { return h.job.Seq < j.Seq }

// Key is that of its job.
func (h *Held) Key() string { return h.job.Key() }

func (q *queue) insert(j *jobs.Job) {
	at, _ := slices.BinarySearchFunc(q.waiting, j, func(a, b *jobs.Job) int { return cmp.Compare(a.Seq, b.Seq) })
	q.waiting = slices.Insert(q.waiting, at, j)
}

// done takes the job out that ran.
func (q *queue) done() {
	q.cancel(nil)
	q.running, q.cancel = nil, nil
}

// at returns the Seq of the job that runs or is held, or false.
func (q *queue) at() (int64, bool) {
	switch {
	case q.held != nil:
		return q.held.job.Seq, true
	case q.running != nil:
		return q.running.Seq, true
	}
	return 0, false
}

// first returns the lowest Seq that waits or runs, or false.
func (q *queue) first() (int64, bool) {
	if seq, any := q.at(); any {
		return seq, true
	}
	if len(q.waiting) > 0 {
		return q.waiting[0].Seq, true
	}
	return 0, false
}

// ready reports whether a queue has a job that may run now.
func (l *Lane) ready(q *queue) bool {
	if l.moving && q == &l.messages {
		return false
	}
	if len(q.waiting) == 0 || q.held != nil || q == &l.commands {
		return len(q.waiting) > 0 && q.held == nil
	}
	seq, any := l.commands.first()
	return !any || seq > q.waiting[0].Seq
}

// unhold lets the job that waits for a decision run again, if it passes; with a cause it
// ends then. It is called with the lock held. Where it returns true the caller wakes and
// leaves the lane.
func (l *Lane) unhold(pass func(*jobs.Job) bool, cause error) bool {
	if l.messages.held == nil || !pass(l.messages.held.job) {
		return false
	}
	j := l.messages.held.job
	l.messages.held = nil
	j.Suspended, j.Ended = false, cause
	l.messages.insert(j)
	return true
}

// Held is the job that waits for a decision; nil where none does.
func (l *Lane) Held() *Held {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.messages.held
}

// Busy reports whether a message that was accepted before the given number waits or is
// being answered.
func (l *Lane) Busy(before int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	seq, any := l.messages.first()
	return any && seq < before
}

// Pending reports whether a message between two numbers waits or is being answered.
func (l *Lane) Pending(after, before int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	between := func(seq int64) bool { return seq > after && seq < before }
	seq, any := l.messages.at()
	return any && between(seq) || slices.ContainsFunc(l.messages.waiting, func(j *jobs.Job) bool { return between(j.Seq) })
}

// Deciding returns how many commands wait.
func (l *Lane) Deciding() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.commands.waiting)
}

// answers reports whether the message of a job is being answered.
func (l *Lane) answers(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.messages.running != nil && l.messages.running.Key() == key
}

// Load returns how many messages wait and whether one is being answered.
func (l *Lane) Load() (waiting int, running bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, running = l.messages.at()
	return len(l.messages.waiting), running
}

// Queues reports whether the lane stands in line for a turn.
func (l *Lane) Queues() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.place != nil
}

// Waiting returns a message that waits and passes, nil if there is none, and a copy to
// change: the job itself belongs to its worker as soon as this returns.
func (l *Lane) Waiting(pass func(*jobs.Job) bool) (*jobs.Job, jobs.Job) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.messages.waiting, pass)
	if i < 0 {
		return nil, jobs.Job{}
	}
	return l.messages.waiting[i], *l.messages.waiting[i]
}

// Replace puts a changed copy in the place of a message, if that waits still.
func (l *Lane) Replace(j, changed *jobs.Job) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.messages.waiting, j); i >= 0 {
		l.messages.waiting[i] = changed
	}
}
