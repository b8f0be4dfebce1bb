package agent

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

var (
	// openHeads matches a marker that opens the header of a part of the reply. The header ends with one
	// of headEnds.
	openHeads = regexp.MustCompile(`^<\|(?:channel|start|im_start|start_header_id|constrain)\|>`)
	headEnds  = regexp.MustCompile(`^<\|(?:start|im_start)\|>\s*(?:assistant|system|user|tool)\s+[^\s<]|<\|(?:message|end_header_id)\|>`)
	// partialMarkers matches an incomplete tag or marker at the end of a text.
	partialMarkers = regexp.MustCompile(`(?:<[^\s<>]{0,60}|<(?:antml:|｜DSML｜)?(?:invoke|parameter) [^<>]{0,60}|<｜[^｜<>\n]{0,40}｜?|\[/?[A-Z_]{0,11}|◁/?[a-z]{0,6}|<\|channel>\s*[a-z]{0,8}|<channel\|>\s*(?:c|ca|cal|call:?|call:[\w-]{1,64})?|\[TOOL_CALLS\]\s*[\w.-]{0,64}\[?[A-Z_]{0,7}\]?\s*|(?:^|assistant)\s*to=[\w.-]{0,80}\s*|<tools>\s*)$`)
	// partialCalls matches the end of a text that may become a call in JSON (bareCall).
	partialCalls = regexp.MustCompile("(?s)(?:^|\n)\\s*(?:`{1,2}$|```(?:j|js|jso|json)?\\s*)?(?:functools)?\\[?\\s*(?:\\{\\s*(?:\"[a-z_]{0,11}\"?\\s*)?)?$")
	// aloudModels matches models that write their thoughts at the beginning of the reply's text, without
	// an opening tag, if their server does not remove the thoughts.
	aloudModels = regexp.MustCompile(`(?i)qwq|deepseek-r1|[-_/]r1\b|think|reason|qwen3|magistral|nemotron|glm-(?:4[.][5-9]|z1|[5-9])|minimax-m|hunyuan|apriel|exaone-deep|marco-o1|skywork-o1|smollm3`)
)

// maxHead bounds the length of a marker with its header, in bytes.
const maxHead = 1500

// ThinksAloud reports whether the replies of a model with this name may begin in the middle of a
// thought.
func ThinksAloud(model string) bool { return aloudModels.MatchString(model) }

// VisiblePrefix is [VisibleText] for a reply that is still streaming. It returns only text that is
// certainly meant for the user. Set aloud if the reply may begin in the middle of a thought.
func VisiblePrefix(text string, aloud bool) string {
	for {
		if aloud && !thinkEnds.MatchString(text) {
			return ""
		}
		end := len(text)
		if at := partialMarkers.FindStringIndex(text[max(0, len(text)-maxHead):]); at != nil {
			end = max(0, len(text)-maxHead) + at[0]
		}
		if at := strings.LastIndex(text[:end], "<think>"); at >= 0 && !strings.Contains(text[at:end], "</think>") {
			end = at
		}
		if at := strings.LastIndex(text[:end], "<|"); at >= 0 && end-at < maxHead && openHeads.MatchString(text[at:end]) && !headEnds.MatchString(text[at:end]) {
			end = at
		}
		for end > 0 && end < len(text) && !utf8.RuneStart(text[end]) {
			end--
		}
		if at := bareCall.FindStringIndex(text[:end]); at != nil {
			end = at[0]
		} else if at := partialCalls.FindStringIndex(text[:end]); at != nil && strings.TrimSpace(text[at[0]:end]) != "" {
			end = at[0]
		}
		if end == len(text) {
			return VisibleText(text)
		}
		text = text[:end]
	}
}

// beganInThought reports whether a reply began in the middle of a thought.
func beganInThought(text string) bool {
	end := thinkEnds.FindStringIndex(text)
	return end != nil && !strings.Contains(text[:end[0]], "<") && !strings.Contains(text[:end[0]], "`")
}
