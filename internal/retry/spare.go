package retry

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Spare is the room for requests that may be left out. What must go out does not ask for it.
type Spare struct {
	all *rate.Limiter

	mu   sync.Mutex           // guards next, and that what all has is taken by one at a time
	next map[string]time.Time // when the gap behind the last request of a key is over
}

// NewSpare returns the room for so many requests a second, and for burst at once.
func NewSpare(second float64, burst int) *Spare {
	return &Spare{all: rate.NewLimiter(rate.Limit(second), burst), next: make(map[string]time.Time)}
}

// Take returns 0 where a request may begin now: it is taken for made, and the next under its
// key has to keep the gap. Otherwise it returns after what time to ask again. It leaves the
// room of some requests to others.
func (s *Spare) Take(key string, gap time.Duration, leave int) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if wait := s.next[key].Sub(now); wait > 0 {
		return wait
	}
	if missing := float64(leave+1) - s.all.TokensAt(now); missing > 0 {
		return max(minGap, time.Duration(missing/float64(s.all.Limit())*float64(time.Second)))
	}
	s.all.AllowN(now, 1)
	if len(s.next) >= maxKeys {
		for k, at := range s.next {
			if now.After(at) {
				delete(s.next, k)
			}
		}
	}
	if len(s.next) < maxKeys {
		s.next[key] = now.Add(gap)
	}
	return 0
}
