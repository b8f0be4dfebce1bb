package toolgroups_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"oneclaw/toolgroups"
)

func newSet(t testing.TB, groups ...string) *toolgroups.Set {
	t.Helper()
	return toolgroups.NewSet(fixed(house(t)), groups)
}

func TestFirstRequestIsCoreOnly(t *testing.T) {
	reg := house(t)
	round := toolgroups.NewSet(fixed(reg), nil).Round()
	if diff := cmp.Diff(names(reg.Core()), names(round.Tools())); diff != "" || len(round.Tools()) != 13 {
		t.Error(diff)
	}
	if round.Registry() != reg {
		t.Error("the round is of another registry")
	}
}

func TestNextRoundRunsThem(t *testing.T) {
	set := newSet(t)
	load(t, set, "pdf")
	round := set.Round()
	got := names(round.Tools())
	if diff := cmp.Diff([]string{"pdf_00", "pdf_01", "pdf_02"}, got[13:]); diff != "" {
		t.Error(diff)
	}
	for _, name := range append(got[13:], "exec", "http_request") {
		if text, fault := call(t, round, name, `{}`, admin()); fault != nil || text != "ran "+name {
			t.Errorf("%s: %q, %v", name, text, fault)
		}
	}
}

// Two groups loaded one after the other are both there.
func TestTwoGroupsTogether(t *testing.T) {
	set := newSet(t)
	load(t, set, "google_gmail")
	load(t, set, "google_drive")
	if got := len(set.Round().Tools()); got != 13+25+15 {
		t.Errorf("%d tools", got)
	}
}

// With the group config there are 17 tools more.
func TestConfigMakesSeventeenMore(t *testing.T) {
	set := newSet(t)
	load(t, set, "config")
	if got := len(set.Round().Tools()); got != len(toolgroups.CoreOrder())+17 {
		t.Errorf("%d tools", got)
	}
}

func TestBlockedCallNamesTheGroup(t *testing.T) {
	_, fault := newSet(t).Round().Lookup("pdf_00", admin())
	wantFault(t, fault, "tool_not_available",
		`Tool 'pdf_00' is not available for this agent. Load its group first: load_tool_group(group_name="pdf").`)
}

func TestLookupOrder(t *testing.T) {
	owner := fake("owned")
	owner.Role = toolgroups.RoleOwner
	build := func(off ...string) *toolgroups.Registry {
		return registry(t, toolgroups.RegistryConfig{
			Core: []toolgroups.Tool{owner, fake("exec")},
			Groups: []toolgroups.Group{
				{Name: "adm", Role: toolgroups.RoleAdmin, Tools: []toolgroups.Tool{fake("adm_a")}},
				{Name: "pdf", Tools: []toolgroups.Tool{fake("pdf_a")}},
			},
			DisabledTools: off,
		})
	}
	var now atomic.Pointer[toolgroups.Registry]
	now.Store(build())
	round := toolgroups.NewSet(now.Load, []string{"adm"}).Round()
	now.Store(build("exec", "owned", "pdf_a"))
	user := toolgroups.Scope{Role: toolgroups.RoleUser}
	for _, tc := range []struct{ name, code, part string }{
		{"nothing", "tool_not_found", "Tool 'nothing' not found"},
		{"pdf_a", "tool_not_available", "Tool 'pdf_a' is not available for this agent. It is switched off"},
		{"exec", "tool_globally_disabled", "switched off"},
		{"owned", "tool_globally_disabled", "switched off"},
		{"adm_a", "permission_denied", "Sorry, only administrators of this bot may load the tool group 'adm'."},
	} {
		_, fault := round.Lookup(tc.name, user)
		if fault == nil || fault.Code != tc.code || !strings.Contains(fault.Message, tc.part) {
			t.Errorf("%s: %+v, want %s %q", tc.name, fault, tc.code, tc.part)
		}
	}
	if _, fault := round.Lookup("adm_a", admin()); fault != nil {
		t.Errorf("an administrator: %v", fault)
	}
	now.Store(build())
	if _, fault := round.Lookup("owned", admin()); fault == nil || !strings.Contains(fault.Message, "only the owner") {
		t.Errorf("owned: %v", fault)
	}
}

// Groups of one conversation are not active in another, or after /clear.
func TestSetsKnowNothingOfEachOther(t *testing.T) {
	reg := house(t)
	a, b := toolgroups.NewSet(fixed(reg), nil), toolgroups.NewSet(fixed(reg), nil)
	load(t, a, "pdf")
	if len(b.Round().Tools()) != 13 {
		t.Error("a load reached another conversation")
	}
}

func TestAllGroupsTogether(t *testing.T) {
	set := newSet(t)
	for _, g := range house(t).GroupNames() {
		load(t, set, g)
	}
	got := names(set.Round().Tools())
	slices.Sort(got)
	if n := len(slices.Compact(got)); n != 157 {
		t.Errorf("%d different tools", n)
	}
}

func TestSwitchesActAtOnce(t *testing.T) {
	on := house(t)
	off := house(t, func(cfg *toolgroups.RegistryConfig) { cfg.DisabledTools = []string{"pdf_01"} })
	gone := house(t, func(cfg *toolgroups.RegistryConfig) { cfg.DisabledGroups = []string{"pdf"} })
	var now atomic.Pointer[toolgroups.Registry]
	now.Store(on)
	set := toolgroups.NewSet(now.Load, []string{"pdf"})
	round := set.Round()
	now.Store(off)
	if _, fault := round.Lookup("pdf_01", admin()); fault == nil || fault.Code != "tool_globally_disabled" {
		t.Errorf("got %v", fault)
	}
	if _, fault := round.Lookup("pdf_00", admin()); fault != nil {
		t.Errorf("another tool of the group: %v", fault)
	}
	for _, step := range []struct {
		reg  *toolgroups.Registry
		want []string
	}{
		{off, []string{"pdf_00", "pdf_02"}},
		{gone, []string{}},
		{on, []string{"pdf_00", "pdf_01", "pdf_02"}},
	} {
		now.Store(step.reg)
		if diff := cmp.Diff(step.want, names(set.Round().Tools())[13:]); diff != "" {
			t.Error(diff)
		}
	}
}

