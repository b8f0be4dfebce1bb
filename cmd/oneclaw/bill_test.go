package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"oneclaw/internal/bill"
	"oneclaw/internal/cli"
	"oneclaw/internal/config"
	"oneclaw/internal/emulator/openai"
	"oneclaw/toolgroups/search"
)

func TestBillOfAChatSaysWhatItWants(t *testing.T) {
	t.Setenv("ONECLAW_DATA_DIR", t.TempDir())
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"which chat":  {[]string{"bill"}, "chat"},
		"no database": {[]string{"bill", "--chat", "telegram:1"}, "there is no database in"},
		"no chat":     {[]string{"bill", "--chat", "somebody"}, "somebody"},
		"both":        {[]string{"bill", "--chat", "telegram:1", "chat"}, "chat"},
		"two forms":   {[]string{"bill", "--chat", "telegram:1", "--json", "--markdown"}, "json"},
	} {
		var stdout, stderr bytes.Buffer
		if code := cli.Execute(rootCommand, config.DefaultRuntime(), tc.args, nil, &stdout, &stderr); code == 0 || !strings.Contains(stderr.String(), tc.want) {
			t.Errorf("%s: exit %d, %s", name, code, stderr.String())
		}
	}
}

// The conversation of a real chat is played as it was recorded, whatever it was routed by.
func TestBillOfAChat(t *testing.T) {
	w := newTown(t, openai.Offline{})
	ann := w.person("Ann")
	w.env["ONECLAW_ROUTING"] = "search"
	bot := w.run()
	wantIn(t, w.ask(bot, ann, "What is this document about?", samplePDF(t)), "bakery")
	wantIn(t, w.ask(bot, ann, "How many pages does the PDF have?", nil), "3 pages")
	t.Setenv("ONECLAW_DATA_DIR", w.env["ONECLAW_DATA_DIR"])
	var soon, late, problem bytes.Buffer
	for out, pause := range map[*bytes.Buffer]string{&soon: "0s", &late: "2h"} { // the running bot is asked
		if code := cli.Execute(rootCommand, config.DefaultRuntime(), []string{"bill", "--json", "--pause", pause, "--chat", fmt.Sprintf("telegram:%d", ann)}, nil, out, &problem); code != 0 {
			t.Fatalf("exit %d: %s", code, problem.String())
		}
	}
	if soon.String() == late.String() || soon.Len() == 0 {
		t.Errorf("with pauses of two hours it costs the same: %s", late.String())
	}
	bot.kill(syscall.SIGTERM)

	var stdout, stderr bytes.Buffer
	if code := cli.Execute(rootCommand, config.DefaultRuntime(), []string{"bill", "--json", "--chat", fmt.Sprintf("telegram:%d", ann)}, nil, &stdout, &stderr); code != 0 || stderr.Len() > 0 {
		t.Fatalf("exit %d: %s", code, stderr.String())
	}
	// The default of OPENAI_MODEL is compared with the model that answered.
	var text bytes.Buffer
	if code := cli.Execute(rootCommand, config.DefaultRuntime(), []string{"bill", "--chat", fmt.Sprintf("telegram:%d", ann)}, nil, &text, &stderr); code != 0 {
		t.Fatalf("exit %d: %s", code, stderr.String())
	}
	wantIn(t, text.String(), "By model", "as it was", "emulator", "read anew", "not known")
	requests := map[search.Routing]int{}
	for text := range bytes.Lines(stdout.Bytes()) {
		var line bill.Line
		if err := json.Unmarshal(text, &line); err != nil {
			t.Fatal(err)
		}
		requests[line.Routing] = line.Requests
	}
	// Two answers, two calls, and one request more where the group has to be found.
	want := map[search.Routing]int{"groups": 5, "bridge": 5, "search": 5, "all": 4}
	for routing, n := range want {
		if requests[routing] != n {
			t.Errorf("%s: %d requests, want %d", routing, requests[routing], n)
		}
	}
}
