package bridge

import (
	"oneclaw/bridge/chats"
	"oneclaw/bridge/lanes"
)

// Load counts the open jobs.
func (b *Bridge) Load() lanes.Load { return b.lanes.Load() }

// Ready returns for each platform nil where it receives, or what is wrong.
func (b *Bridge) Ready() map[string]error {
	ready := make(map[string]error, len(b.platforms))
	for name, p := range b.platforms {
		ready[name] = nil
		if m, ok := p.(chats.Monitor); ok {
			ready[name] = m.Health()
		}
	}
	return ready
}
