package bill

import (
	"bytes"
	"embed"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"oneclaw/agent"
)

// Conversation has a user's messages and a model's replies, without loads and searches of tools,
// which depend on the routing.
type Conversation struct {
	// Name is its name in the output and in flags. Title describes it.
	Name  string `yaml:"name"`
	Title string `yaml:"title"`
	// WithServers adds the tools of [ServerGroups] to those of the program.
	WithServers bool `yaml:"servers"`
	// Turns are in chronological order.
	Turns []Turn `yaml:"turns"`

	// Recorded is set for a real conversation, whose tools may no longer exist.
	Recorded bool `yaml:"-"`
	// Summaries are the summaries of a recorded conversation.
	Summaries []Summary `yaml:"-"`
}

// Summary is the usage of a model that summarized a conversation.
type Summary struct {
	Model string
	Usage agent.Usage
}

// Turn is a user's message with the model's replies.
type Turn struct {
	// After is the time since the previous turn.
	After time.Duration `yaml:"after"`
	User  string        `yaml:"user"`
	Steps []Step        `yaml:"steps"`
	// Answer may be empty in a recorded conversation: the turn has failed or was stopped.
	Answer string `yaml:"answer"`

	// Model answered the turn, in a recorded conversation.
	Model string `yaml:"-"`
}

func (t Turn) appendCalls(to []Call) []Call {
	for _, s := range t.Steps {
		to = append(to, s.Calls...)
	}
	return to
}

// Step is a reply of the model with parallel calls.
type Step struct {
	// Text is the text of the reply.
	Text  string `yaml:"say"`
	Calls []Call `yaml:"calls"`
}

// Call is a call of a tool with its result.
type Call struct {
	Tool      string         `yaml:"tool"`
	Arguments map[string]any `yaml:"with"`
	// Query is the model's search query if it has to find the tool. Empty means the words of the
	// tool's name.
	Query string `yaml:"find"`
	// Result is the tool's result. Each {{rows}} in it stands for Rows, formatted with Row, in
	// which $1, $2 … are the fields.
	Result string     `yaml:"result"`
	Row    string     `yaml:"row"`
	Rows   [][]string `yaml:"rows"`
	// Code, if not empty, is the error code of a failed call; Result is then the message.
	Code string `yaml:"code"`
}

// WithPauses returns the conversation with a longer pause before each turn.
func (c Conversation) WithPauses(more time.Duration) Conversation {
	c.Turns = slices.Clone(c.Turns)
	for i := range c.Turns {
		c.Turns[i].After += more
	}
	return c
}

// arguments returns the arguments of the call, or an empty object if there are none.
func (c Call) arguments() map[string]any {
	if c.Arguments == nil {
		return map[string]any{}
	}
	return c.Arguments
}

func (c *Call) fillRows() {
	rows := make([]string, len(c.Rows))
	for i, fields := range c.Rows {
		rows[i] = strings.TrimSpace(c.Row)
		for n := len(fields); n > 0; n-- {
			rows[i] = strings.ReplaceAll(rows[i], "$"+strconv.Itoa(n), fields[n-1])
		}
	}
	c.Result = strings.ReplaceAll(strings.TrimSpace(c.Result), "{{rows}}", strings.Join(rows, ","))
	c.Row, c.Rows = "", nil
}

// Read reads a conversation in YAML.
func Read(r io.Reader) (Conversation, error) {
	var c Conversation
	decoder := yaml.NewDecoder(r)
	decoder.KnownFields(true)
	if err := decoder.Decode(&c); err != nil {
		return c, fmt.Errorf("read a conversation: %w", err)
	}
	for t := range c.Turns {
		for s := range c.Turns[t].Steps {
			for n := range c.Turns[t].Steps[s].Calls {
				c.Turns[t].Steps[s].Calls[n].fillRows()
			}
		}
	}
	if c.Name == "" || len(c.Turns) == 0 {
		return c, fmt.Errorf("read a conversation: it has no name or no turns")
	}
	return c, nil
}

//go:embed conversations
var conversationFiles embed.FS

// Conversations returns the built-in conversations with these names, or all.
func Conversations(names []string) ([]Conversation, error) {
	known := []string{"chat", "office", "servers"}
	if len(names) == 0 {
		names = known
	}
	var all []Conversation
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("there is no conversation %q; there are %s", name, strings.Join(known, ", "))
		}
		file, err := fs.ReadFile(conversationFiles, "conversations/"+name+".yaml")
		if err != nil {
			return nil, fmt.Errorf("bill: %w", err)
		}
		c, err := Read(bytes.NewReader(file))
		if err != nil {
			return nil, fmt.Errorf("bill: conversation %s: %w", name, err)
		}
		all = append(all, c)
	}
	return all, nil
}
