package config

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"oneclaw/internal/wording"
	"oneclaw/toolgroups"
)

// isAlwaysOn reports whether a tool or group is needed to switch others on again.
func isAlwaysOn(in switchArgs) bool {
	if in.Type == "group" {
		return in.Name == "config"
	}
	return slices.Contains([]string{toolgroups.LoadToolGroup, "set_tool_enabled", "list_tool_states"}, in.Name)
}

func (f *Tools) listToolStates(context.Context, toolgroups.Call, noArgs) (string, error) {
	reg := f.cfg.Registry()
	groups := reg.Groups()
	slices.SortFunc(groups, func(a, b toolgroups.Group) int { return cmp.Compare(a.Name, b.Name) })
	off, _ := reg.DisabledNames()
	var b strings.Builder
	for _, g := range groups {
		closed := reg.GroupDisabled(g.Name)
		fmt.Fprintf(&b, "%s: %s\n", g.Name, onOff(!closed))
		writeStates(&b, g.Tools, off, closed)
		b.WriteByte('\n')
	}
	b.WriteString("Without a group:\n")
	writeStates(&b, reg.Core(), off, false)
	if states := f.skillStates(); len(states) > 0 {
		b.WriteString("\nSkills:\n")
		for _, name := range slices.Sorted(maps.Keys(states)) {
			fmt.Fprintf(&b, "- %s: %s\n", name, onOff(states[name]))
		}
	}
	return strings.TrimRight(b.String(), "\n"), nil
}

func (f *Tools) skillStates() map[string]bool {
	if f.cfg.Skills == nil {
		return nil
	}
	return f.cfg.Skills.States()
}

func writeStates(b *strings.Builder, tools []toolgroups.Tool, off []string, closed bool) {
	slices.SortFunc(tools, func(a, b toolgroups.Tool) int { return cmp.Compare(a.Name, b.Name) })
	for _, t := range tools {
		fmt.Fprintf(b, "- %s: %s", t.Name, onOff(!slices.Contains(off, t.Name)))
		if closed {
			b.WriteString(" (its group is off)")
		}
		b.WriteByte('\n')
	}
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

type switchArgs struct {
	Name    string `json:"name"`
	Enabled bool   `json:"enabled"`
	Type    string `json:"type"`
}

func (f *Tools) setToolEnabled(ctx context.Context, _ toolgroups.Call, in switchArgs) (string, error) {
	set, what := f.cfg.Settings.Switches.SetTool, "Tool"
	switch in.Type {
	case "group":
		set, what = f.cfg.Settings.Switches.SetGroup, "Group"
	case "skill":
		set, what = f.cfg.Settings.Switches.SetSkill, "Skill"
	}
	if err := f.checkSwitch(in); err != nil {
		return "", err
	}
	if err := set(ctx, in.Name, in.Enabled); err != nil {
		return "", err
	}
	if f.cfg.OnSwitch != nil {
		if err := f.cfg.OnSwitch(ctx); err != nil {
			return "", err
		}
	}
	text := fmt.Sprintf("%s '%s' is now %s.", what, in.Name, onOff(in.Enabled))
	if group, ok := f.cfg.Registry().GroupOf(in.Name); ok && in.Enabled && what == "Tool" && f.cfg.Registry().GroupDisabled(group) {
		text += " Its group '" + group + "' is off, so that it cannot be used before that is on."
	}
	return text, nil
}

// checkSwitch returns an error for an unknown name, and for a tool that must stay on.
func (f *Tools) checkSwitch(in switchArgs) error {
	reg := f.cfg.Registry()
	if in.Type == "skill" {
		states := f.skillStates()
		if _, ok := states[in.Name]; !ok {
			return toolgroups.Errorf(codeNotFound, "There is no skill '%s'. list_tool_states shows all.", clipName(in.Name))
		}
		return nil
	}
	if in.Type == "group" {
		ruled := slices.ContainsFunc(reg.Core(), func(t toolgroups.Tool) bool { return t.RuleGroup != "" && t.RuleGroup == in.Name })
		if _, ok := reg.Group(in.Name); !ok && !ruled {
			return toolgroups.Errorf(codeNotFound, "There is no tool group '%s'. Groups: %s.", clipName(in.Name), strings.Join(reg.GroupNames(), ", "))
		}
	} else if _, ok := reg.Tool(in.Name); !ok {
		return toolgroups.Errorf(codeNotFound, "There is no tool '%s'. list_tool_states shows all.", clipName(in.Name))
	}
	if !in.Enabled && isAlwaysOn(in) {
		return toolgroups.Errorf(toolgroups.CodeDenied, "'%s' cannot be switched off: it is needed to switch things on again.", in.Name)
	}
	return nil
}

// clipName shortens a name for an error message.
func clipName(name string) string { return wording.Clip(name, 64) }
