package wording

import (
	"fmt"
	"path"
	"strings"
	"unicode"
)

// maxName bounds a file name in bytes, with room for a number (most systems allow 255).
const maxName = 120

// FileName makes a plain file name from a sender's name for the file.
func FileName(name string, index int) string {
	name = path.Base(strings.ReplaceAll(name, `\`, "/"))
	name = strings.Map(func(r rune) rune {
		if r == '/' || r == unicode.ReplacementChar || !unicode.IsPrint(r) || strings.ContainsRune(`<>:"|?*`, r) {
			return '_'
		}
		return r
	}, name)
	name = strings.TrimLeft(name, ". ")
	ext := path.Ext(name)
	for len(name) > maxName {
		stem := []rune(strings.TrimSuffix(name, ext))
		if len(stem) < 2 {
			name, _ = Split(name, maxName/4)
			break
		}
		name = string(stem[:len(stem)-1]) + ext
	}
	if name == "" || name == "/" {
		return fmt.Sprintf("file-%d", index+1)
	}
	return name
}
