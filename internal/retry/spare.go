package retry

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// OptionalLimiter limits optional requests. Necessary ones do not use it.
type OptionalLimiter struct {
	all *rate.Limiter

	mu   sync.Mutex           // guards next, and makes taking from all exclusive
	next map[string]time.Time // end of the gap after the last request of a key
}

// NewOptionalLimiter returns a limit of second requests a second, with bursts.
func NewOptionalLimiter(second float64, burst int) *OptionalLimiter {
	return &OptionalLimiter{all: rate.NewLimiter(rate.Limit(second), burst), next: make(map[string]time.Time)}
}

// Take returns 0 if a request may begin now, which it counts; the next under its key has to keep
// the gap. Otherwise it returns when to ask again. It leaves room for leave other requests.
func (s *OptionalLimiter) Take(key string, gap time.Duration, leave int) time.Duration {
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
