package settings

import (
	"context"
	"fmt"
	"strings"

	"oneclaw/storage"
)

// Switches returns the sorted names of the tools and groups that are switched off, as
// a registry takes them. Names that nothing has are among them.
func (s *Settings) Switches(ctx context.Context) (tools, groups []string, err error) {
	if tools, err = s.off(ctx, toolOffPrefix); err != nil {
		return nil, nil, err
	}
	groups, err = s.off(ctx, groupOffPrefix)
	return tools, groups, err
}

func (s *Settings) off(ctx context.Context, below string) ([]string, error) {
	var names []string
	for entry, err := range s.kv.List(ctx, storage.Range{Prefix: below}) {
		if err != nil {
			return nil, fmt.Errorf("settings: list switches: %w", err)
		}
		names = append(names, strings.TrimPrefix(entry.Key, below))
	}
	return names, nil
}

// SetToolEnabled switches a tool on or off.
func (s *Settings) SetToolEnabled(ctx context.Context, name string, on bool) error {
	return s.turn(ctx, toolOffPrefix, name, on)
}

// SetGroupEnabled switches a group on or off. The switches of its tools stay as they
// are and count again once it is on.
func (s *Settings) SetGroupEnabled(ctx context.Context, name string, on bool) error {
	return s.turn(ctx, groupOffPrefix, name, on)
}

func (s *Settings) turn(ctx context.Context, below, name string, on bool) error {
	if !usable(name) {
		return refuse(Invalid, "'%s' is no name of a tool or group.", shorten(name))
	}
	if on {
		return s.remove(ctx, below+name)
	}
	if _, err := s.kv.Put(ctx, below+name, []byte(`true`), storage.Any); err != nil {
		return fmt.Errorf("settings: switch %s off: %w", name, err)
	}
	return nil
}
