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

// Once per interval a stranger gets a notice that says how to be admitted, and one that says that a code
// is wrong. Their other messages are dropped. All strangers together get a bounded number of notices per
// hour.
const (
	strangerInterval   = 24 * time.Hour
	maxStrangersAnHour = 200
)

// strangerNotices records which strangers got a notice, until they may get it again.
type strangerNotices interface {
	// recordNotice reports whether to send a notice, and records it. A stranger who got a notice in a
	// shared chat gets another one in a direct chat.
	recordNotice(ctx context.Context, n notice, now time.Time) (bool, error)
	// forget deletes the records of a user, or of all users if user is empty.
	forget(ctx context.Context, user string) error
}

// notice is a notice to a stranger: about what, and where.
type notice struct {
	user      string
	direct    bool // in a direct chat
	aboutCode bool // about a code
}

// suppressedBy returns the notices after which this one is not sent.
func (n notice) suppressedBy() []notice {
	if n.direct {
		return []notice{n}
	}
	return []notice{n, {n.user, true, n.aboutCode}}
}

// localNotices implements strangerNotices for a process that uses the store alone.
type localNotices struct {
	mu   sync.Mutex
	sent map[notice]time.Time
	// hourStart is when the current hour of notices began.
	hourStart time.Time
	answers   int
}

func (s *localNotices) recordNotice(_ context.Context, n notice, now time.Time) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, known := range n.suppressedBy() {
		if at, told := s.sent[known]; told && now.Sub(at) < strangerInterval {
			return false, nil
		}
	}
	if now.Sub(s.hourStart) >= time.Hour {
		s.hourStart, s.answers = now, 0
		maps.DeleteFunc(s.sent, func(_ notice, at time.Time) bool { return now.Sub(at) >= strangerInterval })
	}
	if s.answers >= maxStrangersAnHour {
		return false, nil
	}
	s.sent[n] = now
	s.answers++
	return true, nil
}

func (s *localNotices) forget(_ context.Context, user string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.sent, func(n notice, _ time.Time) bool { return user == "" || n.user == user })
	return nil
}

const textStranger = "Sorry, I only talk to people I have been introduced to. "

// HandleStranger decides how a stranger's message is handled: as the claim command, with a notice that
// says how to be admitted or that a code is wrong, or, if it returns false, not at all. If the job
// cannot be stored, the caller calls [Registry.ForgetNotice].
func (d *Registry) HandleStranger(ctx context.Context, j *queue.Run) (bool, error) {
	m := j.Message
	if m.Kind != chats.KindText {
		return false, nil
	}
	if code, claims := strings.CutPrefix(m.Text, "/"+claimCommand); claims {
		c, refusal, err := d.checkCode(ctx, code)
		if err != nil || refusal == "" {
			return err == nil, err
		}
		if c.Hash != nil {
			outbox.DeliveryOf(j).Notice = refusal
		}
	}
	if told, err := d.strangers.recordNotice(ctx, notice{m.SenderID(), m.Direct, outbox.DeliveryOf(j).Notice != ""}, d.cfg.Now()); !told || err != nil {
		return false, err
	}
	_, owned := d.register.owner()
	turn.WorkOf(j).AskOwner = owned && m.Direct
	switch {
	case outbox.DeliveryOf(j).Notice != "":
	case owned && !m.Direct:
		outbox.DeliveryOf(j).Notice = textStranger + "Write to me in a direct chat, and I will ask my owner to let you in."
	case !owned && d.cfg.Access.Empty():
		outbox.DeliveryOf(j).Notice = "I'm new here and have no owner yet. Is it you? Run `oneclaw claim` on the computer where I run, and do what it says."
	default:
		outbox.DeliveryOf(j).Notice = fmt.Sprintf(textStranger+"If you should be one of them, ask my operator to allow `%s`.", m.SenderID())
	}
	return true, nil
}

// ForgetNotice undoes what [Registry.HandleStranger] recorded: the sender got no notice.
func (d *Registry) ForgetNotice(ctx context.Context, m chats.Message) {
	if err := d.strangers.forget(ctx, m.SenderID()); err != nil {
		d.cfg.Log.Warn("the record of a notice that was not sent cannot be deleted", "user", m.SenderID(), "err", err)
	}
}