func TestParallelLoadsOfGroups(t *testing.T) {
	groups := []string{"google_docs", "pdf", "google_docs", "google_tasks", "pdf", "google_gmail"}
	set := newSet(t)
	round := set.Round()
	tools := make([]toolgroups.Tool, len(groups))
	for i := range groups {
		tool, fault := round.Lookup("load_tool_group", admin())
		if fault != nil {
			t.Fatal(fault)
		}
		tools[i] = tool
	}
	var wg sync.WaitGroup
	// The last call begins first, so that the order of ends differs from that of calls.
	for i, group := range slices.Backward(groups) {
		wg.Go(func() {
			_, fault := toolgroups.Run(t.Context(), nil, tools[i], toolgroups.Call{
				Name: "load_tool_group", Arguments: json.RawMessage(fmt.Sprintf(`{"group_name":%q}`, group)), Scope: admin(),
			})
			if fault != nil {
				t.Errorf("%s: %v", group, fault)
			}
			set.Round().Tools()
		})
	}
	wg.Wait()
	if diff := cmp.Diff([]string{"google_docs", "pdf", "google_tasks", "google_gmail"}, set.Loaded()); diff != "" {
		t.Error(diff)
	}
}

func TestLoadAndUseInOneMessage(t *testing.T) {
	set := newSet(t)
	round := set.Round()
	loader, fault := round.Lookup("load_tool_group", admin())
	if fault != nil {
		t.Fatal(fault)
	}
	if _, err := loader.Run(context.Background(), toolgroups.Call{Arguments: json.RawMessage(`{"group_name":"pdf"}`)}); err != nil {
		t.Fatal(err)
	}
	if _, fault = round.Lookup("pdf_00", admin()); fault == nil || fault.Code != "tool_not_available" {
		t.Errorf("in the same round: %v", fault)
	}
	if len(round.Tools()) != 13 {
		t.Error("the round has grown")
	}
	if text, fault := call(t, set.Round(), "pdf_00", `{}`, admin()); fault != nil || text != "ran pdf_00" {
		t.Errorf("in the next round: %q, %v", text, fault)
	}
}

// What can be run in a round is what its request offered.
func TestOfferedIsExecutable(t *testing.T) {
	round := newSet(t, "pdf", "config").Round()
	offered := names(round.Tools())
	reg := round.Registry()
	for _, g := range reg.Groups() {
		for _, tool := range append(g.Tools, reg.Core()...) {
			_, fault := round.Lookup(tool.Name, admin())
			if (fault == nil) != slices.Contains(offered, tool.Name) {
				t.Errorf("%s: %v", tool.Name, fault)
			}
		}
	}
}

// A load leaves the listing as it is, so caches keep it.
func TestListingDoesNotDependOnLoads(t *testing.T) {
	reg := house(t)
	before := reg.Listing()
	set := toolgroups.NewSet(fixed(reg), nil)
	load(t, set, "pdf")
	if set.Round().Registry().Listing() != before {
		t.Error("the listing changed")
	}
}

// With routing switched off, all tools are sent.
func TestAllGroupsFromTheStart(t *testing.T) {
	if got := len(newSet(t, house(t).GroupNames()...).Round().Tools()); got != 157 {
		t.Errorf("%d tools", got)
	}
}

func TestNamesRestoredFromLoads(t *testing.T) {
	set := newSet(t, "pdf", "gone", "pdf", "google_docs", "pdf")
	if diff := cmp.Diff([]string{"pdf", "gone", "google_docs"}, set.Loaded()); diff != "" {
		t.Error(diff)
	}
	if got := len(set.Round().Tools()); got != 13+3+8 {
		t.Errorf("%d tools", got)
	}
}

// Core first, then groups in the order of their first load.
func TestFirstLoadOrderAndBytePrefix(t *testing.T) {
	reg := house(t)
	rapid.Check(t, func(rt *rapid.T) {
		set := toolgroups.NewSet(fixed(reg), nil)
		var order []string
		before := toolgroups.EncodeTools(set.Round().Tools())
		for _, g := range rapid.SliceOfN(rapid.SampledFrom(append(reg.GroupNames(), "gone")), 0, 20).Draw(rt, "loads") {
			_, fault := call(t, set.Round(), "load_tool_group", fmt.Sprintf(`{"group_name":%q}`, g), admin())
			if (fault == nil) != (g != "gone") {
				rt.Fatalf("load %s: %v", g, fault)
			}
			if fault == nil && !slices.Contains(order, g) {
				order = append(order, g)
			}
			after := toolgroups.EncodeTools(set.Round().Tools())
			if !json.Valid(after) || !bytes.HasPrefix(after, before[:len(before)-1]) {
				rt.Fatalf("after %s the former array is no prefix", g)
			}
			before = after
		}
		if diff := cmp.Diff(order, set.Loaded()); len(order) > 0 && diff != "" {
			rt.Error(diff)
		}
		restored := toolgroups.NewSet(fixed(reg), set.Loaded())
		if !bytes.Equal(before, toolgroups.EncodeTools(restored.Round().Tools())) {
			rt.Error("a restored set encodes differently")
		}
	})
}
