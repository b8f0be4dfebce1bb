package agent

import (
	"regexp"
	"slices"
	"strings"
)

// Markup that servers leave in the text of a reply: thinking tags, the channels of gpt-oss, separator
// tokens, and calls that were not recognized.
var (
	thinkTags       = regexp.MustCompile(`(?i)^\s*<(?:think|thinking|thought|reasoning|seed:think)>`)
	thinkEnds       = regexp.MustCompile(`(?i)</(?:think|thinking|thought|reasoning|seed:think)>`)
	finalMarkers    = regexp.MustCompile(`<\|channel\|>\s*final[^<]{0,40}<\|message\|>`)
	hiddenChannels  = regexp.MustCompile(`(?s)<\|channel\|>\s*(?:analysis|commentary)(?:[^<]|<\|constrain\|>){0,80}<\|message\|>.*?(?:<\|(?:end|call|return)\|>|$)`)
	turnHeads       = regexp.MustCompile(`<\|(?:start|im_start|start_header_id)\|>\s*(?:assistant|system|user|tool)\s*(?:<\|end_header_id\|>)?`)
	separatorTokens = regexp.MustCompile(`<\|[A-Za-z0-9_]{1,40}\|>|<｜[^｜<>\n]{1,40}｜>|</?s>|\[/?INST\]|\[/?TOOL_CALLS\]|<(?:start|end)_of_turn>`)
	toolTags        = regexp.MustCompile(`(?s)<tool_call>.*?(?:</tool_call>|$)|<function_calls>.*?(?:</function_calls>|$)`)
	codeSpans       = regexp.MustCompile("(?s)```.*?(?:```|$)|~~~.*?(?:~~~|$)|`[^`\n]*`")
)

// markupHints are substrings that are fast to find. A text without any of them matches none of the
// patterns above except those for thoughts.
var markupHints = []string{"<|", "<｜", "<s>", "</s>", "INST]", "TOOL_CALLS]", "_of_turn>", "<tool_call>", "<function_calls>"}

// VisibleText returns the part of a reply's text that is meant for the user. Code is left unchanged,
// because users ask about such markup.
func VisibleText(text string) string {
	if !strings.ContainsAny(text, "<[") {
		return text
	}
	rest := stripThinking(text)
	if slices.ContainsFunc(markupHints, func(hint string) bool { return strings.Contains(rest, hint) }) {
		rest = stripMarkup(rest)
	}
	if rest == text {
		return text
	}
	return strings.TrimSpace(rest)
}

// stripMarkup returns the last part that is marked as final, or else the whole text, without markers.
func stripMarkup(rest string) string {
	if at := finalMarkers.FindAllStringIndex(rest, -1); len(at) > 0 {
		rest = rest[at[len(at)-1][1]:]
	}
	return replaceOutsideCode(rest, func(prose string) string {
		for _, p := range []*regexp.Regexp{hiddenChannels, toolTags, turnHeads, separatorTokens} {
			prose = p.ReplaceAllLiteralString(prose, "")
		}
		return prose
	})
}

// stripThinking removes the model's thoughts from the beginning of its answer. If the opening tag was
// part of the prompt, the text begins in the middle of a thought.
func stripThinking(text string) string {
	for thinkTags.MatchString(text) {
		end := thinkEnds.FindStringIndex(text)
		if end == nil {
			return "" // there is only a thought
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

func replaceOutsideCode(text string, change func(string) string) string {
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
