package bridge

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/jobs"
)

// lane holds the jobs of one chat. Messages are answered one after another in the
// order of their Seq, commands likewise beside them: a command waits for no message,
// but a message waits for the commands before it.
type lane struct {
	chat chats.Chat
	// accepting is held while messages of the chat are numbered, written and queued.
	accepting sync.Mutex

	// users counts who needs the lane; guarded by Bridge.mu.
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
	// held is a job that waits for the approval of a call: nothing behind it runs.
	held   *held
	cancel context.CancelCauseFunc
	worker bool
}

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

// lane returns the lane of a chat, to be given back with leave.
func (b *Bridge) lane(chat chats.Chat) *lane {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.byChat[chat]
	if l == nil {
		_, moving := b.moving[unthreaded(chat)]
		_, gone := b.moves[unthreaded(chat)]
		l = &lane{chat: chat, moving: moving, gone: gone}
		b.byChat[chat] = l
	}
	l.users++
	return l
}

func (b *Bridge) leave(l *lane) {
	b.mu.Lock()
	defer b.mu.Unlock()
	// What waits in a chat that moves has no worker that would need the lane.
	_, moving := b.moving[unthreaded(l.chat)]
	if l.users--; l.users == 0 && !moving {
		delete(b.byChat, l.chat)
	}
}

// queue puts a job in the lane of its chat and sees to it that somebody works on it.
func (b *Bridge) queue(j *jobs.Job) {
	if _, twice := b.open.LoadOrStore(j.Key(), j.Accepted); twice {
		return
	}
	b.count(j)
	b.line(j)
}

// line puts a job in the lane of its chat as it is called now.
func (b *Bridge) line(j *jobs.Job) {
	for {
		b.relocate(j)
		l := b.lane(laneOf(j))
		l.mu.Lock()
		here := !l.gone
		switch {
		case !here: // its chat has just moved
		case b.isCommand(j) || isPress(j) || j.Message.Kind == jobs.KindMove:
			l.commands.insert(j)
		default:
			l.messages.insert(j)
		}
		l.mu.Unlock()
		if here {
			b.wake(l)
		}
		b.leave(l)
		if here {
			return
		}
	}
}

// wake starts the workers that are missing.
func (b *Bridge) wake(l *lane) {
	unused := false
	defer func() {
		if unused { // after the lane is unlocked
			b.turns.release()
		}
	}()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, q := range []*queue{&l.commands, &l.messages} {
		if q.worker || !l.ready(q) {
			continue
		}
		turn := q == &l.messages && needsTurn(q.waiting[0])
		if turn && !b.takeTurn(l) {
			continue
		}
		if b.enter(l) {
			q.worker = true
			go b.workOn(l, q, turn)
		} else {
			unused = turn
		}
	}
}

// enter counts a worker, unless the bridge is closing.
func (b *Bridge) enter(l *lane) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closing {
		return false
	}
	l.users++
	b.lanes.Add(1)
	return true
}

// workOn runs the jobs of a queue until there is none that may run now. Turn says that
// the first may have a turn.
func (b *Bridge) workOn(l *lane, q *queue, turn bool) {
	defer b.lanes.Done()
	defer b.leave(l)
	for {
		j, ctx := b.next(l, q, turn)
		if j == nil {
			break
		}
		turn = false
		b.carry(ctx, l, j)
		b.endTurn(j)
		if j.Suspended {
			b.hold(ctx, l, j)
		} else {
			l.mu.Lock()
			q.done()
			l.mu.Unlock()
		}
		b.hush(l)
	}
	if turn {
		b.turns.release()
	}
	// The end of the commands may be what a message waited for.
	b.wake(l)
}

// next takes the first job that may run now, or ends the worker.
func (b *Bridge) next(l *lane, q *queue, turn bool) (*jobs.Job, context.Context) {
	b.mu.Lock()
	closing := b.closing
	b.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if closing || !l.ready(q) {
		q.worker = false
		return nil, nil
	}
	j := q.waiting[0]
	if q == &l.messages && needsTurn(j) && !turn {
		if turn = b.takeTurn(l); !turn {
			q.worker = false
			return nil, nil
		}
	}
	q.waiting = slices.Delete(q.waiting, 0, 1)
	j.Turn = turn
	b.uncount(j)
	ctx, cancel := context.WithCancelCause(b.work)
	if j.Ended != nil {
		cancel(j.Ended)
	}
	q.running, q.cancel = j, cancel
	return j, ctx
}

// ready reports whether a queue has a job that may run now.
func (l *lane) ready(q *queue) bool {
	if l.moving && q == &l.messages {
		return false
	}
	if len(q.waiting) == 0 || q.held != nil || q == &l.commands {
		return len(q.waiting) > 0 && q.held == nil
	}
	seq, any := l.commands.first()
	return !any || seq > q.waiting[0].Seq
}

// interrupt ends the turn that runs or waits for an approval, if it was accepted before
// the given command, and takes the messages that waited before it out of the queue.
func (b *Bridge) interrupt(l *lane, before int64, cause error) (running bool, waiting []*jobs.Job) {
	l.mu.Lock()
	if r := l.messages.running; r != nil && r.Seq < before {
		l.messages.cancel(cause)
		running = true
	}
	l.messages.waiting = slices.DeleteFunc(l.messages.waiting, func(j *jobs.Job) bool {
		switch {
		case j.Seq >= before:
			return false
		case j.Begun:
			// Its approval is there, and it has not gone on yet.
			j.Ended, running = cause, true
			return false
		}
		b.uncount(j)
		waiting = append(waiting, j)
		return true
	})
	waits := l.messages.held != nil && l.messages.held.job.Seq < before
	if waits {
		l.unhold(cause)
	}
	l.mu.Unlock()
	if waits {
		b.wake(l)
		b.leave(l)
	}
	return running || waits, waiting
}

// busy reports whether a message that was accepted before the given number waits or is
// being answered.
func (l *lane) busy(before int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	seq, any := l.messages.first()
	return any && seq < before
}

// pending reports whether a message between two numbers waits or is being answered.
func (l *lane) pending(after, before int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	between := func(seq int64) bool { return seq > after && seq < before }
	seq, any := l.messages.at()
	return any && between(seq) || slices.ContainsFunc(l.messages.waiting, func(j *jobs.Job) bool { return between(j.Seq) })
}

// deciding returns how many commands wait.
func (l *lane) deciding() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.commands.waiting)
}

// answers reports whether the message of a job is being answered.
func (l *lane) answers(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.messages.running != nil && l.messages.running.Key() == key
}

// load returns how many messages wait and whether one is being answered.
func (l *lane) load() (waiting int, running bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, running = l.messages.at()
	return len(l.messages.waiting), running
}
