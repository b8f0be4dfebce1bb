package config

import (
	"cmp"
	"syscall"

	"oneclaw/bridge"
)

// LimitsConfig bounds what is taken at once. 0 means the default.
type LimitsConfig struct {
	// Turns bounds the answers that are made at the same time.
	Turns int `yaml:"turns" env:"ONECLAW_MAX_TURNS"`
	// Waiting bounds the messages of a chat that wait for an answer.
	Waiting int `yaml:"waiting" env:"ONECLAW_MAX_WAITING"`
	// WaitingMember bounds those of one member in all shared chats together.
	WaitingMember int `yaml:"waiting_member" env:"ONECLAW_MAX_WAITING_MEMBER"`
}

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

// AtOnce is how many turns may run: as many as the process has descriptors for.
func (l LimitsConfig) AtOnce() int {
	return cmp.Or(l.Turns, min(max((Descriptors()-KeptDescriptors)/TurnDescriptors, minTurns), bridge.DefaultMaxTurns))
}
