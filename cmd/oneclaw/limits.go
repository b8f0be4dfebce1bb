package main

import "fmt"

// LimitsConfig bounds what is taken at once. 0 means the default.
type LimitsConfig struct {
	// Waiting bounds the messages of a chat that wait for an answer.
	Waiting int `yaml:"waiting" env:"ONECLAW_MAX_WAITING"`
	// WaitingMember bounds those of one member in all shared chats together.
	WaitingMember int `yaml:"waiting_member" env:"ONECLAW_MAX_WAITING_MEMBER"`
}

func (c Config) checkLimits() error {
	for name, value := range map[string]int{
		"limits.waiting (ONECLAW_MAX_WAITING)": c.Limits.Waiting, "limits.waiting_member (ONECLAW_MAX_WAITING_MEMBER)": c.Limits.WaitingMember,
	} {
		if value < 0 {
			return fmt.Errorf("setting %s: want a number above 0, or 0 for the default", name)
		}
	}
	return nil
}
