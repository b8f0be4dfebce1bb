package config

import (
	"cmp"
	"time"
)

// loadLocation returns the time zone for schedules and get_current_time.
func (c Config) loadLocation() (*time.Location, error) {
	if c.Timezone == "" {
		return time.Local, nil
	}
	return time.LoadLocation(c.Timezone)
}

// Zone returns the time zone, which [Config.Check] has validated.
func (c Config) Zone() *time.Location {
	zone, _ := c.loadLocation()
	return cmp.Or(zone, time.UTC)
}
