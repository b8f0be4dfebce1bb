package wording_test

import (
	"testing"

	"oneclaw/internal/wording"
)

func TestSplit(t *testing.T) {
	for _, tt := range []struct {
		text       string
		n          int
		head, tail string
	}{
		{"", 0, "", ""},
		{"ab", -1, "", "ab"},
		{"añb", 0, "", "añb"},
		{"añb", 2, "añ", "b"},
		{"añb", 3, "añb", ""},
		{"a\xffb", 2, "a\xff", "b"},
	} {
		if head, tail := wording.SplitAt(tt.text, tt.n); head != tt.head || tail != tt.tail {
			t.Errorf("%q behind %d: %q, %q", tt.text, tt.n, head, tail)
		}
	}
}

func TestClip(t *testing.T) {
	for _, tt := range []struct {
		text string
		n    int
		want string
	}{
		{"", 3, ""},
		{"añb", 3, "añb"},
		{"añbc", 3, "añ…"},
		{"a bcd", 3, "a…"},
		{"abc", 1, "…"},
	} {
		if got := wording.Clip(tt.text, tt.n); got != tt.want {
			t.Errorf("%q in %d: %q, want %q", tt.text, tt.n, got, tt.want)
		}
	}
}
