package jstools_test

import (
	"context"
	"net/http"
	"sync"
	"testing"

	"oneclaw/internal/sandbox"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/jstools"
)

// One owner's scripts, however many, neither hold up nor fail those of another.
func TestLoopsOfOneOwnerFailNobodyElse(t *testing.T) {
	h := newHouse(t)
	running := make(chan struct{}, 8)
	url := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		running <- struct{}{}
		<-r.Context().Done()
	})
	attacker := toolgroups.Scope{User: "telegram:2", Owner: "telegram:2", Role: toolgroups.RoleUser, Workspace: t.TempDir()}
	eval, _ := h.registry(t).Tool("js_eval")
	ctx, stop := context.WithCancel(t.Context())
	var loops sync.WaitGroup
	for range 6 {
		loops.Go(func() {
			call := toolgroups.Call{Name: "js_eval", Scope: attacker, Arguments: []byte(`{"code": "await fetch('` + url + `')", "timeout_seconds": 120}`)}
			_, _ = toolgroups.Run(ctx, nil, eval, call)
		})
	}
	defer loops.Wait()
	defer stop()
	for range sandbox.DefaultOwnerRuns {
		<-running
	}
	for range 3 {
		if got, fault := h.call(t, "js_eval", args{"code": "1 + 1", "timeout_seconds": 60}); fault != nil || got != "2" {
			t.Fatalf("another's script: %q, %+v", got, fault)
		}
	}
	if n := len(running); n > 0 {
		t.Errorf("%d scripts of one owner run beside each other", n+sandbox.DefaultOwnerRuns)
	}
}

// A script that never gets to run says so, and not that it is too slow.
func TestAScriptThatDoesNotBeginSaysSo(t *testing.T) {
	engine, err := sandbox.NewEngine(sandbox.EngineConfig{Runs: 1, OwnerRuns: 1})
	if err != nil {
		t.Fatal(err)
	}
	h := newHouse(t, func(cfg *jstools.Config) { cfg.Engine, cfg.MaxWait = engine, 1 })
	begun := make(chan struct{})
	url := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done()
	})
	eval, _ := h.registry(t).Tool("js_eval")
	ctx, stop := context.WithCancel(t.Context())
	var first sync.WaitGroup
	first.Go(func() {
		call := toolgroups.Call{
			Name: "js_eval", Scope: toolgroups.Scope{Owner: "telegram:1", Workspace: h.workspace, Role: toolgroups.RoleUser},
			Arguments: []byte(`{"code": "await fetch('` + url + `')"}`),
		}
		_, _ = toolgroups.Run(ctx, nil, eval, call)
	})
	defer first.Wait()
	defer stop()
	<-begun
	_, fault := h.call(t, "js_eval", args{"code": "1 + 1"})
	wantFault(t, fault, "timeout", "did not begin")
}
