package people

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/jobs"
)

// A stranger is told once in this time how to be let in, and once that a code is wrong; what
// else they send is dropped unanswered. So many are answered in an hour.
const (
	strangerInterval   = 24 * time.Hour
	maxStrangersAnHour = 200
)

// strangers remembers who was told: as many as are answered within the interval.
type strangers struct {
	mu   sync.Mutex
	told map[note]time.Time
	// hour is when the present hour of answers began.
	hour    time.Time
	answers int
}

// note is what a stranger was told, and where.
type note struct {
	user string
	// direct is set in a direct chat, code where it was about a code.
	direct, code bool
}

// tell reports whether somebody is to be answered now, and notes that they are. Who was
// told in a shared chat is told once more where they are alone with the bot.
func (s *strangers) tell(n note, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, known := range []note{n, {n.user, true, n.code}} {
		if at, told := s.told[known]; told && now.Sub(at) < strangerInterval {
			return false
		}
	}
	if now.Sub(s.hour) >= time.Hour {
		s.hour, s.answers = now, 0
		maps.DeleteFunc(s.told, func(_ note, at time.Time) bool { return now.Sub(at) >= strangerInterval })
	}
	if s.answers >= maxStrangersAnHour {
		return false
	}
	s.told[n] = now
	s.answers++
	return true
}

// forget forgets the notes that pass.
func (s *strangers) forget(pass func(note) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.told, func(n note, _ time.Time) bool { return pass(n) })
}

const sorry = "Sorry, I only talk to people I have been introduced to. "

// Hear decides what a message of somebody without a role becomes: the command that claims
// the bot, a sentence that says once how to be let in, or nothing. It reports whether the
// job is to be answered; no turn comes of it. Where the job cannot be stored, [Desk.Forget]
// takes back that its sender was told.
func (d *Desk) Hear(ctx context.Context, j *jobs.Job) (bool, error) {
	m := j.Message
	if code, claims := codeOf(m); claims {
		c, refusal, err := d.tryCode(ctx, m.By(), code)
		if err != nil || refusal == "" {
			return err == nil, err
		}
		if c.Hash != nil { // somebody could claim the bot with a code lately
			j.Notice = refusal
		}
	}
	if m.Kind != chats.KindText || !d.strangers.tell(note{m.By(), m.Direct, j.Notice != ""}, d.cfg.Now()) {
		return false, nil
	}
	_, owned := d.register.owner()
	j.Knock = owned && m.Direct
	switch {
	case j.Notice != "":
	case owned && !m.Direct:
		j.Notice = sorry + "Write to me in a direct chat, and I will ask my owner to let you in."
	case !owned && d.cfg.Access.Empty():
		j.Notice = fmt.Sprintf("I talk to nobody yet. If I am yours, open the link that my log shows, or send me the code that "+
			"stands there in a direct chat. Or allow `%s` in my settings (ONECLAW_ALLOW).", m.By())
	default:
		j.Notice = fmt.Sprintf(sorry+"If you should be one of them, ask my operator to allow `%s`.", m.By())
	}
	return true, nil
}

// Forget takes back that the sender of a message was told.
func (d *Desk) Forget(m chats.Message) {
	d.strangers.forget(func(n note) bool { return n.user == m.By() })
}
