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

// The areas used by name; the others are named like their keys.
const (
	// AreaAll is everything: changes may have been missed.
	AreaAll      Area = "all"
	AreaValues   Area = "value"
	AreaSwitches Area = "off"
)

// Follow calls f with the area of each change, here or on another replica, in order, until ctx
// ends. It begins with [AreaAll], and calls f with that again after changes were missed. It
// returns nil when ctx ends, or the error of f or of the store. There may be several followers.
func (s *Settings) Follow(ctx context.Context, f func(context.Context, Area) error) error {
	for {
		err := s.follow(ctx, f)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, storage.ErrLagged):
			s.log.Warn("changes of settings were missed, reading all")
		case err != nil:
			return err
		default:
			return errors.New("settings: the watch ended by itself")
		}
	}
}

// follow starts watching before it reads, so that it misses no change.
func (s *Settings) follow(ctx context.Context, f func(context.Context, Area) error) error {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	events := s.kv.Watch(watching, prefix)
	s.cache.follow(1)
	defer s.cache.follow(-1)
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
