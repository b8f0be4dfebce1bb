package config

import (
	"cmp"
	"time"
)

// location returns the time zone of schedules and of get_current_time.
func (c Config) location() (*time.Location, error) {
	if c.Timezone == "" {
		return time.Local, nil
	}
	return time.LoadLocation(c.Timezone)
}

// Zone returns the time zone, which was checked with the settings.
func (c Config) Zone() *time.Location {
	zone, _ := c.location()
	return cmp.Or(zone, time.UTC)
}
