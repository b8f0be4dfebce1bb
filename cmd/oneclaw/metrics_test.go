package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"oneclaw/internal/emulator/openai"
)

func TestM18TheBotCountsWhatItDoes(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.ResponderFunc(func(_ context.Context, req openai.Request) (openai.Reply, error) {
		last := req.Messages[len(req.Messages)-1]
		// A question without an answer stands before the next one in the same message.
		switch {
		case last.Role == "user" && strings.HasSuffix(last.Content, "break"):
			return openai.Reply{Err: &openai.Error{Status: 400, Message: "refused"}}, nil
		case last.Role == "user" && strings.HasSuffix(last.Content, "read"):
			return openai.Reply{Calls: []openai.ToolCall{{ID: "1", Name: "read_file", Arguments: `{"path":"missing.txt"}`}}}, nil
		}
		return openai.Reply{Text: "done"}, nil
	}))
	address := freeAddress(t)
	w.env["ONECLAW_LISTEN"] = address
	bot := w.run()
	var people []int64
	for _, name := range []string{"Ann", "Ben", "Cleo"} {
		who := w.person(name)
		people = append(people, who)
		for _, text := range []string{"look it up: read", "break", "hello"} {
			w.ask(bot, who, text, nil)
		}
	}
	page := get(t, "http://"+address+"/metrics")
	wantIn(t, page, `oneclaw_messages_accepted_total{platform="telegram"} 9`, `oneclaw_tool_calls_total{group="core",outcome="error"} 3`,
		`outcome="ok"} 9`, `outcome="rejected"} 3`, `oneclaw_platform_ready{platform="telegram"} 1`, `oneclaw_build_info{`, `oneclaw_database_size_bytes `)
	// The last answer of each chat may be on the screen before it is counted.
	delivered := 0
	for n := 6; n <= 9; n++ {
		if strings.Contains(page, fmt.Sprintf("oneclaw_answers_total{outcome=\"delivered\",platform=\"telegram\"} %d\n", n)) {
			delivered = n
		}
	}
	if delivered == 0 {
		t.Errorf("answers are not counted:\n%s", page)
	}
	for line := range strings.SplitSeq(page, "\n") {
		labels, _, _ := strings.Cut(line, "}")
		for _, who := range people {
			if strings.Contains(labels, "{") && strings.Contains(labels, fmt.Sprint(who)) {
				t.Errorf("the id of a person is shown: %s", line)
			}
		}
	}
}
