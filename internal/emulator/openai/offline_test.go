package openai_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	client "github.com/sashabaranov/go-openai"

	"oneclaw/internal/emulator/openai"
)

var update = flag.Bool("update", false, "rewrite the conversations")

// TestOffline holds conversations with the offline model, through the server and
// its checks. A file of testdata has the parts
//
//	system        the system prompt
//	tools         the names of the tools that are there from the start
//	group NAME    the tools that a load of this group adds
//	result NAME   what a tool answers (load_tool_group answers by itself)
//	say           what the user says, messages separated by lines of ---
//	want          the conversation that comes of it
func TestOffline(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no conversations", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			c := &conversation{f: start(t, openai.Config{}), parts: map[string]string{}}
			for _, part := range archive.Files {
				c.parts[part.Name] = strings.TrimSuffix(string(part.Data), "\n")
			}
			c.run()
			if *update {
				last := &archive.Files[len(archive.Files)-1]
				last.Data = bytes.Clone(c.log.Bytes())
				if err := os.WriteFile(file, txtar.Format(archive), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(c.parts["want"]+"\n", c.log.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// conversation plays the agent.
type conversation struct {
	f     *fixture
	parts map[string]string
	req   client.ChatCompletionRequest
	log   bytes.Buffer
}

func (c *conversation) run() {
	c.req.Model = openai.DefaultModel
	if c.parts["system"] != "" {
		c.req.Messages = append(c.req.Messages, client.ChatCompletionMessage{Role: "system", Content: c.parts["system"]})
	}
	c.offer(c.parts["tools"])
	for said := range strings.SplitSeq(c.parts["say"], "\n---\n") {
		fmt.Fprintf(&c.log, "user: %s\n", said)
		c.req.Messages = append(c.req.Messages, client.ChatCompletionMessage{Role: "user", Content: said})
		c.turn()
	}
}

func (c *conversation) offer(names string) {
	for name := range strings.FieldsSeq(names) {
		c.req.Tools = append(c.req.Tools, client.Tool{Type: "function", Function: &client.FunctionDefinition{
			Name: name, Parameters: json.RawMessage(`{"type":"object"}`),
		}})
	}
}

// turn asks until there is an answer without calls.
func (c *conversation) turn() {
	for range 20 {
		resp, err := c.f.client.CreateChatCompletion(c.f.t.Context(), c.req)
		if err != nil {
			c.f.t.Fatal(err)
		}
		m := resp.Choices[0].Message
		c.req.Messages = append(c.req.Messages, m)
		if len(m.ToolCalls) == 0 {
			fmt.Fprintf(&c.log, "model: %s\n", m.Content)
			return
		}
		for _, call := range m.ToolCalls {
			c.req.Messages = append(c.req.Messages, client.ChatCompletionMessage{
				Role: "tool", ToolCallID: call.ID, Content: c.execute(call.Function.Name, call.Function.Arguments),
			})
		}
	}
	c.f.t.Fatal("the model never stopped calling tools")
}

// execute answers a call. A tool that is not offered is a fault of the model.
func (c *conversation) execute(name, args string) string {
	fmt.Fprintf(&c.log, "call: %s %s\n", name, args)
	offered := false
	for _, tool := range c.req.Tools {
		offered = offered || tool.Function.Name == name
	}
	if !offered {
		c.f.t.Errorf("%s was called and is not offered", name)
	}
	if name != "load_tool_group" {
		return c.parts["result "+name]
	}
	var in struct {
		Group string `json:"group_name"`
	}
	if err := json.Unmarshal([]byte(args), &in); err != nil {
		c.f.t.Error(err)
	}
	tools, ok := c.parts["group "+in.Group]
	switch {
	case !ok:
		return "Tool group '" + in.Group + "' not found. Available groups: pdf"
	case tools == "":
		return "Tool group '" + in.Group + "' has no available tools."
	}
	c.offer(tools)
	return fmt.Sprintf("Loaded %d tools from group '%s':\n- …", len(strings.Fields(tools)), in.Group)
}
