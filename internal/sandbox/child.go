package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"modernc.org/quickjs"
)

// maxConcurrentCalls bounds the concurrent calls of host functions; the prelude queues further ones.
const maxConcurrentCalls = 16

// addressSpace bounds the memory that a child may map after its start:
// the heap of the script, copies of results, and Go's own reserve.
const addressSpace = 1 << 30

// ServeScript runs one script that the parent sends over in and reports its result over out. It
// first confines this process for good, and ends it when in ends.
func ServeScript(in io.Reader, out io.Writer) error {
	if err := Confine(Limits{Memory: addressSpace}); err != nil {
		return fmt.Errorf("javascript: %w", err)
	}
	parent := NewConn(in, out)
	c := &runner{parent: parent, replies: make(chan reply, maxConcurrentCalls+1), timers: map[int]timerDue{}}
	var t task
	if err := parent.Receive(&t); err != nil {
		return err
	}
	go func() {
		for {
			var r reply
			if parent.Receive(&r) != nil {
				os.Exit(1)
			}
			// There is room for all possible calls, so that the end is noticed even while the
			// script does not read replies.
			c.replies <- r
		}
	}()
	failure := c.run(t)
	if c.done {
		return nil
	}
	return parent.Send(childMessage{Done: true, Failed: true, Text: failure.Error()})
}

// runner runs a script and its event loop.
type runner struct {
	vm             *quickjs.VM
	parent         *Conn
	replies        chan reply
	pendingReplies []reply // replies received while waiting for another one
	lastCall       int     // the last call id
	openCalls      int     // calls without a reply
	timers         map[int]timerDue
	timerCount     int // counts timers: those due at the same time fire in this order
	// now is when the script was last resumed: timers that it sets until it waits begin at the same
	// time, so that a slow machine does not reorder them.
	now     time.Time
	done    bool
	sendErr error // sending the result failed
}

// timerDue is when a timer fires. Timers fire in the order of their times, however late: a busy
// machine must not reorder them.
type timerDue struct {
	at    time.Time
	order int
}

// nextTimer returns the timer that fires first; id 0 if there is none.
func (c *runner) nextTimer() (id int, at time.Time) {
	first := timerDue{}
	for n, d := range c.timers {
		if id == 0 || d.at.Before(first.at) || d.at.Equal(first.at) && d.order < first.order {
			id, first = n, d
		}
	}
	return id, first.at
}

var (
	errUnsettled = errors.New("the script came to no result: it awaits a promise that nothing will settle")
	errMemory    = errors.New("InternalError: out of memory")
)

// run runs a task until its result is sent, or returns why there is none.
func (c *runner) run(t task) error {
	vm, err := quickjs.NewVM()
	if err != nil {
		return fmt.Errorf("start the engine: %w", err)
	}
	c.vm, c.now = vm, time.Now()
	vm.SetMemoryLimit(maxHeap)
	settle, err := c.startTask(t)
	if err != nil {
		return err
	}
	var trouble error
	for {
		if err := c.drain(); err != nil && trouble == nil {
			trouble = err
		}
		switch {
		case c.done || c.sendErr != nil:
			return c.sendErr
		case c.openCalls == 0 && len(c.timers) == 0:
			if trouble != nil {
				return trouble
			}
			return errUnsettled
		}
		if err := c.handleEvent(settle); err != nil {
			return err
		}
	}
}

// drain runs pending promise jobs.
func (c *runner) drain() error {
	for {
		n, err := c.vm.ExecutePendingJobs()
		if err != nil {
			return readableError(err)
		}
		if n == 0 || c.done {
			return nil
		}
	}
}

// handleEvent waits for an event and passes it to the script.
func (c *runner) handleEvent(settle quickjs.Value) error {
	kind, id, text := "reply", 0, ""
	if len(c.pendingReplies) > 0 {
		id, text = c.pendingReplies[0].ID, encodeReply(c.pendingReplies[0])
		c.pendingReplies = c.pendingReplies[1:]
		c.openCalls--
	} else {
		var ring <-chan time.Time
		timer, at := c.nextTimer()
		if timer != 0 {
			clock := time.NewTimer(time.Until(at))
			defer clock.Stop()
			ring = clock.C
		}
		select {
		case r := <-c.replies:
			id, text = r.ID, encodeReply(r)
			c.openCalls--
		case <-ring:
			kind, id = "timer", timer
			delete(c.timers, id)
		}
	}
	c.now = time.Now()
	if _, err := settle.Call(quickjs.UndefinedValue, kind, id, text); err != nil {
		return readableError(err)
	}
	return nil
}

func (c *runner) call(name, argument string) (string, error) {
	id, err := c.sendCall(name, argument)
	if err != nil {
		return "", err
	}
	for {
		r := <-c.replies
		if r.ID == id {
			return encodeReply(r), nil
		}
		c.pendingReplies = append(c.pendingReplies, r)
	}
}

func (c *runner) startCall(name, argument string) (int, error) {
	id, err := c.sendCall(name, argument)
	if err == nil {
		c.openCalls++
	}
	return id, err
}

func (c *runner) sendCall(name, argument string) (int, error) {
	if len(argument) > maxValue {
		return 0, errors.New("the arguments are too large")
	}
	c.lastCall++
	return c.lastCall, c.parent.Send(childMessage{ID: c.lastCall, Call: name, Argument: []byte(argument)})
}

// setTimer starts a timer, or stops it if the time is negative.
func (c *runner) setTimer(id, milliseconds int) {
	delete(c.timers, id)
	if milliseconds < 0 {
		return
	}
	c.timerCount++
	c.timers[id] = timerDue{c.now.Add(time.Duration(milliseconds) * time.Millisecond), c.timerCount}
}

func (c *runner) finish(failed bool, text string) {
	if c.done {
		return
	}
	if err := c.parent.Send(childMessage{Done: true, Failed: failed, Text: truncate(text)}); err != nil {
		c.sendErr = err
		return
	}
	c.done = true
}

// readableError makes an error of the engine readable.
func readableError(err error) error {
	var e *quickjs.Error
	switch {
	case !errors.As(err, &e):
		return err
	case e.Message == "out of memory", e.Error() == "null":
		// The error is null if there was no memory left to create it.
		return fmt.Errorf("%w (the limit is %d MiB)", errMemory, maxHeap>>20)
	case e.LineNumber > 0:
		return fmt.Errorf("%w (line %d)", err, e.LineNumber)
	}
	return err
}
