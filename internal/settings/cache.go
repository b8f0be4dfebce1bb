package settings

import "sync"

// Bounds of the cache. When one is reached, the cache is cleared.
const (
	maxCached      = 4096
	maxCachedBytes = 8 << 20
)

// cache caches read values while a watch follows changes. It never returns a value older than a
// completed write of this process; values that others write are dropped when the watch reports
// them. Lists and secrets are never cached.
type cache struct {
	mu sync.Mutex
	// followers counts the watches that report every change. Without one nothing is cached.
	followers int
	// changes counts what was dropped: a read that began before is not cached, because it may be
	// old.
	changes uint64
	values  map[string]any
	size    int
}

// follow adds a follower, or removes one. A change may have been missed before.
func (c *cache) follow(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.followers += n
	c.changes++
	c.values, c.size = nil, 0
}

// get returns the cached value of a key, nil for none, and the count for keep.
func (c *cache) get(key string) (value any, changes uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.values[key], c.changes
}

// keep caches a value of size bytes that was read after get had returned changes.
func (c *cache) keep(key string, value any, size int, changes uint64) {
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
