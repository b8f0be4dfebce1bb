package toolgroups_test

import (
	"encoding/json"
	"strings"
	"testing"

	"oneclaw/toolgroups"
)

func TestCallsThatAreAlike(t *testing.T) {
	page, sheet := toolgroups.Likeness{Argument: "url", SameFolder: true}, toolgroups.Likeness{Argument: "id"}
	for _, c := range []struct {
		like      toolgroups.Likeness
		arguments string
		want      string // empty: like no other
	}{
		{page, `{"url":"https://a.example/guide/one","max_length":3}`, "https://a.example/guide/"},
		{page, `{"url":"HTTPS://A.Example/guide/"}`, "https://a.example/guide/"},
		{page, `{"url":"https://a.example/guide/x/one.html"}`, "https://a.example/guide/x/"},
		{page, `{"url":"https://a.example"}`, "https://a.example/"},
		{page, `{"url":"http://a.example:8080/one"}`, "http://a.example:8080/"},
		{page, `{"url":"https://a.example/guide/one?q=secret"}`, ""},
		{page, `{"url":"https://a.example/guide/one?"}`, ""},
		{page, `{"url":"https://a.example/guide/one#secret"}`, ""},
		{page, `{"url":"https://ann:pw@a.example/guide/one"}`, ""},
		{page, `{"url":"https://a.example@evil.example/guide/one"}`, ""},
		{page, `{"url":"https://a.example\\@evil.example/guide/one"}`, ""},
		{page, `{"url":"https://a.example/guide/../one"}`, ""},
		{page, `{"url":"https://a.example/guide/%2e%2e/one"}`, ""},
		{page, `{"url":"https://a.example/guide/..%2fone"}`, ""},
		{page, `{"url":"https://a.example/guide/..;/one"}`, ""},
		{page, `{"url":"https://а.example/guide/one"}`, ""},
		{page, `{"url":"https://[::1]/guide/one"}`, ""},
		{page, `{"url":"ftp://a.example/guide/one"}`, ""},
		{page, `{"url":"//a.example/guide/one"}`, ""},
		{page, `{"url":" https://a.example/guide/one"}`, ""},
		{page, `{"url":"https://a.example/guide/one","URL":"https://evil.example/"}`, ""},
		{page, `{"url":["https://a.example/guide/one"]}`, ""},
		{page, `{}`, ""},
		{page, `{"url"`, ""},
		{sheet, `{"id":"s1","range":"A1"}`, "s1"},
		{sheet, `{"id":""}`, ""},
		{sheet, `{"id":7}`, ""},
		{sheet, `{"Id":"s1"}`, ""},
	} {
		got, ok := c.like.Common(json.RawMessage(c.arguments))
		if got != c.want || ok != (c.want != "") {
			t.Errorf("%s shares %q, %v, want %q", c.arguments, got, ok, c.want)
		}
	}
}

func TestManifestsSayWhatIsAlike(t *testing.T) {
	const tool = `{"name":"t","description":"D.","parameters":{"type":"object","properties":{"url":{"type":"string"}}},"effect":"EFFECT","like":"LIKE"}`
	for _, c := range []struct{ effect, like, source, want string }{
		{"read_only", "url", toolgroups.SourceBuiltin, ""},
		{"read_only", "folder:url", toolgroups.SourceBuiltin, ""},
		{"read_only", "folder:path", toolgroups.SourceBuiltin, "must name a parameter"},
		{"changes", "url", toolgroups.SourceBuiltin, "tools that are read_only"},
		{"read_only", "url", "user", "tools of the program"},
	} {
		data := strings.NewReplacer("EFFECT", c.effect, "LIKE", c.like).Replace(tool)
		m, errs := toolgroups.ParseManifest("t", []byte(data), nil, c.source)
		if c.want != "" {
			if len(errs) != 1 || !strings.Contains(errs[0].Error(), c.want) {
				t.Errorf("%+v: errors %v", c, errs)
			}
			continue
		}
		if len(errs) > 0 || *m.Tool.Like != (toolgroups.Likeness{Argument: "url", SameFolder: c.like != "url"}) {
			t.Errorf("%+v: %+v, %v", c, m.Tool, errs)
		}
	}
}
