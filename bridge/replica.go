package bridge

import (
	"context"
	"fmt"
	"time"

	"oneclaw/internal/wording"
	"oneclaw/storage/replicas"
)

// Replica returns the id of this replica and the number of its leases; zero values without sharing.
func (b *Bridge) Replica() (id string, leases int) { return b.leases.Replica() }

// replicaLines returns the lines of /status about this replica, and if all is set, about the others.
func (b *Bridge) replicaLines(ctx context.Context, all bool) (text string, err error) {
	members, err := replicas.List(ctx, b.store)
	own, _ := b.Replica()
	for _, m := range members {
		line := fmt.Sprintf("%s, since %s", wording.InlineCode(m.Host), m.Since.UTC().Format(time.RFC1123))
		switch {
		case m.ID == own:
			text += fmt.Sprintf("\n- Answered by: %s, one of %s", line, wording.Plural(len(members), "replica", "replicas"))
		case all:
			text += fmt.Sprintf("\n- Another replica: %s, with %s", line, wording.Plural(len(m.Leases), "lease", "leases"))
		}
	}
	return text, err
}
