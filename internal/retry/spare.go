package retry

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// OptionalLimiter limits the rate of optional requests. Necessary requests do not use it.
type OptionalLimiter struct {
	limiter *rate.Limiter

	mu   sync.Mutex           // guards next, and makes taking from limiter exclusive
	next map[string]time.Time // end of the gap after the last request of a key
}

// NewOptionalLimiter returns a limiter of second requests per second, with bursts of up to burst.
func NewOptionalLimiter(second float64, burst int) *OptionalLimiter {
	return &OptionalLimiter{limiter: rate.NewLimiter(rate.Limit(second), burst), next: make(map[string]time.Time)}
}

// Take returns 0 and counts a request if it may begin now. The next request with its key has to keep
// the gap. Otherwise Take returns how long to wait before asking again. It leaves room for leave other
// requests.
func (s *OptionalLimiter) Take(key string, gap time.Duration, leave int) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if wait := s.next[key].Sub(now); wait > 0 {
		return wait
	}
	if missing := float64(leave+1) - s.limiter.TokensAt(now); missing > 0 {
		return max(minGap, time.Duration(missing/float64(s.limiter.Limit())*float64(time.Second)))
	}
	s.limiter.AllowN(now, 1)
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
