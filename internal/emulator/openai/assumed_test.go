package openai_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// What is assumed of a service is listed in SERVICES.md, and nothing else is.
func TestAssumedRulesAreListed(t *testing.T) {
	source, err := os.ReadFile("personalities.go")
	if err != nil {
		t.Fatal(err)
	}
	document, err := os.ReadFile("../SERVICES.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, ok := strings.Cut(string(document), "### Rules that are assumed")
	if !ok {
		t.Fatal("SERVICES.md has no list")
	}
	name := regexp.MustCompile(`Name: "([^"]+)"`)
	assumed, service := map[string]bool{}, ""
	for line := range strings.Lines(string(source)) {
		if m := name.FindStringSubmatch(line); m != nil {
			service = m[1]
			assumed[service] = false
		}
		if strings.Contains(line, "assumed") && service != "" {
			assumed[service] = true
		}
	}
	for service, is := range assumed {
		if listed := strings.Contains(list, "\n| "+service+" | "); listed != is {
			t.Errorf("%s: assumed %v, listed %v", service, is, listed)
		}
	}
	if len(assumed) < 13 {
		t.Errorf("%d services", len(assumed))
	}
}
