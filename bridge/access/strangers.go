package access

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/turn"
)

// A stranger is told once per interval how to be admitted, and once that a code is wrong; the rest of
// their messages is dropped. All strangers together get a bounded number of answers an hour.
const (
	strangerInterval   = 24 * time.Hour
	maxStrangersAnHour = 200
)

// strangers remembers who was told, for at most as many as are answered in the interval.
type strangers interface {
	// tell reports whether to answer a stranger, and records it. A stranger who was told in a shared
	// chat is told once more in a direct one.
	tell(ctx context.Context, n note, now time.Time) (bool, error)
	// forget deletes the record of a user, or of all if user is empty.
	forget(ctx context.Context, user string) error
}

// note says which stranger was told what, and where.
type note struct {
	user   string
	direct bool // in a direct chat
	code   bool // about a code
}

// alike returns the notes after which the stranger is not told again.
func (n note) alike() []note {
	if n.direct {
		return []note{n}
	}
	return []note{n, {n.user, true, n.code}}
}

// localStrangers implements strangers for a process that works alone.
type localStrangers struct {
	mu   sync.Mutex
	told map[note]time.Time
	// hour is when the current hour of answers began.
	hour    time.Time
	answers int
}

func (s *localStrangers) tell(_ context.Context, n note, now time.Time) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, known := range n.alike() {
		if at, told := s.told[known]; told && now.Sub(at) < strangerInterval {
			return false, nil
		}
	}
	if now.Sub(s.hour) >= time.Hour {
		s.hour, s.answers = now, 0
		maps.DeleteFunc(s.told, func(_ note, at time.Time) bool { return now.Sub(at) >= strangerInterval })
	}
	if s.answers >= maxStrangersAnHour {
		return false, nil
	}
	s.told[n] = now
	s.answers++
	return true, nil
}

func (s *localStrangers) forget(_ context.Context, user string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.told, func(n note, _ time.Time) bool { return user == "" || n.user == user })
	return nil
}

const sorry = "Sorry, I only talk to people I have been introduced to. "

// Hear decides how a stranger's message is handled: as the claim command, with a notice that says once
// how to be admitted, or, if it returns false, not at all. If the job cannot be stored, the caller
// calls [Registry.Forget].
func (d *Registry) Hear(ctx context.Context, j *queue.Run) (bool, error) {
	m := j.Message
	if m.Kind != chats.KindText {
		return false, nil
	}
	if code, claims := strings.CutPrefix(m.Text, "/"+claimName); claims {
		c, refusal, err := d.tryCode(ctx, code)
		if err != nil || refusal == "" {
			return err == nil, err
		}
		if c.Hash != nil {
			outbox.Of(j).Notice = refusal
		}
	}
	if told, err := d.strangers.tell(ctx, note{m.By(), m.Direct, outbox.Of(j).Notice != ""}, d.cfg.Now()); !told || err != nil {
		return false, err
	}
	_, owned := d.register.owner()
	turn.Of(j).AskOwner = owned && m.Direct
	switch {
	case outbox.Of(j).Notice != "":
	case owned && !m.Direct:
		outbox.Of(j).Notice = sorry + "Write to me in a direct chat, and I will ask my owner to let you in."
	case !owned && d.cfg.Access.Empty():
		outbox.Of(j).Notice = "I'm new here and have no owner yet. Is it you? Run `oneclaw claim` and open the link."
	default:
		outbox.Of(j).Notice = fmt.Sprintf(sorry+"If you should be one of them, ask my operator to allow `%s`.", m.By())
	}
	return true, nil
}

// Forget undoes what [Registry.Hear] recorded: the sender was not told.
func (d *Registry) Forget(ctx context.Context, m chats.Message) {
	if err := d.strangers.forget(ctx, m.By()); err != nil {
		d.cfg.Log.Warn("a stranger may wait for an answer that does not come", "user", m.By(), "err", err)
	}
}
