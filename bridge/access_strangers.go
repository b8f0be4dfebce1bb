package bridge

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/jobs"
)

// A stranger is told once in this time how to be let in; what else they send is dropped
// unanswered. So many are remembered, and so many are answered in an hour.
const (
	strangerInterval   = 24 * time.Hour
	maxStrangers       = 10_000
	maxStrangersAnHour = 200
)

// maxCalled bounds what a text of ours repeats of a name.
const maxCalled = 40

// strangers remembers who was told.
type strangers struct {
	mu   sync.Mutex
	told map[string]told
	// hour is when the present hour of answers began.
	hour    time.Time
	answers int
}

// told is when somebody was told, and whether in a direct chat.
type told struct {
	at     time.Time
	direct bool
}

// tell reports whether somebody is to be answered now, and notes that they are. Who was
// told in a shared chat is told once more where they are alone with the bot.
func (s *strangers) tell(who string, direct bool, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last, known := s.told[who]; known && now.Sub(last.at) < strangerInterval && (last.direct || !direct) {
		return false
	}
	if len(s.told) >= maxStrangers {
		maps.DeleteFunc(s.told, func(_ string, last told) bool { return now.Sub(last.at) >= strangerInterval })
	}
	if now.Sub(s.hour) >= time.Hour {
		s.hour, s.answers = now, 0
	}
	if len(s.told) >= maxStrangers || s.answers >= maxStrangersAnHour {
		return false
	}
	s.told[who] = told{now, direct}
	s.answers++
	return true
}

// clear forgets all: who was told how to be let in is told anew.
func (s *strangers) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.told)
}

// forget takes a note back: the answer could not be kept.
func (s *strangers) forget(who string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.told, who)
}

// acceptStranger takes a message of somebody who has no role: as a try to claim the bot,
// as a reason to say once how to be let in, or not at all. No turn comes of it.
func (b *Bridge) acceptStranger(ctx context.Context, j *jobs.Job) error {
	m, claims := claimOf(j.Message)
	if claims {
		offer, open, err := b.openClaim(ctx, m.Chat.Platform+":"+m.User, strings.TrimPrefix(m.Text, "/"+claimName))
		if err != nil {
			return err
		}
		if open {
			j.Message = m
			return b.enqueue(ctx, j)
		}
		claims = offer.Hash != nil
	}
	who := m.Chat.Platform + ":" + m.User
	if m.Kind != chats.KindText || !b.strangers.tell(who, m.Direct, b.cfg.Now()) {
		return nil
	}
	_, owned := b.people.owner()
	j.Knock = owned && m.Direct
	switch {
	case claims:
		j.Notice = "That code does not count any more. If I am yours, start me again: my log then shows a new one."
	case owned && !m.Direct:
		j.Notice = "Sorry, I only talk to people I have been introduced to. " +
			"Write to me in a direct chat, and I will ask my owner to let you in."
	case !owned && b.cfg.Access.Empty():
		j.Notice = fmt.Sprintf("I talk to nobody yet. If I am yours, open the link that my log shows, or send me the code that "+
			"stands there in a direct chat. Or allow `%s` in my settings (ONECLAW_ALLOW).", who)
	default:
		j.Notice = strangerNotice(m)
	}
	if err := b.enqueue(ctx, j); err != nil {
		b.strangers.forget(who)
		return err
	}
	return nil
}

func strangerNotice(m chats.Message) string {
	return fmt.Sprintf("Sorry, I only talk to people I have been introduced to. "+
		"If you should be one of them, ask my operator to allow `%s:%s`.", m.Chat.Platform, m.User)
}
