package platformtest

import (
	"os"
	"testing"
)

// nightlyVariable makes slow tests run at full length, which would delay each change; .ci/nightly sets
// it.
const nightlyVariable = "TEST_ONECLAW_NIGHTLY"

// Nightly reports whether tests run at full length.
func Nightly() bool { return os.Getenv(nightlyVariable) != "" }

// OnlyNightly skips a test that is too slow to run for each change.
func OnlyNightly(t testing.TB) {
	t.Helper()
	if !Nightly() {
		t.Skip(nightlyVariable + " is not set")
	}
}
