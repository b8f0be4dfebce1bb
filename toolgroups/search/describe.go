package search

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"oneclaw/toolgroups"
)

// formatTools formats tools, one per line: name, signature and, if sentences is true, the first
// sentence of the description. To stay within limit characters it leaves out the sentences, then
// the parameter types of the last tools, then their parameters; a note then counts these tools
// and names the tool that shows their parameters. Every tool is named.
func formatTools(tools []toolgroups.Tool, limit int, sentences bool) string {
	lines, outlines, size := make([]string, len(tools)), make([]toolSchema, len(tools)), len(tools)
	write := func(i int, text string) {
		text = "- " + text
		size += utf8.RuneCountInString(text) - utf8.RuneCountInString(lines[i])
		lines[i] = text
	}
	for i, t := range tools {
		outlines[i] = parseToolSchema(t)
		write(i, formatTool(t, outlines[i], sentences))
	}
	if sentences && size > limit {
		for i, t := range tools {
			write(i, formatTool(t, outlines[i], false))
		}
	}
	for i := len(tools) - 1; i >= 0 && size > limit; i-- {
		write(i, tools[i].Name+"("+outlines[i].shortSignature()+")")
	}
	bare := 0
	for i := len(tools) - 1; i >= 0 && size > limit; i-- {
		write(i, tools[i].Name)
		bare++
	}
	if bare > 0 {
		lines = append(lines, fmt.Sprintf("[The parameters of the last %d would be too long here: %s shows them.]", bare, toolgroups.ToolDescribe))
	}
	return strings.Join(lines, "\n")
}

func formatTool(t toolgroups.Tool, o toolSchema, sentence bool) string {
	text := t.Name + o.signature(0)
	if sentence {
		text += " — " + toolgroups.FirstSentence(t.Description)
	}
	return text
}

// toolDescription is a tool in the result of tool_describe.
type toolDescription struct {
	Name        string          `json:"name,omitempty"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

// toolDescriptions is the result of tool_describe for several tools.
type toolDescriptions struct {
	Tools map[string]toolDescription `json:"tools"`
	// Groups are the names of the tools of the requested groups and sources.
	Groups   map[string][]string `json:"groups,omitempty"`
	NotFound []string            `json:"not_found,omitempty"`
	Errors   map[string]string   `json:"errors,omitempty"`
	Hint     string              `json:"hint,omitempty"`
}

// describe runs tool_describe. A result that the model still sees is not repeated.
func (b *bridge) describe(_ context.Context, call toolgroups.Call) (toolgroups.Result, error) {
	res, err := b.answerDescribe(call)
	if err == nil && slices.Contains(b.shownTexts(), res.Text) {
		res.Text = "As shown above."
	}
	return res, err
}

func (b *bridge) answerDescribe(call toolgroups.Call) (toolgroups.Result, error) {
	args, fault := parseArguments(toolgroups.ToolDescribe, call.Arguments)
	if fault != nil {
		return toolgroups.Result{}, fault
	}
	names := parseTexts(args["name"], args["names"])
	_, batch := args["names"]
	switch {
	case len(names) == 0:
		return toolgroups.Result{}, toolgroups.Errorf(toolgroups.CodeMissingParameter,
			"Required parameter 'name' is missing. Find names with %s.", b.finderName())
	case len(names) > maxNames:
		return toolgroups.Result{}, toolgroups.Errorf(toolgroups.CodeInvalid, "Too many names: %d, at most %d in one call.", len(names), maxNames)
	}
	if len(names) == 1 {
		if f, whole := b.cfg.catalogue.lookupOrigin(names[0]); whole {
			return toolgroups.Result{Text: fmt.Sprintf("The %d tools of %s:\n%s", len(f.entries), f.origin, formatTools(toolsOf(f.entries), b.cfg.textLimit, true))}, nil
		}
	}
	if !batch {
		entry, ok := b.cfg.catalogue.lookup(names[0])
		if !ok {
			return toolgroups.Result{}, b.unknownError(names[0])
		}
		if len(entry.tool.Parameters) > toolgroups.MaxText {
			return toolgroups.Result{Text: "Its schema is too long to be shown whole. In short:\n" + formatTool(entry.tool, parseToolSchema(entry.tool), true)}, nil
		}
		return encodeResult(toolDescription{names[0], cmp.Or(entry.tool.Manual, entry.tool.Description), validSchema(entry.tool)})
	}
	return b.describeAll(names)
}

func (b *bridge) describeAll(names []string) (toolgroups.Result, error) {
	r := toolDescriptions{Tools: map[string]toolDescription{}, Errors: map[string]string{}}
	size := 0
	for _, name := range names {
		if f, whole := b.cfg.catalogue.lookupOrigin(name); whole {
			if r.Groups == nil {
				r.Groups = map[string][]string{}
			}
			r.Groups[f.origin] = toolgroups.Names(toolsOf(f.entries))
			continue
		}
		entry, ok := b.cfg.catalogue.lookup(name)
		if !ok {
			if fault := b.unknownError(name); fault.Code == toolgroups.CodeNotFound {
				r.NotFound = append(r.NotFound, clipLine(name, maxEcho))
			} else {
				r.Errors[clipLine(name, maxEcho)] = fault.Message
			}
			continue
		}
		size += len(entry.tool.Parameters) + len(entry.tool.Manual)
		if size > min(maxSchemas, b.cfg.textLimit) && len(r.Tools) > 0 {
			r.Errors[name] = "Left out because the answer would be too long. Describe it alone."
			continue
		}
		r.Tools[name] = toolDescription{Description: cmp.Or(entry.tool.Manual, entry.tool.Description), Parameters: validSchema(entry.tool)}
	}
	if len(r.NotFound) > 0 {
		r.Hint = "Check the spelling of what was not found with " + b.finderName() + "."
	}
	return encodeResult(r)
}

// validSchema returns the schema of a tool's parameters, or an empty one if it is not valid JSON.
func validSchema(t toolgroups.Tool) json.RawMessage {
	if !json.Valid(t.Parameters) {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return t.Parameters
}
