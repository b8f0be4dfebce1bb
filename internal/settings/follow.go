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

// The areas that are looked at by name; the others are named as their keys are.
const (
	// AreaAll is everything: something may have changed unseen.
	AreaAll      Area = "all"
	AreaValues   Area = "value"
	AreaSwitches Area = "off"
)

// Follow tells a function in which area each change is, here or on another replica, until
// ctx ends, in order, beginning with [AreaAll], and again with that where changes were
// missed. It returns nil when ctx ends, and the error of the function or of the store
// otherwise. Several may follow.
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

// follow watches first and reads then, so that no change falls in between.
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
