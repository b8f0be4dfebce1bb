package openai

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

var (
	drawPattern   = regexp.MustCompile(`(?im)^(?:(?:please|can you|could you|oh|now|and|also)[,\s]+)*(?:draw|paint|sketch)\b(?:\s+(?:me|us))?\s+(.+)$|\b(?:make|draw|paint|create|generate|give me|i want|i need|want)\b.*?\b(?:picture|image) of\s+(.+)$`)
	changePattern = regexp.MustCompile(`(?im)^\W*(?:please )?(?:make it|turn it|change (?:it|the (?:picture|photo|image))|edit (?:it|the (?:picture|photo|image)))\b[\s:,]*(.+)$`)
	pictureName   = regexp.MustCompile(`(?i)[\p{L}\d_./-]+\.(?:png|jpe?g|webp)\b`)
	drawable      = regexp.MustCompile(`^(?:cat|picture|image|drawing)$`)
	colour        = regexp.MustCompile(`(?i)\b(?:red|green|blue|yellow|orange|purple|pink|brown|black|gr[ae]y)\b`)
)

// drawPicture makes a picture, which is sent to the chat.
func (t *turn) drawPicture(m []string) string {
	what := strings.Trim(m[1]+m[2], " .!?")
	words := slices.DeleteFunc(contentWords(what), func(w string) bool { return drawable.MatchString(w) || colour.MatchString(w) })
	made := "Here is " + what + "."
	switch {
	case !t.hasWord("cat", "cats"):
		made = "The demo's painter knows cats alone: this is a pattern instead of “" + what + "”."
	case len(words) > 0:
		made = "Here is a cat. The rest of “" + what + "” the demo's painter cannot draw."
	}
	return t.do("images", "generate_image", map[string]any{"prompt": what}, "Made and sent: ", "draw it", made+" \"Make it blue\" changes it.")
}

// newestPicture returns the picture that a conversation mentioned last: sent, replied to, or made.
func newestPicture(messages []Message) string {
	for _, m := range slices.Backward(messages) {
		if all := pictureName.FindAllString(m.Content, -1); len(all) > 0 && m.Role != "system" {
			return all[len(all)-1]
		}
	}
	return ""
}

// changePicture changes the newest picture of the conversation.
func (t *turn) changePicture(m []string) string {
	if !colour.MatchString(t.said) {
		return "The demo's painter changes only the colour, as in \"make it blue\". " + cannot + setKey
	}
	return t.do("images", "edit_image", map[string]any{"path": t.picture, "prompt": m[1]}, "Made and sent: ", "change it", "Here is "+path.Base(t.picture)+", changed.")
}
