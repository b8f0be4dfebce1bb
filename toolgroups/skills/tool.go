package skills

import (
	"context"
	"embed"
	"errors"
	"strings"

	"oneclaw/internal/wording"
	"oneclaw/toolgroups"
)

// Error codes of load_skill.
const (
	CodeNotFound = "skill_not_found"
	CodeLoad     = "load_error"
)

//go:embed load_skill.json
var manifests embed.FS

// Tool returns the core tool load_skill.
func (l *Library) Tool() (toolgroups.Tool, error) {
	return toolgroups.ReadTool(manifests, "load_skill", toolgroups.TypedHandler(l.handleLoad))
}

type loadArgs struct {
	Name string `json:"name"`
}

func (l *Library) handleLoad(_ context.Context, _ toolgroups.Call, in loadArgs) (toolgroups.Result, error) {
	name := strings.TrimSpace(in.Name)
	if name == "" {
		return toolgroups.Result{}, toolgroups.Errorf(toolgroups.CodeInvalid, "'name' is empty. Known skills: %s.", l.nameList())
	}
	s, err := l.Skill(name)
	switch {
	case errors.Is(err, errUnknown):
		return toolgroups.Result{}, toolgroups.Errorf(CodeNotFound, "There is no skill '%s'. Known skills: %s.", clipName(name), l.nameList())
	case err != nil:
		return toolgroups.Result{}, toolgroups.Errorf(CodeLoad,
			"The skill '%s' cannot be used: %v. Go on without it and tell the user.", clipName(name), err)
	}
	return toolgroups.Result{Text: s.Text()}, nil
}

func (l *Library) nameList() string {
	var names []string
	for _, s := range l.list() {
		names = append(names, s.Name)
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// clipName shortens a name for an error message.
func clipName(name string) string {
	return wording.Clip(singleLine(strings.ToValidUTF8(name, "")), 100)
}
