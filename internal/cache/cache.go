// Package cache provides an LRU cache whose values expire.
package cache

import (
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

// Cache holds a bounded number of values; the least recently used is dropped first. It may be
// used concurrently.
type Cache[K comparable, V any] struct {
	values *lru.Cache[K, entry[V]]
}

type entry[V any] struct {
	value   V
	expires time.Time
}

// Forever is the age of a value that does not expire.
const Forever time.Duration = 0

// New makes a cache for size values, but at least one.
func New[K comparable, V any](size int) *Cache[K, V] {
	values, err := lru.New[K, entry[V]](max(size, 1))
	if err != nil {
		panic("cache: " + err.Error()) // only a size below 1 is refused
	}
	return &Cache[K, V]{values}
}

// Put stores a value, which expires after age unless age is [Forever].
func (c *Cache[K, V]) Put(key K, value V, age time.Duration) {
	e := entry[V]{value: value}
	if age != Forever {
		e.expires = time.Now().Add(age)
	}
	c.values.Add(key, e)
}

// Forget removes a value.
func (c *Cache[K, V]) Forget(key K) { c.values.Remove(key) }

// Has reports whether there is a value that has not expired.
func (c *Cache[K, V]) Has(key K) bool {
	_, ok := c.Get(key)
	return ok
}

// Get returns a value that has not expired.
func (c *Cache[K, V]) Get(key K) (value V, ok bool) {
	e, ok := c.values.Get(key)
	if !ok || !e.expires.IsZero() && !time.Now().Before(e.expires) {
		return value, false
	}
	return e.value, true
}

// Len returns how many values there are, expired ones included.
func (c *Cache[K, V]) Len() int { return c.values.Len() }
