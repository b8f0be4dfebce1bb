package database_test

import (
	"strings"
	"testing"

	"filippo.io/age"

	"oneclaw/internal/database"
)

// Keys of two kinds are valid one by one, and age seals for all of one kind only.
func TestKeysThatCannotBeUsedTogetherAreRefused(t *testing.T) {
	plain, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	hybrid, err := age.GenerateHybridIdentity()
	if err != nil {
		t.Fatal(err)
	}
	one, other := plain.Recipient().String(), hybrid.Recipient().String()
	for name, tc := range map[string]struct {
		keys []string
		ok   bool
	}{
		"none": {nil, true}, "one kind": {[]string{one, one}, true}, "the other kind": {[]string{other}, true}, "both": {[]string{one, other}, false},
	} {
		err := database.CheckRecipients(tc.keys)
		if (err == nil) != tc.ok || err != nil && !strings.Contains(err.Error(), "cannot be used together") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
