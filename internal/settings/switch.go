package settings

import (
	"context"

	"oneclaw/storage"
)

// Switches stores which tools, groups and skills are switched off.
type Switches struct{ *records }

// ListOff returns the sorted names of the tools and groups that are switched off.
func (s Switches) ListOff(ctx context.Context) (tools, groups []string, err error) {
	if tools, err = s.listNames(ctx, toolOffPrefix); err != nil {
		return nil, nil, err
	}
	groups, err = s.listNames(ctx, groupOffPrefix)
	return tools, groups, err
}

// ListSkillsOff returns the sorted names of the skills that are switched off.
func (s Switches) ListSkillsOff(ctx context.Context) ([]string, error) {
	return s.listNames(ctx, skillOffPrefix)
}

// SetSkill switches a skill on or off.
func (s Switches) SetSkill(ctx context.Context, name string, on bool) error {
	return s.setSwitch(ctx, skillOffPrefix, name, on)
}

// SetTool switches a tool on or off.
func (s Switches) SetTool(ctx context.Context, name string, on bool) error {
	return s.setSwitch(ctx, toolOffPrefix, name, on)
}

// SetGroup switches a group on or off. The switches of its tools are kept, and apply again when the
// group is switched on.
func (s Switches) SetGroup(ctx context.Context, name string, on bool) error {
	return s.setSwitch(ctx, groupOffPrefix, name, on)
}

func (s Switches) setSwitch(ctx context.Context, below, name string, on bool) error {
	if !isValidID(name) {
		return refuse(Invalid, "'%s' is no name of a tool, group or skill.", shorten(name))
	}
	if on {
		return s.remove(ctx, below+name)
	}
	// Any: a concurrent call writes the same value.
	return s.put(ctx, below+name, true, storage.Any)
}
