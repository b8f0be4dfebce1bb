package platformtest

import (
	"iter"
	"math/rand/v2"
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

// stride is how many steps of a trial there are for each that is taken for a change.
const stride = 7

// Steps returns the steps from the first to the last at which a trial at each step is made: all at full length,
// otherwise every seventh, beginning with one that is drawn and logged. Subtests are named after their step, so
// that a failure can be repeated at full length.
func Steps(t testing.TB, first, last int) iter.Seq[int] {
	t.Helper()
	every := 1
	if !Nightly() {
		every = stride
		first += rand.IntN(max(1, min(stride, last-first+1)))
		t.Logf("every %dth step from %d on is tried", every, first)
	}
	return func(yield func(int) bool) {
		for step := first; step <= last && yield(step); step += every {
		}
	}
}
