package wording

import (
	"fmt"
	"path"
	"strings"
	"unicode"
)

// maxFileName bounds a file name in bytes. It leaves room for a number; most systems allow 255.
const maxFileName = 120

// SafeFileName makes a safe file name from a sender's name. It numbers a file without a usable name.
// Brackets become round ones: the model is shown names within brackets, which no name may close.
func SafeFileName(name string, index int) string {
	name = strings.NewReplacer("[", "(", "]", ")").Replace(name)
	name = path.Base(strings.ReplaceAll(name, `\`, "/"))
	name = strings.Map(func(r rune) rune {
		if r == '/' || r == unicode.ReplacementChar || !unicode.IsPrint(r) || strings.ContainsRune(`<>:"|?*`, r) {
			return '_'
		}
		return r
	}, name)
	name = strings.TrimLeft(name, ". ")
	ext := path.Ext(name)
	for len(name) > maxFileName {
		stem := []rune(strings.TrimSuffix(name, ext))
		if len(stem) < 2 {
			name, _ = SplitAt(name, maxFileName/4)
			break
		}
		name = string(stem[:len(stem)-1]) + ext
	}
	if name == "" || name == "/" {
		return fmt.Sprintf("file-%d", index+1)
	}
	return name
}
