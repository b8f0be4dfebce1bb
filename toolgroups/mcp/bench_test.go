package mcp_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"oneclaw/toolgroups"
	"oneclaw/toolgroups/mcp"
)

// many are ten servers of fifty tools each, whose lists are known.
func many(b *testing.B) mcp.Config {
	b.Helper()
	var tools []string
	for i := range 50 {
		tools = append(tools, fmt.Sprintf(`{"name":"tool_%02d","description":"Does the thing number %d with the place and the time that are given, and says how it went.","inputSchema":{"type":"object","properties":{"place":{"type":"string","description":"Where to do it"},"time":{"type":"string","description":"When to do it, as RFC 3339"},"count":{"type":"integer"}},"required":["place"]}}`, i, i))
	}
	servers := map[string]mcp.Server{}
	for i := range 10 {
		servers[fmt.Sprintf("server%d", i)] = raw(b, "["+strings.Join(tools, ",")+"]")
	}
	cfg := mcp.Config{Servers: servers, Accounts: keeping(b)}
	client(b, cfg).Discover(b.Context())
	return cfg
}

// BenchmarkStart is what ten servers with fifty tools each cost at the start and
// while nobody uses them.
func BenchmarkStart(b *testing.B) {
	cfg := many(b)
	heap := func() float64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	before := heap()
	var keep *mcp.Client
	for b.Loop() {
		c, err := mcp.New(cfg)
		if err != nil {
			b.Fatal(err)
		}
		keep = c
	}
	b.ReportMetric((heap()-before)/1024, "KiB-held")
	n := 0
	for _, g := range keep.Groups() {
		n += len(g.Tools)
	}
	if n != 500 {
		b.Fatalf("%d tools", n)
	}
}

// BenchmarkCall is a call of a tool that answers at once.
func BenchmarkCall(b *testing.B) {
	_, web := served(b, newFake(), nil, nil)
	for name, s := range map[string]mcp.Server{"stdio": child(b, "fake"), "http": web} {
		b.Run(name, func(b *testing.B) {
			c := discovered(b, mcp.Config{}, s)
			tool := find(b, c, "x_echo")
			args := toolgroups.Call{Name: tool.Name, Arguments: []byte(`{"text":"hello"}`), Scope: toolgroups.Scope{Role: toolgroups.RoleUser}}
			for b.Loop() {
				if _, fault := toolgroups.Run(b.Context(), nil, tool, args); fault != nil {
					b.Fatal(fault)
				}
			}
		})
	}
}

// BenchmarkConnect is what the first call costs more than the others.
func BenchmarkConnect(b *testing.B) {
	c := discovered(b, mcp.Config{IdleTimeout: 1}, child(b, "fake"))
	tool := find(b, c, "x_echo")
	for b.Loop() {
		if _, fault := toolgroups.Run(b.Context(), nil, tool, toolgroups.Call{Scope: toolgroups.Scope{Role: toolgroups.RoleUser}}); fault != nil {
			b.Fatal(fault)
		}
	}
}
