package core

import (
	"crypto/rand"
	"fmt"
	"strings"
	"unicode"

	"oneclaw/internal/runes"
	"oneclaw/internal/workspace"
	"oneclaw/toolgroups"
)

const (
	// maxEcho is how much of an argument an error repeats.
	maxEcho = 200
	// inline is how much text a result holds; the rest of what dispatch lets
	// through is for notices.
	inline = toolgroups.MaxText - 1_000
)

// oneLine makes a text safe for one line of a result.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	return runes.Clip(strings.Join(strings.Fields(s), " "), maxEcho)
}

// keep writes a text that is too long for a result into the workspace and returns
// the path of the file.
func (t *tools) keep(call toolgroups.Call, kind, text string) (string, error) {
	name := fmt.Sprintf("tool-output/%s-%s-%s.txt", kind, t.now().UTC().Format("20060102-150405"), rand.Text()[:6])
	err := inWorkspace(call, func(root *workspace.Root) error {
		return root.WriteFile(name, []byte(text), false)
	})
	if err != nil {
		return "", fmt.Errorf("keep the whole output: %w", err)
	}
	return name, nil
}
