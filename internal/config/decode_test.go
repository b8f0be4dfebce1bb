package config_test

import (
	"strings"
	"testing"

	"oneclaw/internal/config"
)

// TestErrorsInTheFileSayWhatToDo: the mistakes that people make in YAML, and what each error has to say.
func TestErrorsInTheFileSayWhatToDo(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"telegram:\n\ttoken: x\n":                        "line 2: found character that cannot start any token: indent with spaces",
		"telegram:\n  token: %x\n":                       "between quotes",
		"telegram:\n  token: 1:a: b\n":                   "line 2: mapping values are not allowed in this context: put a value with a colon between quotes",
		"telegram\n  token: x\n":                         "end the name of a section with a colon",
		"telegram:\n  token: x\n api_url: y\n":           "indent the lines of a section alike",
		"access:\n  allow: [a, b\n":                      "close the bracket",
		"access:\n  allow: *\n":                          "begins with * or & between quotes",
		"access:\n  allow:\n  -telegram:1\n":             "with a space after the dash",
		"telegram:\n  token: \"x\n":                      "close the quotes",
		"telegram:\n  token: x\ntelegram:\n  token: y\n": "line 3: mapping key \"telegram\" already defined at line 1: join the two sections",
		"telegram:\ntoken: x\n":                          "line 2: there is no setting token; did you mean telegram.token? Then indent it",
		"telegramm:\n  token: x\n":                       "did you mean telegram?",
		"just text\n":                                    "line 1: the file has no settings: write each as name: value",
		"- a\n- b\n":                                     "line 1: the file has no settings",
		"limits:\n  turns: many\n":                       "line 2: limits.turns: want a whole number, not \"many\"",
	} {
		cfg := config.Default()
		err := config.DecodeConfig([]byte(file), &cfg)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", file, err, want)
		}
	}
}
