package config

import (
	"cmp"
	"syscall"

	"oneclaw/bridge"
)

const (
	// KeptDescriptors are for the platforms, the store and the port.
	KeptDescriptors = 128
	// TurnDescriptors are for what a turn opens: the model, tools, a send.
	TurnDescriptors = 4
	minTurns        = 4
)

// Descriptors is how many files and connections the process may have open.
func Descriptors() int {
	const many = 1 << 20
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return many
	}
	return int(min(limit.Cur, many))
}

// Crowd bounds what is done at once: as many turns as the process has descriptors for, where
// nothing else is set.
func (c Config) Crowd() bridge.Crowd {
	l := c.Limits
	l.MaxTurns = cmp.Or(l.MaxTurns, min(max((Descriptors()-KeptDescriptors)/TurnDescriptors, minTurns), bridge.DefaultMaxTurns))
	return l
}
