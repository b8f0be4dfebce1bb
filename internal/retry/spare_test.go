package retry

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

func TestSpareRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewOptionalLimiter(2, 3)
		for _, key := range []string{"a", "b"} {
			if wait := s.Take(key, time.Second, 1); wait != 0 {
				t.Errorf("%s waits %v", key, wait)
			}
		}
		if wait := s.Take("a", time.Second, 0); wait != time.Second {
			t.Errorf("within the gap: %v", wait)
		}
		if wait := s.Take("c", time.Second, 1); wait != time.Second/2 {
			t.Errorf("what is left is another's: %v", wait)
		}
		if wait := s.Take("c", time.Second, 0); wait != 0 {
			t.Errorf("the last waits %v", wait)
		}
		time.Sleep(time.Second)
		for range 2 {
			if wait := s.Take("d", 0, 0); wait != 0 {
				t.Errorf("a second later: %v", wait)
			}
		}
		if wait := s.Take("d", 0, 0); wait != time.Second/2 {
			t.Errorf("all is taken: %v", wait)
		}
		time.Sleep(time.Hour)
		many := NewOptionalLimiter(1e9, 1e9)
		for i := range 3 * maxKeys {
			many.Take(strconv.Itoa(i), time.Second, 0)
			time.Sleep(time.Millisecond)
		}
		if len(many.next) > maxKeys {
			t.Errorf("%d keys are kept", len(many.next))
		}
	})
}
