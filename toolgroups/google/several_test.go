package google

import (
	"context"
	"errors"
	"strings"
	"testing"

	"oneclaw/storage"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/google/service"
)

// racing is a store in which another process acts before this one writes an account.
type racing struct {
	storage.KV
	before func()
}

func (r *racing) Put(ctx context.Context, key string, value []byte, rev storage.Revision) (storage.Revision, error) {
	if act := r.before; act != nil && strings.HasPrefix(key, accountPrefix) {
		r.before = nil
		act()
	}
	return r.KV.Put(ctx, key, value, rev)
}

// twoProcesses are rigs whose programs share a store and the emulator of the first.
func twoProcesses(t *testing.T) (here, other *harness, kv *racing) {
	t.Helper()
	kv = &racing{KV: openKV(t)}
	here = newRig(t, Config{KV: kv})
	cfg := here.g.cfg
	cfg.KV = kv.KV
	g, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	second := *here
	second.g, second.tools = g, map[string]toolgroups.Tool{}
	groups, err := g.Groups()
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range groups {
		for _, tool := range group.Tools {
			second.tools[tool.Name] = tool
		}
	}
	return here, &second, kv
}

// What Google says of a token that another process has replaced signs nobody out.
func TestARefreshThatIsRefusedDoesNotUndoASignInElsewhere(t *testing.T) {
	here, other, kv := twoProcesses(t)
	here.connect(t, ada, adaMail, "tasks")
	here.em.RevokeConsent(adaMail)
	kv.before = func() { other.connect(t, ada, adaMail, "tasks", "forms") }
	if fault := here.list(t, ada); fault != nil {
		t.Errorf("the user has connected anew, and is told: %+v", fault)
	}
	if a, _, err := here.g.load(t.Context(), ada); err != nil || a.ConsentEnded {
		t.Errorf("the account is lost: %v", err)
	}
}

// Two processes that refresh at the same time end with one token.
func TestTwoProcessesRefreshAtTheSameTime(t *testing.T) {
	here, other, kv := twoProcesses(t)
	here.connect(t, ada, adaMail, "tasks")
	here.em.ExpireTokens()
	kv.before = func() {
		if fault := other.list(t, ada); fault != nil {
			t.Errorf("the other process: %+v", fault)
		}
	}
	if fault := here.list(t, ada); fault != nil {
		t.Errorf("%+v", fault)
	}
	if fault := other.list(t, ada); fault != nil {
		t.Errorf("the other process, again: %+v", fault)
	}
}

// An account that is disconnected while its address is looked up does not come back.
func TestTheAddressOfAnAccountBringsItNotBack(t *testing.T) {
	here, other, kv := twoProcesses(t)
	kv.before = func() { // the account itself is written first, its address second
		kv.before = func() {
			if _, err := other.g.Disconnect(t.Context(), ada); err != nil {
				t.Error(err)
			}
		}
	}
	here.connect(t, ada, adaMail, "tasks")
	if _, _, err := here.g.load(t.Context(), ada); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("the account is there again: %v", err)
	}
	if fault := here.list(t, ada); codeOf(fault) != service.CodeNotConnected {
		t.Errorf("%+v", fault)
	}
}
