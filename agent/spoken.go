package agent

import (
	"regexp"
	"slices"
	"strings"
)

// Markup that servers leave in the text of a reply: thoughts in the marks of each family (think tags, the channels
// of gpt-oss and of Gemma 4: mlx-vlm #899, the marks of Command, Magistral, OpenThinker, Kimi-VL, Apertus, MedGemma),
// separator tokens, and calls that were not recognized.
var (
	thinkTags       = regexp.MustCompile(`(?i)^\s*(?:<(?:think|thinking|thought|reasoning|seed:think)>|<\|channel>\s*(?:thought|analysis)\b|<\|(?:start_thinking|begin_of_thought|inner_prefix)\|>|\[think\]|◁think▷|<unused94>)`)
	thinkEnds       = regexp.MustCompile(`(?i)</(?:think|thinking|thought|reasoning|seed:think)>|<channel\|>|<\|(?:end_thinking|end_of_thought|inner_suffix)\|>|\[/think\]|◁/think▷|<unused95>|\[begin final response\]`)
	finalMarkers    = regexp.MustCompile(`<\|channel\|>\s*final[^<]{0,40}<\|message\|>`)
	hiddenChannels  = regexp.MustCompile(`(?s)(?:\bto=[\w.-]+\s*)?<\|channel\|>\s*(?:analysis|commentary)(?:[^<]|<\|constrain\|>){0,80}<\|message\|>.*?(?:<\|(?:end|call|return)\|>|$)`)
	hiddenThoughts  = regexp.MustCompile(`(?s)<think>.*?</think>|<\|channel>\s*(?:thought|analysis).*?(?:<channel\|>|$)|<\|(?:START_THINKING|begin_of_thought|inner_prefix)\|>.*?(?:<\|(?:END_THINKING|end_of_thought|inner_suffix)\|>|$)|\[THINK\].*?(?:\[/THINK\]|$)|◁think▷.*?(?:◁/think▷|$)|<unused94>.*?(?:<unused95>|$)`)
	turnHeads       = regexp.MustCompile(`<\|(?:start|im_start|start_header_id)\|>\s*(?:assistant|system|user|tool)\s*(?:<\|end_header_id\|>)?|<\|turn>\s*(?:model|user|system|tool)\b`)
	separatorTokens = regexp.MustCompile(`<\|[A-Za-z0-9_]{1,40}\|>|<\|[a-z_]{1,40}>|<[a-z_]{1,40}\|>|<\|"\|>|<｜[^｜<>\n]{1,40}｜>|</?s>|\[/?INST\]|\[/?TOOL_CALLS\]|\[/?THINK\]|◁/?think▷|<unused9[45]>|<(?:start|end)_of_turn>|</(?:function_calls?|tool_calls?|invoke)>|\[END FINAL RESPONSE\]`)
	toolTags        = regexp.MustCompile(`(?s)<tool_calls?>.*?(?:</tool_calls?>|$)|<function_calls?>.*?(?:</function_calls?>|$)|<tools>\s*(?:$|[\[{].*?(?:</tools>|$))|<\|tool_call>.*?(?:<tool_call\|>|$)|<\|tool_call\|>.*?(?:<\|/tool_call\|>|$)|<\|action_start\|>.*?(?:<\|action_end\|>|$)|` +
		`<\|tool_calls_section_begin\|>.*?(?:<\|tool_calls_section_end\|>|$)|<\|tool_call_begin\|>.*?(?:<\|tool_call_end\|>|$)|<｜tool▁calls▁begin｜>.*?(?:<｜tool▁calls▁end｜>|$)|<｜tool▁call▁begin｜>.*?(?:<｜tool▁call▁end｜>|$)|` +
		`\[TOOL_CALLS\]\s*(?:\[\s*\{|[\w.-]+\s*(?:\[ARGS\]|\[CALL_ID\]|\{)).*?(?:\[/TOOL_CALLS\]|</s>|$)|<\|START_ACTION\|>.*?(?:<\|END_ACTION\|>|$)|<TOOLCALL>.*?(?:</TOOLCALL>|$)|<\|python_tag\|>.*?(?:<\|eo[mt]_id\|>|$)|` +
		`<\|FunctionCallBegin\|>.*?(?:<\|FunctionCallEnd\|>|$)|<function=[\w.-]+>.*?(?:</function>|$)(?:\s*</tool_call>)?|<invoke name=.*?(?:</invoke>|$)`)
	codeSpans = regexp.MustCompile("(?s)```.*?(?:```|$)|~~~.*?(?:~~~|$)|`[^`\n]*`")
)

