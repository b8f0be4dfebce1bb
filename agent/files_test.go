package agent_test

import (
	"testing"

	"oneclaw/agent"
	"oneclaw/toolgroups"
)

// A model may read files in each request that shows pictures, until they are taken out.
func TestFilesCanBeReadWhilePicturesAreShown(t *testing.T) {
	c := newChat(t, agent.Config{})
	c.turn.ReadFile = func(path string, _ int64) ([]byte, error) { return []byte("bytes of " + path), nil }
	with := agent.Message{Role: agent.RoleUser, Text: "look", Files: []toolgroups.File{{Path: "a.png", Picture: &toolgroups.Picture{}}}}
	ask := func(m agent.Message, replies ...agent.Reply) []agent.Request {
		t.Helper()
		s := &script{t: t, replies: replies}
		if err := c.run(s, m); err != nil {
			t.Fatal(err)
		}
		return s.requests
	}
	// The empty reply is asked for again, with a sentence that is no message of the user.
	requests := ask(with, calls("1 read_file {}"), says(""), says("a cat"))
	if len(requests) != 3 {
		t.Fatalf("%d requests", len(requests))
	}
	for i, req := range requests {
		if req.ReadFile == nil {
			t.Errorf("request %d cannot read", i)
		} else if data, err := req.ReadFile("a.png", 10); err != nil || string(data) != "bytes of a.png" {
			t.Errorf("request %d reads %q, %v", i, data, err)
		}
	}
	for i, req := range ask(agent.Message{Role: agent.RoleUser, Text: "and now"}, calls("1 read_file {}"), says("nothing")) {
		if req.ReadFile == nil {
			t.Errorf("request %d of the next turn cannot read", i)
		}
	}
	fewer, needed := agent.TrimPictures(c.history, -1)
	if !needed || fewer.Pictures != 0 {
		t.Fatalf("%+v, %v", fewer, needed)
	}
	c.history = append(c.history, fewer)
	for i, req := range ask(agent.Message{Role: agent.RoleUser, Text: "and now"}, says("nothing")) {
		if req.ReadFile != nil {
			t.Errorf("request %d can read what is not shown", i)
		}
	}
}
