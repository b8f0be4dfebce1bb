package config

import "log/slog"

// Level is the level of a name that was checked with the settings.
func Level(name string) slog.Level {
	var l slog.Level
	_ = l.UnmarshalText([]byte(name)) // checked with the settings
	return l
}