// markupHints are substrings that are fast to find. A text without any of them matches none of the
// patterns above except those for thoughts.
var markupHints = []string{"<|", "|>", "<｜", "<s>", "</s>", "INST]", "TOOL_CALLS]", "THINK]", "FINAL RESPONSE]", "_of_turn>", "tool_call", "<tools>", "</think>", "function_call", "</invoke>", "<function=", "<invoke", "<TOOLCALL>", "think▷", "<unused9"}

// VisibleText returns the part of a reply's text that is meant for the user. Code is left unchanged,
// because users ask about such markup.
func VisibleText(text string) string {
	if !strings.ContainsAny(text, "<[◁") {
		return text
	}
	rest := stripThinking(plainMarks(text))
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
	var out strings.Builder
	done := 0
	for _, at := range findOutsideCode(rest, toolTags) {
		out.WriteString(rest[done:at[0]])
		done = at[1]
	}
	return replaceOutsideCode(out.String()+rest[done:], func(prose string) string {
		for _, p := range []*regexp.Regexp{hiddenChannels, hiddenThoughts, turnHeads, separatorTokens} {
			prose = p.ReplaceAllLiteralString(prose, "")
		}
		return prose
	})
}

// stripThinking removes the model's thoughts from the beginning of its answer. If the opening tag was
// part of the prompt, the text begins in the middle of a thought.
func stripThinking(text string) string {
	whole := text
	for thinkTags.MatchString(text) {
		end := thinkEnds.FindStringIndex(text)
		if end == nil {
			return "" // there is only a thought
		}
		text = afterThought(text[end[0]:end[1]], text[end[1]:])
	}
	for _, closing := range []string{"</think>", "</thinking>", "</seed:think>", "<channel|>", "<|END_THINKING|>", "[/THINK]", "◁/think▷", "[BEGIN FINAL RESPONSE]"} {
		before, after, found := strings.Cut(text, closing)
		if found && !strings.Contains(before, "<think") && !strings.Contains(before, "<|channel>") && !strings.Contains(before, "`") {
			text = afterThought(closing, after)
		}
	}
	if answer, marked := strings.CutPrefix(strings.TrimSpace(text), "<answer>"); marked && text != whole { // Hunyuan, GLM-4.1V
		return strings.TrimSuffix(answer, "</answer>")
	}
	return text
}

// afterThought returns the text behind a thought. Gemma may leave out the mark of a call there (vllm #54256).
func afterThought(closing, text string) string {
	if closing == "<channel|>" && gemmaCall.MatchString(text) && strings.HasPrefix(strings.TrimSpace(text), "call:") {
		return "<|tool_call>" + text
	}
	return text
}

// thoughtIn returns what [VisibleText] removes from the beginning of a text.
func thoughtIn(text string) string {
	text = plainMarks(text)
	rest := stripThinking(text)
	if at := strings.LastIndex(text, rest); at >= 0 && rest != "" { // marks of the answer may follow
		return strings.TrimSpace(text[:at])
	}
	return strings.TrimSpace(text)
}

// maxMarked bounds how many matches [findOutsideCode] looks at.
const maxMarked = 300

// findOutsideCode returns the matches of a pattern that do not begin in code. They may contain code.
func findOutsideCode(text string, pattern *regexp.Regexp) (all [][]int) {
	code := codeSpans.FindAllStringIndex(text, -1)
	for from, tries := 0, 0; ; tries++ {
		if tries > maxMarked {
			return all
		}
		at := pattern.FindStringSubmatchIndex(text[from:])
		if at == nil {
			return all
		}
		for i := range at {
			if at[i] >= 0 {
				at[i] += from
			}
		}
		from = max(at[1], at[0]+1)
		inCode := slices.IndexFunc(code, func(span []int) bool { return span[0] <= at[0] && at[0] < span[1] })
		if inCode < 0 {
			all = append(all, at)
		} else {
			from = code[inCode][1]
		}
		if from >= len(text) {
			return all
		}
	}
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
