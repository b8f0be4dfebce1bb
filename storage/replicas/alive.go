package replicas

import (
	"cmp"
	"context"
	"time"

	"oneclaw/storage"
)

// Prefix begins the keys of all records of replicas.
const Prefix = prefix

// aliveEvery is the polling interval of [Alive].
const aliveEvery = 200 * time.Millisecond

// Alive returns replicas that give a sign of life, as soon as one does, or none if none has
// done so within the time to live; 0 means [DefaultTTL]. Where no replica is on record it
// does not wait.
func Alive(ctx context.Context, kv storage.KV, ttl time.Duration) ([]Member, error) {
	first, err := List(ctx, kv)
	if err != nil || len(first) == 0 {
		return nil, err
	}
	known := map[string]uint64{}
	for _, m := range first {
		known[m.ID] = m.Beat
	}
	end := time.NewTimer(cmp.Or(ttl, DefaultTTL))
	defer end.Stop()
	every := time.NewTicker(aliveEvery)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-end.C:
			return nil, nil
		case <-every.C:
		}
		members, err := List(ctx, kv)
		if err != nil {
			return nil, err
		}
		var alive []Member
		for _, m := range members {
			if beat, seen := known[m.ID]; !seen || beat != m.Beat {
				alive = append(alive, m)
			}
		}
		if len(alive) > 0 {
			return alive, nil
		}
	}
}
