package config

import (
	"reflect"
	"slices"
	"testing"

	"oneclaw/internal/redact"
)

// A block of settings need not say which of its values are secrets.
func TestSecretsOfBlocksAreFound(t *testing.T) {
	type part struct {
		Name string
		Key  redact.Secret
	}
	block := struct {
		Tables map[string]redact.Secret
		List   []part
		Inner  *part
	}{map[string]redact.Secret{"a": "one"}, []part{{"x", "two"}}, &part{"y", "three"}}
	if got, want := secretsIn(reflect.ValueOf(block)), []string{"one", "two", "three"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
