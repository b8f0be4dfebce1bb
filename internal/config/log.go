package config

import "log/slog"

// Level returns the level with a name, which has been checked.
func Level(name string) slog.Level {
	var l slog.Level
	_ = l.UnmarshalText([]byte(name)) // checked with the settings
	return l
}
