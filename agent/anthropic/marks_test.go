package anthropic_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	brain "oneclaw/internal/emulator/openai"
	"oneclaw/toolgroups/search"
)

// However a conversation goes, a request reads again at most what is new, and one block: the
// cache has all that the request before it had.
func TestPropertyANewTurnReadsOnlyWhatIsNew(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		c := newTalk(t).by(rapid.SampledFrom([]search.Routing{search.RoutingGroups, search.RoutingAll, search.RoutingSearch}).Draw(r, "routing"))
		plan := rapid.SliceOfN(rapid.SliceOfN(rapid.IntRange(1, 30), 0, 3), 1, 4).Draw(r, "turns")
		for i, rounds := range plan {
			c.think = func(req brain.Request) brain.Reply {
				done := results(req)
				for _, n := range rounds {
					if len(done) >= n {
						done = done[n:]
						continue
					}
					reply := brain.Reply{Text: "One moment."}
					for k := range n {
						reply.Calls = append(reply.Calls, brain.ToolCall{Name: "note", Arguments: fmt.Sprintf(`{"text":"%d"}`, k)})
					}
					return reply
				}
				return brain.Reply{Text: "Done."}
			}
			if _, err := c.try(fmt.Sprint("message ", i)); err != nil {
				r.Fatal(err)
			}
		}
		requests := c.srv.Requests()
		for i := 1; i < len(requests); i++ {
			now, before := requests[i].Usage, requests[i-1].Usage
			if fresh, read := now.Total()-before.Total(), now.Input+now.CacheWritten; read > fresh+oneBlock {
				r.Fatalf("request %d reads %d tokens, of which %d are new: %+v after %+v", i+1, read, fresh, now, before)
			}
		}
		if refused := c.refusals(); len(refused) > 0 {
			r.Fatalf("refused: %q", refused)
		}
	})
}

// oneBlock is as large as a block of these conversations gets, in tokens.
const oneBlock = 60

// A load writes anew what stands behind the tools that were there, and nothing of those.
func TestALoadKeepsTheToolsInFrontOfIt(t *testing.T) {
	c := newTalk(t).by(search.RoutingGroups)
	c.tools = tools(t, 3, 30) // more than are looked back over
	c.think = calling("load group0", "load group1", "load group2", "note")
	if _, err := c.try("go"); err != nil {
		t.Fatal(err)
	}
	requests := c.srv.Requests()
	for i := 2; i < 4; i++ {
		if read, tools := requests[i].Usage.CacheRead, len(mustTools(t, requests[i-1].Body))/4; read < tools*9/10 {
			t.Errorf("request %d reads %d tokens, of tools that were there %d: %+v", i+1, read, tools, requests[i].Usage)
		}
	}
	if u := requests[4].Usage; u.CacheRead < requests[3].Usage.Total()-oneBlock {
		t.Errorf("behind the loads %+v", u)
	}
}

// Another conversation finds the tools and the prompt, and so does one after a pause that is
// not too long.
func TestPromptsAreSharedAndExpire(t *testing.T) {
	c := newTalk(t).by(search.RoutingAll)
	c.say("hello", "Fine.")
	first := c.last().Usage
	c.history, c.turn.CacheKey = nil, "another chat"
	c.say("something else", "Fine.")
	if u := c.last().Usage; u.CacheRead < first.Total()-oneBlock {
		t.Errorf("another conversation: %+v after %+v", u, first)
	}
	c.wait(4 * time.Minute)
	c.say("again", "Fine.")
	c.wait(4 * time.Minute)
	c.say("again", "Fine.")
	if u := c.last().Usage; u.CacheRead == 0 {
		t.Errorf("after four minutes: %+v", u)
	}
	c.wait(6 * time.Minute)
	c.say("again", "Fine.")
	if u := c.last().Usage; u.CacheRead != 0 || u.CacheWritten == 0 {
		t.Errorf("after six minutes: %+v", u)
	}
}

func mustTools(t *testing.T, body []byte) json.RawMessage {
	t.Helper()
	var req struct{ Tools json.RawMessage }
	if err := json.Unmarshal(body, &req); err != nil {
		t.Fatal(err)
	}
	return req.Tools
}

// A chat in which people write every twenty minutes is kept for an hour from its second turn on, and
// found again; one that goes on at once is kept for five minutes, which is cheaper to write.
func TestPausesHaveThePromptKeptForAnHour(t *testing.T) {
	for pause, hour := range map[time.Duration]bool{time.Minute: false, 20 * time.Minute: true} {
		c := newTalk(t)
		for range 3 {
			c.say("hello", "Fine.")
			c.wait(pause)
		}
		last := c.last()
		if got := strings.Contains(string(last.Body), `"ttl":"1h"`); got != hour || last.Usage.CacheRead == 0 {
			t.Errorf("pauses of %v: an hour is asked for: %v; %d tokens are read", pause, got, last.Usage.CacheRead)
		}
		if used := c.history[len(c.history)-1].Usage; hour != (used.CacheWrittenHour > 0) {
			t.Errorf("pauses of %v: %d of %d tokens written are for an hour", pause, used.CacheWrittenHour, used.CacheWritten)
		}
	}
}
