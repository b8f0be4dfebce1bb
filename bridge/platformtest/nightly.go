package platformtest

import (
	"os"
	"testing"
)

// nightlyVariable has the tests run at full length that take longer than a change should wait for;
// .ci/nightly sets it.
const nightlyVariable = "TEST_ONECLAW_NIGHTLY"

// Nightly reports whether tests run at full length.
func Nightly() bool { return os.Getenv(nightlyVariable) != "" }

// OnlyNightly skips a test that takes longer than a change should wait for.
func OnlyNightly(t testing.TB) {
	t.Helper()
	if !Nightly() {
		t.Skip(nightlyVariable + " is not set")
	}
}
