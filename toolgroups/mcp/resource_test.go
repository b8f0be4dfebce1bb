package mcp_test

import (
	"strings"
	"testing"

	"oneclaw/toolgroups"
	"oneclaw/toolgroups/mcp"
)

// A result that names a resource is no dead end.
func TestTheResourcesThatResultsNameCanBeRead(t *testing.T) {
	t.Parallel()
	const first = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"resources":{}},"serverInfo":{"name":"x","version":"1"}}`
	s := script{
		"initialize": {result(first)},
		"tools/call": {result(`{"content":[{"type":"resource_link","uri":"shop://orders/7","name":"order"}]}`)},
		"resources/read": {result(`{"contents":[{"uri":"shop://orders/7","mimeType":"application/json","text":"{\"id\":725653563933458433}"},` +
			`{"uri":"shop://pictures/7","mimeType":"image/png","blob":"` + "iVBORw0KGgo=" + `"},7]}`)},
	}
	for kind, server := range s.everywhere(t) {
		c := discovered(t, mcp.Config{}, server)
		tool := find(t, c, "x_read_resource")
		if tool.Effect != toolgroups.ReadOnly {
			t.Errorf("%s: effect %v", kind, tool.Effect)
		}
		if got, want := call(t, c, "x_t", nil), "[resource order: shop://orders/7]"; got != want {
			t.Errorf("%s: got %q, want %q", kind, got, want)
		}
		got := call(t, c, "x_read_resource", map[string]any{"uri": "shop://orders/7"})
		said(t, got, "[resource shop://orders/7]\n"+`{"id":725653563933458433}`, "[resource shop://pictures/7 saved as mcp/x/read_resource-", ".png, 8 bytes]")
		if _, fault := run(t, t.Context(), c, "x_read_resource", nil, ""); fault == nil || !strings.Contains(fault.Message, "required parameter 'uri' is missing") {
			t.Errorf("%s: without an address: %v", kind, fault)
		}
		must(t, c.Close())
	}
	s["resources/read"] = []string{`{"jsonrpc":"2.0","id":$id,"error":{"code":-32002,"message":"Resource not found"}}`}
	s["tools/list"] = []string{result(`{"tools":[{"name":"read_resource","description":"Its own"}]}`)}
	for _, server := range s.everywhere(t) {
		c := discovered(t, mcp.Config{}, server)
		if got := strings.Join(naming(c.Groups()[0]), " "); got != "x_read_resource" || find(t, c, "x_read_resource").Description != "Its own" {
			t.Errorf("tools %s", got)
		}
		must(t, c.Close())
	}
	delete(s, "tools/list")
	s["initialize"] = []string{result(strings.Replace(first, `"tools":{},`, "", 1))}
	for _, server := range s.everywhere(t) {
		c := discovered(t, mcp.Config{}, server)
		fails(t, c, "x_read_resource", toolgroups.CodeInvalid)
		if _, fault := run(t, t.Context(), c, "x_read_resource", map[string]any{"uri": "a:b"}, ""); fault == nil || !strings.Contains(fault.Message, "refused the call of 'read_resource': Resource not found") {
			t.Errorf("%v", fault)
		}
		must(t, c.Close())
	}
}
