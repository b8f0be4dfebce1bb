package agent

import (
	"regexp"
	"slices"
	"strings"
)

// Markup that servers leave in the text of a reply: the tags of thoughts, the channels of gpt-oss,
// separator tokens, and calls that were not recognized.
var (
	thinkTags = regexp.MustCompile(`(?i)^\s*<(?:think|thinking|thought|reasoning|seed:think)>`)
	thinkEnds = regexp.MustCompile(`(?i)</(?:think|thinking|thought|reasoning|seed:think)>`)
	finals    = regexp.MustCompile(`<\|channel\|>\s*final[^<]{0,40}<\|message\|>`)
	channels  = regexp.MustCompile(`(?s)<\|channel\|>\s*(?:analysis|commentary)(?:[^<]|<\|constrain\|>){0,80}<\|message\|>.*?(?:<\|(?:end|call|return)\|>|$)`)
	turnHeads = regexp.MustCompile(`<\|(?:start|im_start|start_header_id)\|>\s*(?:assistant|system|user|tool)\s*(?:<\|end_header_id\|>)?`)
	signs     = regexp.MustCompile(`<\|[A-Za-z0-9_]{1,40}\|>|<｜[^｜<>\n]{1,40}｜>|</?s>|\[/?INST\]|\[/?TOOL_CALLS\]|<(?:start|end)_of_turn>`)
	toolTags  = regexp.MustCompile(`(?s)<tool_call>.*?(?:</tool_call>|$)|<function_calls>.*?(?:</function_calls>|$)`)
	codeSpans = regexp.MustCompile("(?s)```.*?(?:```|$)|~~~.*?(?:~~~|$)|`[^`\n]*`")
)

// A text without any of these, which are found much faster, matches no pattern except those of
// thoughts.
var hints = []string{"<|", "<｜", "<s>", "</s>", "INST]", "TOOL_CALLS]", "_of_turn>", "<tool_call>", "<function_calls>"}

// Spoken returns the part of a reply's text that is meant for the user. Code is left unchanged, because
// users ask about such markup.
func Spoken(text string) string {
	if !strings.ContainsAny(text, "<[") {
		return text
	}
	rest := thought(text)
	if slices.ContainsFunc(hints, func(hint string) bool { return strings.Contains(rest, hint) }) {
		rest = unmarked(rest)
	}
	if rest == text {
		return text
	}
	return strings.TrimSpace(rest)
}

// unmarked returns the last part that is marked as final, without its markers.
func unmarked(rest string) string {
	if at := finals.FindAllStringIndex(rest, -1); len(at) > 0 {
		rest = rest[at[len(at)-1][1]:]
	}
	return outsideCode(rest, func(prose string) string {
		for _, p := range []*regexp.Regexp{channels, toolTags, turnHeads, signs} {
			prose = p.ReplaceAllLiteralString(prose, "")
		}
		return prose
	})
}

// thought removes what the model thought before its answer. If the opening tag was part of the prompt,
// the text begins in the middle of a thought.
func thought(text string) string {
	for thinkTags.MatchString(text) {
		end := thinkEnds.FindStringIndex(text)
		if end == nil {
			return "" // it holds only a thought
		}
		text = text[end[1]:]
	}
	for _, closing := range []string{"</think>", "</thinking>"} {
		before, after, found := strings.Cut(text, closing)
		if found && !strings.Contains(before, "<think") && !strings.Contains(before, "`") {
			text = after
		}
	}
	return text
}

func outsideCode(text string, change func(string) string) string {
	var b strings.Builder
	done := 0
	for _, span := range codeSpans.FindAllStringIndex(text, -1) {
		b.WriteString(change(text[done:span[0]]))
		b.WriteString(text[span[0]:span[1]])
		done = span[1]
	}
	b.WriteString(change(text[done:]))
	return b.String()
}
