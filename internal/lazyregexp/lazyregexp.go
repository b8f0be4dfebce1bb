// Package lazyregexp has regular expressions that are compiled when they are first used. Compiling those
// of seldom used tools at the start would take time, and memory for as long as the process runs.
package lazyregexp

import (
	"os"
	"regexp"
	"strings"
	"sync"
)

// inTest reports whether this is a test, which compiles all at once, so that none is wrong.
func inTest() bool { return len(os.Args) > 0 && strings.HasSuffix(os.Args[0], ".test") }

// Regexp is a regular expression. Its methods are those of [regexp.Regexp].
type Regexp struct{ compiled func() *regexp.Regexp }

// MustCompile returns a regular expression. If the text is wrong, its first use panics.
func MustCompile(text string) *Regexp {
	r := &Regexp{sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })}
	if inTest() {
		r.compiled()
	}
	return r
}

// MatchString is that of [regexp.Regexp].
func (r *Regexp) MatchString(s string) bool { return r.compiled().MatchString(s) }

// FindStringSubmatch is that of [regexp.Regexp].
func (r *Regexp) FindStringSubmatch(s string) []string { return r.compiled().FindStringSubmatch(s) }

// ReplaceAllString is that of [regexp.Regexp].
func (r *Regexp) ReplaceAllString(s, by string) string { return r.compiled().ReplaceAllString(s, by) }
