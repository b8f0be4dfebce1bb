package lazyregexp_test

import (
	"testing"

	"oneclaw/internal/lazyregexp"
)

func TestAWrongExpressionIsFoundByEachTest(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("a wrong expression is taken")
		}
	}()
	if !lazyregexp.MustCompile(`^a+$`).MatchString("aa") {
		t.Error("a right one does not match")
	}
	lazyregexp.MustCompile(`(`)
}
