package pdf

import (
	"slices"
	"strings"
	"testing"
)

func TestParsePages(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"", "1-10"},
		{" ", "1-10"},
		{"3", "3"},
		{"1-5", "1-5"},
		{"1,3,5-7", "1,3,5-7"},
		{"5-7,1,3", "1,3,5-7"},
		{"1,2,3", "1-3"},
		{"2-4,3-6,3", "2-6"},
		{" 1 , 9 - 10 ", "1,9-10"},
		{"7-7", "7"},
		{"0001", "1"},
		{"0", ""},
		{"11", ""},
		{"5-11", ""},
		{"7-5", ""},
		{"-3", ""},
		{"3-", ""},
		{"1,,2", ""},
		{",", ""},
		{"+1", ""},
		{"1.5", ""},
		{"all", ""},
		{"1-2-3", ""},
		{"99999999999999999999", ""},
		{"٣", ""},
		{"1;2", ""},
	} {
		got, err := parsePages(tc.text, 10)
		if got.String() != tc.want || (err != nil) != (tc.want == "") {
			t.Errorf("parsePages(%q) = %q, %v; want %q", tc.text, got, err, tc.want)
		}
	}
}

// FuzzPageRange holds the parser against the plainest reading of a selection.
func FuzzPageRange(f *testing.F) {
	for _, s := range []string{"3", "1-5", "1,3,5-7", "5-1", "", ",", "1-", "9999999999", "1,1,1", " 2 "} {
		f.Add(s, 10)
	}
	f.Fuzz(func(t *testing.T, text string, count int) {
		count = 1 + (count&0x7fffffff)%200
		got, err := parsePages(text, count)
		if err != nil {
			return
		}
		pages := slices.Clone(got)
		if len(pages) == 0 || !slices.IsSorted(pages) ||
			len(slices.Compact(slices.Clone(pages))) != len(pages) || pages[0] < 1 || pages[len(pages)-1] > count {
			t.Fatalf("%q of %d: %v", text, count, pages)
		}
		again, err := parsePages(got.String(), count)
		if err != nil || !slices.Equal(again, got) {
			t.Fatalf("%q became %q, which reads as %v, %v", text, got, again, err)
		}
		if n := strings.Count(text, ","); strings.Count(got.String(), ",") > n {
			t.Fatalf("%q became %q, which has more parts", text, got)
		}
	})
}
