package bridge

// Replica is the id under which this process has joined those that share its store, and how
// many leases it holds; empty where it works alone.
func (b *Bridge) Replica() (id string, leases int) { return b.owners.Replica() }
