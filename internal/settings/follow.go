package settings

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"oneclaw/storage"
)

// Area is a part of the settings.
type Area string

// The areas that have constants. Other areas are named like the part of the key after the prefix.
const (
	// AreaAll stands for all areas; it is reported if changes may have been missed.
	AreaAll       Area = "all"
	AreaValues    Area = "value"
	AreaSwitches  Area = "off"
	AreaKeys      Area = "key"
	AreaVariables Area = "variable"
)

// Follow calls f with the area of each change, by this or another replica, in order, until ctx ends. It
// begins with [AreaAll], and repeats that whenever changes were missed. It returns nil when ctx ends, or
// else the error of f or the store. It may be called more than once at a time.
func (s *Settings) Follow(ctx context.Context, f func(context.Context, Area) error) error {
	for {
		err := s.watch(ctx, f)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, storage.ErrLagged):
			s.log.Warn("missed changes of settings, reloading all settings")
		case err != nil:
			return err
		default:
			return errors.New("settings: the watch ended without an error")
		}
	}
}

// watch starts watching before it calls f with AreaAll, so that it misses no change.
func (s *Settings) watch(ctx context.Context, f func(context.Context, Area) error) error {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	events := s.kv.Watch(watching, prefix)
	s.cache.addFollowers(1)
	defer s.cache.addFollowers(-1)
	if err := f(ctx, AreaAll); err != nil {
		return err
	}
	for event, err := range events {
		if err != nil {
			return fmt.Errorf("settings: watch: %w", err)
		}
		s.cache.forget(event.Key)
		area, _, _ := strings.Cut(strings.TrimPrefix(event.Key, prefix), "/")
		if err := f(ctx, Area(area)); err != nil {
			return err
		}
	}
	return nil
}
