package toolgroups_test

import (
	"encoding/json"
	"testing"

	"oneclaw/toolgroups"
)

func BenchmarkListing(b *testing.B) {
	base := groups()
	for b.Loop() {
		reg, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{Groups: base})
		if err != nil || reg.Listing() == "" {
			b.Fatal(err)
		}
	}
}

// A load makes no network call and does bounded work.
func BenchmarkLoadTools(b *testing.B) {
	reg := house(b)
	args := json.RawMessage(`{"group_name":"google_gmail"}`)
	for b.Loop() {
		tool, fault := toolgroups.NewSet(fixed(reg), nil).Round().Lookup(toolgroups.LoadToolGroup, admin())
		if fault != nil {
			b.Fatal(fault)
		}
		if _, fault = toolgroups.Run(b.Context(), nil, tool, toolgroups.Call{Arguments: args}); fault != nil {
			b.Fatal(fault)
		}
	}
}

func BenchmarkRoundAllGroups(b *testing.B) {
	reg := house(b)
	set := toolgroups.NewSet(fixed(reg), reg.GroupNames())
	for b.Loop() {
		if len(set.Round().Tools()) != 157 {
			b.Fatal("not all tools")
		}
	}
}

func BenchmarkEncodeAllGroups(b *testing.B) {
	reg := house(b)
	tools := toolgroups.NewSet(fixed(reg), reg.GroupNames()).Round().Tools()
	for b.Loop() {
		toolgroups.EncodeTools(tools)
	}
}

func BenchmarkValidateArguments(b *testing.B) {
	one := fake("t")
	one.Parameters = json.RawMessage(wide)
	r, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{Core: []toolgroups.Tool{one}})
	if err != nil {
		b.Fatal(err)
	}
	tool, _ := r.Tool("t")
	b.ReportAllocs()
	for b.Loop() {
		if _, fault := toolgroups.ValidateArguments(tool, json.RawMessage(`{"s":"x","i":"5","rows":[["a",1]]}`)); fault != nil {
			b.Fatal(fault)
		}
	}
}

// BenchmarkRegistry makes the registry of all tools: once at the start, of manifests, and again
// whenever what there is changes.
func BenchmarkRegistry(b *testing.B) {
	first := house(b)
	b.Run("manifests", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			house(b)
		}
	})
	b.Run("again", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{Groups: first.Groups()}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
