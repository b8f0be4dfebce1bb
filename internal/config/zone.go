package config

import (
	"cmp"
	"time"
)

// loadLocation returns the time zone of the setting timezone, or the host's if it is empty.
func (c Config) loadLocation() (*time.Location, error) {
	if c.Timezone == "" {
		return time.Local, nil
	}
	return time.LoadLocation(c.Timezone)
}

// Zone returns the time zone of the setting timezone, which [Config.Check] has validated, or the host's.
func (c Config) Zone() *time.Location {
	zone, _ := c.loadLocation()
	return cmp.Or(zone, time.UTC)
}
