package bridge

import (
	"context"
	"fmt"
	"time"

	"oneclaw/internal/wording"
	"oneclaw/storage/replicas"
)

// Replica returns the id of this replica, and how many leases it holds; empty if it works alone.
func (b *Bridge) Replica() (id string, leases int) { return b.leases.Replica() }

// replicas lists the replicas for /status: the one that answers here, and for administrators all.
func (b *Bridge) replicas(ctx context.Context, all bool) (text string, err error) {
	members, err := replicas.List(ctx, b.store)
	own, _ := b.Replica()
	for _, m := range members {
		line := fmt.Sprintf("%s, since %s", wording.Code(m.Host), m.Since.UTC().Format(time.RFC1123))
		switch {
		case m.ID == own:
			text += fmt.Sprintf("\n- Answered by: %s, one of %s", line, wording.Count(len(members), "replica", "replicas"))
		case all:
			text += fmt.Sprintf("\n- Another replica: %s, with %s", line, wording.Count(len(m.Leases), "lease", "leases"))
		}
	}
	return text, err
}
