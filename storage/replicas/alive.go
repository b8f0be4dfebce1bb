package replicas

import (
	"cmp"
	"context"
	"time"

	"oneclaw/storage"
)

// Prefix begins the keys of all records of replicas.
const Prefix = prefix

// aliveInterval is the polling interval of [FindAlive].
const aliveInterval = 200 * time.Millisecond

// FindAlive returns the replicas that have given a sign of life, as soon as one does, or none if none
// does within the time to live; 0 means [DefaultTTL]. If no replica is on record, it does not wait.
func FindAlive(ctx context.Context, kv storage.KV, ttl time.Duration) ([]Member, error) {
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
	every := time.NewTicker(aliveInterval)
	defer every.Stop()
	for over := false; !over; {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-end.C:
			over = true // look once more: this process may have stood still
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
	return nil, nil
}
