package search

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"oneclaw/toolgroups"
)

// Lines formats tools, one per line: name, signature and, with sentences, the first sentence of
// the description. To stay within limit characters it leaves out the sentences, then the types
// of the last tools' parameters, then these parameters; every tool is named, and if that is all,
// the end says how many there are and how to see the rest.
func Lines(tools []toolgroups.Tool, limit int, sentences bool) string {
	lines, outlines, size := make([]string, len(tools)), make([]outline, len(tools)), len(tools)
	write := func(i int, text string) {
		text = "- " + text
		size += utf8.RuneCountInString(text) - utf8.RuneCountInString(lines[i])
		lines[i] = text
	}
	for i, t := range tools {
		outlines[i] = outlineOf(t)
		write(i, line(t, outlines[i], sentences))
	}
	if sentences && size > limit {
		for i, t := range tools {
			write(i, line(t, outlines[i], false))
		}
	}
	for i := len(tools) - 1; i >= 0 && size > limit; i-- {
		write(i, tools[i].Name+"("+outlines[i].parameters()+")")
	}
	bare := 0
	for i := len(tools) - 1; i >= 0 && size > limit; i-- {
		write(i, tools[i].Name)
		bare++
	}
	if bare > 0 {
		lines = append(lines, fmt.Sprintf("[The parameters of the last %d would be too long here: %s shows them.]", bare, ToolDescribe))
	}
	return strings.Join(lines, "\n")
}

func line(t toolgroups.Tool, o outline, sentence bool) string {
	text := t.Name + o.use(0)
	if sentence {
		text += " — " + toolgroups.FirstSentence(t.Description)
	}
	return text
}

// described is a tool in the result of tool_describe.
type described struct {
	Name        string          `json:"name,omitempty"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

// manyDescribed describes several tools.
type manyDescribed struct {
	Tools map[string]described `json:"tools"`
	// Groups are the tools of the requested groups and sources.
	Groups   map[string][]string `json:"groups,omitempty"`
	NotFound []string            `json:"not_found,omitempty"`
	Errors   map[string]string   `json:"errors,omitempty"`
	Hint     string              `json:"hint,omitempty"`
}

// describe runs tool_describe.
func (b *Bridge) describe(_ context.Context, call toolgroups.Call) (toolgroups.Result, error) {
	res, err := b.tell(call)
	if err == nil && slices.Contains(b.shown(), res.Text) {
		res.Text = "As shown above."
	}
	return res, err
}

func (b *Bridge) tell(call toolgroups.Call) (toolgroups.Result, error) {
	args, fault := object(ToolDescribe, call.Arguments)
	if fault != nil {
		return toolgroups.Result{}, fault
	}
	names := texts(args["name"], args["names"])
	_, batch := args["names"]
	switch {
	case len(names) == 0:
		return toolgroups.Result{}, toolgroups.Errorf(toolgroups.CodeMissingParameter,
			"Required parameter 'name' is missing. Find names with %s.", b.finder())
	case len(names) > MaxNames:
		return toolgroups.Result{}, toolgroups.Errorf(toolgroups.CodeInvalid, "Too many names: %d, at most %d in one call.", len(names), MaxNames)
	}
	if len(names) == 1 {
		if f, whole := b.cfg.Catalogue.whole(names[0]); whole {
			return toolgroups.Result{Text: fmt.Sprintf("The %d tools of %s:\n%s", len(f.Entries), f.Origin, Lines(Tools(f.Entries), b.cfg.Limit, true))}, nil
		}
	}
	if !batch {
		entry, ok := b.cfg.Catalogue.Lookup(names[0])
		if !ok {
			return toolgroups.Result{}, b.unknown(names[0])
		}
		if len(entry.Tool.Parameters) > toolgroups.MaxText {
			return toolgroups.Result{Text: "Its schema is too long to be shown whole. In short:\n" + line(entry.Tool, outlineOf(entry.Tool), true)}, nil
		}
		return reply(described{names[0], entry.Tool.Description, wire(entry.Tool)})
	}
	return b.describeAll(names)
}

func (b *Bridge) describeAll(names []string) (toolgroups.Result, error) {
	r := manyDescribed{Tools: map[string]described{}, Errors: map[string]string{}}
	size := 0
	for _, name := range names {
		if f, whole := b.cfg.Catalogue.whole(name); whole {
			if r.Groups == nil {
				r.Groups = map[string][]string{}
			}
			r.Groups[f.Origin] = toolgroups.Names(Tools(f.Entries))
			continue
		}
		entry, ok := b.cfg.Catalogue.Lookup(name)
		if !ok {
			if fault := b.unknown(name); fault.Code == toolgroups.CodeNotFound {
				r.NotFound = append(r.NotFound, clip(name, maxEcho))
			} else {
				r.Errors[clip(name, maxEcho)] = fault.Message
			}
			continue
		}
		size += len(entry.Tool.Parameters)
		if size > min(maxSchemas, b.cfg.Limit) && len(r.Tools) > 0 {
			r.Errors[name] = "Left out because the answer would be too long. Describe it alone."
			continue
		}
		r.Tools[name] = described{Description: entry.Tool.Description, Parameters: wire(entry.Tool)}
	}
	if len(r.NotFound) > 0 {
		r.Hint = "Check the spelling of what was not found with " + b.finder() + "."
	}
	return reply(r)
}

// wire returns the parameters, or an empty schema if they cannot be encoded.
func wire(t toolgroups.Tool) json.RawMessage {
	if !json.Valid(t.Parameters) {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return t.Parameters
}
