package config

import (
	"cmp"
	"syscall"

	"oneclaw/bridge"
)

const (
	// ReservedDescriptors is the number of descriptors for the platforms, the store and the port.
	ReservedDescriptors = 128
	// TurnDescriptors is the number of descriptors for a turn: for the model, tools and a send.
	TurnDescriptors = 4
	minTurns        = 4
)

// Descriptors returns the process's limit of open files and connections.
func Descriptors() int {
	const many = 1 << 20
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return many
	}
	return int(min(limit.Cur, many))
}

// Concurrency returns the bounds of concurrent work. By default, the number of turns is bounded by the
// process's descriptors.
func (c Config) Concurrency() bridge.Concurrency {
	l := c.Limits
	l.MaxTurns = cmp.Or(l.MaxTurns, min(max((Descriptors()-ReservedDescriptors)/TurnDescriptors, minTurns), bridge.DefaultMaxTurns))
	return l
}
