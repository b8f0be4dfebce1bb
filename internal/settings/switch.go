package settings

import (
	"context"

	"oneclaw/storage"
)

// Switches turn tools and groups off.
type Switches struct{ *records }

// Off returns the sorted names of the tools and groups that are switched off.
func (s Switches) Off(ctx context.Context) (tools, groups []string, err error) {
	if tools, err = s.names(ctx, toolOffPrefix); err != nil {
		return nil, nil, err
	}
	groups, err = s.names(ctx, groupOffPrefix)
	return tools, groups, err
}

// SetTool switches a tool on or off.
func (s Switches) SetTool(ctx context.Context, name string, on bool) error {
	return s.turn(ctx, toolOffPrefix, name, on)
}

// SetGroup switches a group on or off. The switches of its tools are kept and apply again once
// it is on.
func (s Switches) SetGroup(ctx context.Context, name string, on bool) error {
	return s.turn(ctx, groupOffPrefix, name, on)
}

func (s Switches) turn(ctx context.Context, below, name string, on bool) error {
	if !usable(name) {
		return refuse(Invalid, "'%s' is no name of a tool or group.", shorten(name))
	}
	if on {
		return s.remove(ctx, below+name)
	}
	// Any: a concurrent call writes the same.
	return s.put(ctx, below+name, true, storage.Any)
}
