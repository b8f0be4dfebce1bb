package mcp_test

import (
	"context"
	"slices"
	"testing"

	"oneclaw/toolgroups"
	"oneclaw/toolgroups/mcp"
)

// What a server says about how far a call is reaches whoever watches that call, without secrets.
func TestHowFarACallIs(t *testing.T) {
	s := child(t, "fake")
	s.Env["X"] = "secret-value-of-x"
	c := discovered(t, mcp.Config{}, s)
	if got := call(t, c, "x_slowly", nil); got != "nobody asked" {
		t.Errorf("without anybody watching: %q", got)
	}
	steps := make(chan string, 10)
	ctx, cancel := context.WithCancel(toolgroups.WithReporter(t.Context(), func(step string) { steps <- step }))
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = run(t, ctx, c, "x_slowly", nil, "")
	}()
	var got []string
	for range 3 {
		got = append(got, <-steps)
	}
	cancel()
	<-ended
	if want := []string{"1 of 3", "reading •••• now", "75 %"}; !slices.Equal(got, want) || len(steps) > 0 {
		t.Errorf("told %q, want %q", got, want)
	}
}
