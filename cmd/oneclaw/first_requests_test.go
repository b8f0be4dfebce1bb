package main

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/tiktoken-go/tokenizer"

	"oneclaw/toolgroups"
	"oneclaw/toolgroups/search"
)

// What stands in docs/measured.md about first requests, between two marks.
const (
	firstDocs  = "../../docs/measured.md"
	firstBegin = "<!-- first requests -->\n"
	firstEnd   = "<!-- end of first requests -->"
)

// TestFirstRequestsInTokens compares the table of docs/measured.md, and the figures of the README, with what tools
// and list of groups cost in the first request of a conversation. ONECLAW_UPDATE=1 writes the table.
func TestFirstRequestsInTokens(t *testing.T) {
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		t.Fatal(err)
	}
	builtin := registryOf(t)
	servers, err := serverGroups()
	if err != nil {
		t.Fatal(err)
	}
	var core []toolgroups.Tool
	for _, tool := range builtin.Core() {
		if tool.Name != toolgroups.LoadToolGroup {
			core = append(core, tool)
		}
	}
	more, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{Core: core, Groups: append(builtin.Groups(), servers...)})
	if err != nil {
		t.Fatal(err)
	}
	modes := []search.Routing{search.RoutingGroups, search.RoutingSearch, search.RoutingAll, search.RoutingAuto}
	table, figures := "| tools | `groups` | `search` | `all` | `auto` |\n|---|---|---|---|---|\n", map[string]string{}
	for _, row := range []struct {
		name     string
		registry *toolgroups.Registry
	}{{"165", builtin}, {"and 500 of ten MCP servers", more}} {
		table += "| " + row.name
		for _, mode := range modes {
			router, err := search.NewRouter(search.RouterConfig{Routing: mode})
			if err != nil {
				t.Fatal(err)
			}
			round := toolgroups.NewSet(func() *toolgroups.Registry { return row.registry }, nil).Route(router, toolgroups.RouteInput{
				Scope: toolgroups.Scope{Role: toolgroups.RoleOwner}, ContextTokens: 128_000,
			})
			tools, toolsErr := codec.Count(string(toolgroups.EncodeTools(round.Tools())))
			listing, listingErr := codec.Count(round.Listing())
			if toolsErr != nil || listingErr != nil {
				t.Fatal(toolsErr, listingErr)
			}
			figures[row.name+" "+string(mode)] = thousands(tools + listing)
			table += " | " + thousands(tools+listing)
		}
		table += " |\n"
	}
	page, err := os.ReadFile(firstDocs)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(page), firstBegin)
	stands, tail, ended := strings.Cut(rest, firstEnd)
	switch {
	case !ok || !ended:
		t.Fatalf("%s has no marks for the table", firstDocs)
	case sameWithin(stands, table):
	case os.Getenv("ONECLAW_UPDATE") == "":
		t.Errorf("the table of %s is out of date; write it with ONECLAW_UPDATE=1 go test ./cmd/oneclaw -run FirstRequestsInTokens. Now:\n%s", firstDocs, table)
	default:
		if err := os.WriteFile(firstDocs, []byte(head+firstBegin+"\n"+table+"\n"+firstEnd+tail), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	said := regexp.MustCompile(`carries [0-9,]+ tokens of tools and group list; all tools would cost [0-9,]+`).FindString(string(readme))
	if want := fmt.Sprintf("carries %s tokens of tools and group list; all tools would cost %s", figures["165 groups"], figures["165 all"]); !sameWithin(said, want) {
		t.Errorf("the README says %q, want %q", said, want)
	}
}

// drift is how far a figure of the documents may be from what is measured, as a share: a word changed in a
// description is no reason to measure anew.
const drift = 0.02

// sameWithin reports whether two texts are the same but for figures that differ by no more than drift.
func sameWithin(a, b string) bool {
	number := regexp.MustCompile(`[0-9]{1,3}(,[0-9]{3})+`)
	in, out := number.FindAllString(a, -1), number.FindAllString(b, -1)
	if len(in) != len(out) || strings.TrimSpace(number.ReplaceAllString(a, "N")) != strings.TrimSpace(number.ReplaceAllString(b, "N")) {
		return false
	}
	for i := range in {
		x, y := figure(in[i]), figure(out[i])
		if math.Abs(x-y) > drift*max(x, y) {
			return false
		}
	}
	return true
}

func figure(text string) float64 {
	n, _ := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64) // digits
	return n
}

func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}
