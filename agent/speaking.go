package agent

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

var (
	// openHeads matches markers at the beginning of a part of the reply: what follows belongs to the
	// marker until one of headEnds.
	openHeads = regexp.MustCompile(`^<\|(?:channel|start|im_start|start_header_id|constrain)\|>`)
	headEnds  = regexp.MustCompile(`^<\|(?:start|im_start)\|>\s*(?:assistant|system|user|tool)\s+[^\s<]|<\|(?:message|end_header_id)\|>`)
	// halfSigns matches the beginnings of tags and markers.
	halfSigns = regexp.MustCompile(`(?:<[^\s<>]{0,60}|<｜[^｜<>\n]{0,40}｜?|\[/?[A-Z_]{0,11})$`)
	// aloud matches models that think in the text of their replies without a tag at its beginning, if
	// their server does not remove the thoughts.
	aloud = regexp.MustCompile(`(?i)qwq|deepseek-r1|[-_/]r1\b|think|reason|qwen3|magistral|nemotron|glm-(?:4[.][5-9]|z1|[5-9])|minimax-m|hunyuan|exaone-deep|marco-o1|skywork-o1|smollm3`)
)

// maxHead bounds the length of a marker and what belongs to it, in bytes.
const maxHead = 1500

// ThinksAloud reports whether, judging by the model's name, its replies may begin in the middle of a
// thought.
func ThinksAloud(model string) bool { return aloud.MatchString(model) }

// Speaking is [Spoken] for a reply that is still streaming: it returns the text that is certainly meant
// for the user. aloud says that the reply may begin in the middle of a thought.
func Speaking(text string, aloud bool) string {
	if aloud && !thinkEnds.MatchString(text) {
		return ""
	}
	for {
		end := len(text)
		if at := halfSigns.FindStringIndex(text[max(0, len(text)-maxHead):]); at != nil {
			end = max(0, len(text)-maxHead) + at[0]
		}
		if at := strings.LastIndex(text[:end], "<|"); at >= 0 && end-at < maxHead && openHeads.MatchString(text[at:end]) && !headEnds.MatchString(text[at:end]) {
			end = at
		}
		for end > 0 && end < len(text) && !utf8.RuneStart(text[end]) {
			end--
		}
		if end == len(text) {
			return Spoken(text)
		}
		text = text[:end]
	}
}

// beganInThought reports whether a reply began in the middle of a thought.
func beganInThought(text string) bool {
	end := thinkEnds.FindStringIndex(text)
	return end != nil && !strings.Contains(text[:end[0]], "<") && !strings.Contains(text[:end[0]], "`")
}
