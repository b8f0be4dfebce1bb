package settings

import "sync"

// Bounds of the cache. When one of them is reached, the cache is cleared.
const (
	maxCached      = 4096
	maxCachedBytes = 8 << 20
)

// cache caches values while a watch reports changes. It never returns a value older than a completed
// write by this process. When the watch reports a write by another process, it drops the old value.
// Lists and secrets are never cached.
type cache struct {
	mu sync.Mutex
	// followers is the number of watches that report every change. If there is none, nothing is cached.
	followers int
	// changes counts dropped values. A read that began before the last drop is not cached, because its
	// value may be outdated.
	changes uint64
	values  map[string]any
	size    int
}

// addFollowers adds n followers and clears the cache, because a change may have been missed.
func (c *cache) addFollowers(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.followers += n
	c.changes++
	c.values, c.size = nil, 0
}

// get returns the cached value of a key, or nil, and the count of changes to pass to put.
func (c *cache) get(key string) (value any, changes uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.values[key], c.changes
}

// put caches a value of size bytes, unless a value was dropped since get returned changes.
func (c *cache) put(key string, value any, size int, changes uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.followers == 0 || c.changes != changes || c.values[key] != nil {
		return
	}
	if c.values == nil || len(c.values) == maxCached || c.size+size > maxCachedBytes {
		c.values, c.size = map[string]any{}, 0
	}
	c.values[key] = value
	c.size += size
}

func (c *cache) forget(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes++
	delete(c.values, key)
}
