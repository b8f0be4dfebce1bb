package config

import (
	"cmp"
	"syscall"

	"oneclaw/bridge"
)

const (
	// KeptDescriptors are reserved for the platforms, the store and the port.
	KeptDescriptors = 128
	// TurnDescriptors are reserved per turn: for the model, tools, a send.
	TurnDescriptors = 4
	minTurns        = 4
)

// Descriptors returns the limit of open files and connections of the process.
func Descriptors() int {
	const many = 1 << 20
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return many
	}
	return int(min(limit.Cur, many))
}

// Concurrency bounds concurrent work. By default as many turns may run as the process has descriptors
// for.
func (c Config) Concurrency() bridge.Concurrency {
	l := c.Limits
	l.MaxTurns = cmp.Or(l.MaxTurns, min(max((Descriptors()-KeptDescriptors)/TurnDescriptors, minTurns), bridge.DefaultMaxTurns))
	return l
}
