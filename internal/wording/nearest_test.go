package wording_test

import (
	"testing"

	"oneclaw/internal/wording"
)

func TestTheNearestNameIsFound(t *testing.T) {
	known := []string{"clear", "claim", "help", "history", "undo"}
	for typed, want := range map[string]string{
		"claer": "clear", "hlep": "help", "HELP": "help", "hist": "history", "un": "undo", "xyzzy": "", "": "", "q": "",
	} {
		if got := wording.NearestName(typed, known); got != want {
			t.Errorf("%q: %q, want %q", typed, got, want)
		}
	}
}
