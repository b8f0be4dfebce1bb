package toolgroups

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"oneclaw/internal/wording"
)

// LoadToolGroup is the name of the core tool that loads a group.
const LoadToolGroup = "load_tool_group"

// Error codes of load_tool_group.
const (
	CodeMissingParameter = "missing_parameter"
	codeUnknownGroup     = "not_found"
	CodeEmptyGroup       = "empty_group"
)

// maxEcho bounds an unknown name that is repeated to the model, in characters.
const maxEcho = 64

// newLoadTool returns the tool load_tool_group, whose Run is that of a conversation ([Set.load]). It parses its
// arguments itself because the specification fixes the answer to a missing argument.
func newLoadTool() Tool {
	return Tool{
		Name:            LoadToolGroup,
		Description:     "Load a tool group. You MUST load it before you can use its tools, which stay available for the rest of this conversation.",
		Parameters:      json.RawMessage(`{"type":"object","properties":{"group_name":{"type":"string"}},"required":["group_name"]}`),
		Activity:        "getting tools ready",
		Timeout:         5 * time.Second,
		Effect:          ReadOnly,
		ChecksArguments: true,
		BoundsText:      true,
	}
}

// load returns load_tool_group for one call in this conversation. Its Run loads the group that the call names, at the
// place in the order of loads at which the call was looked up, and returns the group's tools as a text. text is
// [Route].LoadText.
func (s *Set) load(tool Tool, text func([]string, Group, []Tool) string) Tool {
	ticket := s.nextTicket()
	tool.Run = func(_ context.Context, call Call) (Result, error) {
		name, ok := ParseLoadArgument(call.Arguments)
		if !ok {
			return Result{}, Errorf(CodeMissingParameter, "Required parameter 'group_name' is missing.")
		}
		group, tools, fault := s.current().loadable(name, call.Scope)
		if fault != nil {
			return Result{}, fault
		}
		s.add(name, ticket)
		res := Result{Origin: OriginOwn}
		if group.Source != SourceBuiltin {
			res.Origin = originOthers // descriptions that others wrote
		}
		if text == nil {
			notes := group.LoadNotes(MaxText)
			res.Text = LoadText(group.DisplayName, tools, MaxText-utf8.RuneCountInString(notes)) + notes
		} else {
			res.Text = text(s.Loaded(), group, tools)
		}
		return res, nil
	}
	return tool
}

// ParseLoadArgument returns the trimmed group name in the arguments of a load_tool_group call, or
// false if there is none. It serves new loads and the restoring of loads from a history.
func ParseLoadArgument(arguments json.RawMessage) (string, bool) {
	fixed, err := RepairArguments(arguments)
	if err != nil {
		return "", false
	}
	var args map[string]any
	if err := json.Unmarshal(fixed, &args); err != nil {
		return "", false
	}
	name, ok := args["group_name"].(string)
	return strings.TrimSpace(name), ok
}

const (
	// notesHead begins the notes in the result of a load.
	notesHead = "\n\nNotes from the source of these tools:"
	// maxLeftOut bounds the tools that are named as left out.
	maxLeftOut = 20
)

// LoadNotes returns what the result of a load says besides the tools: the notes of the group, and which of
// its tools are left out. It takes at most a quarter of limit characters.
func (g Group) LoadNotes(limit int) string {
	if g.Notes == "" && len(g.LeftOut) == 0 {
		return ""
	}
	text := g.Notes
	if n := len(g.LeftOut); n > 0 {
		var named []string
		for _, t := range g.LeftOut[:min(n, maxLeftOut)] {
			named = append(named, t.Name+" ("+t.Reason+")")
		}
		if n > maxLeftOut {
			named = append(named, fmt.Sprintf("and %d more", n-maxLeftOut))
		}
		text = strings.TrimSpace(fmt.Sprintf("Left out, and not callable: %s.\n%s", strings.Join(named, "; "), text))
	}
	return wording.Clip(notesHead+"\n"+text, max(limit/4, len(notesHead)))
}

// loadable returns a group and those of its tools that the sender may use, or the error for loading it.
func (r *Registry) loadable(name string, scope Scope) (Group, []Tool, *Error) {
	i, ok := r.byGroup[name]
	if !ok {
		return Group{}, nil, Errorf(codeUnknownGroup, "Tool group '%s' not found. Available groups: %s%s",
			oneLine(name, maxEcho), strings.Join(r.GroupNames(), ", "), r.toolAdvice(name))
	}
	group := r.groups[i]
	if scope.reach() < group.Role {
		return Group{}, nil, loadDenied(group)
	}
	tools := slices.DeleteFunc(r.groupTools(name), scope.Hides)
	if len(tools) == 0 {
		return Group{}, nil, Errorf(CodeEmptyGroup, "Tool group '%s' has no available tools.", name)
	}
	return group, tools, nil
}

// toolAdvice returns a sentence for a load that names a tool, with the group that has it.
func (r *Registry) toolAdvice(name string) string {
	tool, ok := r.Tool(name)
	switch {
	case !ok:
		return ""
	case tool.Group == "":
		return fmt.Sprintf(". '%s' is a tool that needs no group: call it.", name)
	}
	return fmt.Sprintf(". '%s' is a tool of the group %s.", name, tool.Group)
}

// LoadText returns the answer to a load: the tools with their descriptions. If that is
// longer than limit characters, the descriptions are cut to their first sentences or left out;
// every tool is always named.
func LoadText(display string, tools []Tool, limit int) string {
	head := fmt.Sprintf("Loaded %d tools from group '%s':", len(tools), display)
	describe := []func(Tool) string{
		func(t Tool) string { return ": " + oneLine(cmp.Or(t.Manual, t.Description), MaxText) },
		func(t Tool) string { return ": " + oneLine(t.Description, MaxText) },
		func(t Tool) string { return ": " + FirstSentence(t.Description) },
		func(Tool) string { return "" },
	}
	var b strings.Builder
	for _, description := range describe {
		b.Reset()
		b.WriteString(head)
		for _, t := range tools {
			b.WriteString("\n- " + t.Name + description(t))
		}
		if utf8.RuneCountInString(b.String()) <= limit {
			break
		}
	}
	return b.String()
}

// ShortLoadText shortens the answer to a load to the names of the tools.
func ShortLoadText(text string) string {
	text, _, _ = strings.Cut(text, notesHead)
	head, list, _ := strings.Cut(text, "\n")
	var names []string
	for entry := range strings.Lines(list) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(entry), "- "); ok {
			if end := strings.IndexAny(name, ":( "); end >= 0 {
				name = name[:end]
			}
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return fmt.Sprintf("%s %s\n[Shortened to fit the model's context. They are loaded: what is not listed as a tool of its own is shown by %s and run by %s.]",
		head, strings.Join(names, ", "), ToolDescribe, ToolCall)
}

// maxSentence bounds a first sentence, in characters.
const maxSentence = 200

// FirstSentence returns the first sentence of a description as one line of at most 200
// characters.
func FirstSentence(description string) string {
	line := oneLine(description, MaxText)
	if end := strings.Index(line, ". "); end >= 0 {
		line = line[:end+1]
	}
	return oneLine(line, maxSentence)
}
