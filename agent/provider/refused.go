package provider

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"oneclaw/agent"
	"oneclaw/toolgroups"
)

// Offer is the tools of a request. Servers refuse the whole request for one tool that they do not accept, so
// such a tool is left out, and remembered for the next requests.
type Offer struct {
	// Tools are the tools that are sent.
	Tools []toolgroups.Tool
	// left are the tools that are left out, fresh those that this request has shown to be refused.
	left, fresh []toolgroups.Tool
}

// maxNamed bounds how many tools are left out one by one. Then their groups are left out.
const maxNamed = 16

// Offer returns the tools of a request without those that the model's server has refused before.
func (k *ModelCache[Quirks]) Offer(model string, tools []toolgroups.Tool) *Offer {
	o := &Offer{Tools: tools}
	if k.refused.Len() > 0 {
		o.leaveOut(func(t *toolgroups.Tool) bool { return k.refused.Has(refusedKey(model, t)) })
	}
	return o
}

func refusedKey(model string, t *toolgroups.Tool) refusedTool {
	return refusedTool{model: model, name: t.Name, schema: string(t.Schema())}
}

// Remember stores the tools that this request has shown to be refused.
func (k *ModelCache[Quirks]) Remember(model string, o *Offer) {
	for i := range o.fresh {
		k.refused.Put(refusedKey(model, &o.fresh[i]), struct{}{}, ModelTTL)
	}
}

// leaveOut leaves out tools, and returns them.
func (o *Offer) leaveOut(which func(t *toolgroups.Tool) bool) (left []toolgroups.Tool) {
	var kept []toolgroups.Tool
	for i := range o.Tools {
		if which(&o.Tools[i]) {
			left = append(left, o.Tools[i])
		} else {
			kept = append(kept, o.Tools[i])
		}
	}
	if len(left) > 0 {
		o.Tools, o.left = kept, append(o.left, left...)
	}
	return left
}

// LeaveOut leaves out the tools that a refusal names, and reports whether there were any. sent are the names
// of the tools as they were sent, in order.
func (o *Offer) LeaveOut(f *Fault, sent []string) bool {
	if f.Failure.Kind != agent.KindRejected && f.Failure.Status < 500 {
		return false
	}
	names := refusedNames(f.Response, sent)
	groups := map[string]bool{}
	if len(o.fresh) >= maxNamed {
		for i := range o.Tools {
			groups[o.Tools[i].Group] = slices.Contains(names, o.Tools[i].Name) || groups[o.Tools[i].Group]
		}
		delete(groups, "")
	}
	left := o.leaveOut(func(t *toolgroups.Tool) bool { return slices.Contains(names, t.Name) || groups[t.Group] })
	o.fresh = append(o.fresh, left...)
	return len(left) > 0
}

// Left returns the names of the tools that are left out.
func (o *Offer) Left() []string { return ToolNames(o.left) }

// ToolNames returns the names of tools.
func ToolNames(tools []toolgroups.Tool) (names []string) {
	for i := range tools {
		names = append(names, tools[i].Name)
	}
	return names
}

var (
	// toolIndexes matches the index of a tool in a refusal: tools.13, tools[13], "tools",13,
	// function_declarations[13] (Claude, OpenAI, Mistral, Gemini).
	toolIndexes = regexp.MustCompile(`(?i)function_?declarations?(?:\[|\.)(\d{1,5})|\btools(?:\[|\.|"\s*,\s*)(\d{1,5})`)
	// toolWords matches what stands in front of a tool's name that is not in quotes.
	toolWords = regexp.MustCompile(`(?i)(?:tool|function)(?: name)?[ :=]+$`)
	// aboutTools matches a refusal that may name a tool.
	aboutTools = regexp.MustCompile(`(?i)\btools?\b|\bfunction|\bschemas?\b`)
	// aboutSchemas matches a refusal of a tool's definition. What only speaks of tools or functions may be about
	// their calls in the messages.
	aboutSchemas  = regexp.MustCompile(`(?i)\bschemas?\b|input_schema|function_?declaration|tools\.function`)
	aboutMessages = regexp.MustCompile(`(?i)\bmessages?\b`)
)

// isAboutTools reports whether a refusal is about the definition of a tool, and not about a message.
func isAboutTools(r *Refusal) bool {
	text := r.text + " " + r.param
	return toolIndexes.MatchString(text) || aboutSchemas.MatchString(text) && !aboutMessages.MatchString(text)
}

// quotes are the marks around a name in a refusal.
const quotes = "'\"`“”"

// refusedNames returns the names of the tools that a refusal names, by their index or their name.
func refusedNames(text string, sent []string) (names []string) {
	var declared, listed []string
	for _, m := range toolIndexes.FindAllStringSubmatch(text, -1) {
		if i, err := strconv.Atoi(m[1] + m[2]); err == nil && i < len(sent) {
			if m[1] != "" {
				declared = append(declared, sent[i])
			} else {
				listed = append(listed, sent[i])
			}
		}
	}
	if len(declared) > 0 { // in tools[0], which is all of them
		return declared
	}
	if !aboutTools.MatchString(text) {
		return listed
	}
	for _, name := range sent {
		if name != "" && isNamed(text, name) {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		return names
	}
	return listed
}

// isNamed reports whether a text has a name in quotes, or after the word tool or function.
func isNamed(text, name string) bool {
	for from := 0; ; {
		at := strings.Index(text[from:], name)
		if at < 0 {
			return false
		}
		at += from
		before, after := text[:at], text[at+len(name):]
		quoted := before != "" && after != "" && strings.ContainsRune(quotes, lastRune(before)) && strings.IndexAny(after, quotes) == 0
		if quoted || toolWords.MatchString(before) && (after == "" || !isWordByte(after[0]) && after[0] != '_' && after[0] != '-') {
			return true
		}
		from = at + len(name)
	}
}

func lastRune(s string) rune {
	r, _ := utf8.DecodeLastRuneInString(s)
	return r
}
