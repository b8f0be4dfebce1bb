package config

import "log/slog"

// ParseLevel returns the log level with a name, which must be valid.
func ParseLevel(name string) slog.Level {
	var l slog.Level
	_ = l.UnmarshalText([]byte(name)) // checked with the settings
	return l
}
