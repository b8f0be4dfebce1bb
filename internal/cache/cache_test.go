package cache_test

import (
	"testing"
	"testing/synctest"
	"time"

	"oneclaw/internal/cache"
)

func TestCacheForgetsWhatIsOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cache.New[string, int](10)
		c.Put("short", 1, time.Minute)
		c.Put("long", 2, time.Hour)
		c.Put("ever", 3, cache.Forever)
		time.Sleep(time.Minute)
		if v, ok := c.Get("short"); ok || v != 0 {
			t.Errorf("after its time: %d, %v", v, ok)
		}
		c.Put("short", 4, time.Minute)
		for key, want := range map[string]int{"short": 4, "long": 2, "ever": 3} {
			if v, ok := c.Get(key); !ok || v != want {
				t.Errorf("%s: %d, %v; want %d", key, v, ok, want)
			}
		}
	})
}

func TestCacheForgetsWhatIsUnused(t *testing.T) {
	c := cache.New[int, int](2)
	for i := range 3 {
		c.Put(i, i, cache.Forever)
		c.Get(0)
	}
	for i, want := range []bool{true, false, true} {
		if _, ok := c.Get(i); ok != want {
			t.Errorf("%d: %v", i, ok)
		}
	}
	if c = cache.New[int, int](0); c == nil {
		t.Error("no cache")
	}
}
