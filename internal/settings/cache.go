package settings

import "sync"

// Bounds of the cache. When one is reached, the cache begins anew.
const (
	maxCached      = 4096
	maxCachedBytes = 8 << 20
)

// cache keeps values that were read while a watch follows the changes. It never gives one
// that is older than a write that has returned here; what others write is forgotten when
// the watch tells of it. Lists and secrets are never in it.
type cache struct {
	mu sync.Mutex
	// followers is how many tell of every change. Without one nothing is kept.
	followers int
	// changes counts what was forgotten: a read that began before is not kept, because it
	// may have seen what was there before.
	changes uint64
	values  map[string]any
	size    int
}

// follow adds a follower, or takes one away. A change may have been missed before.
func (c *cache) follow(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.followers += n
	c.changes++
	c.values, c.size = nil, 0
}

// get returns what is kept under a key, nil for nothing, and what keep wants to know.
func (c *cache) get(key string) (value any, changes uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.values[key], c.changes
}

// keep takes a value of so many bytes that was read after get had returned changes.
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
