package npmtest

import (
	_ "embed"
	"encoding/json"
	"testing"
)

//go:embed models.cjs
var models string

// Asked is a question to a model.
type Asked struct {
	// API is chat, responses or messages. Way is whole for an answer without a stream, helper for the library's own
	// reader of streams, or, for chat, events for a reader without its rules.
	API string `json:"api"`
	Way string `json:"way"`
	// URL is the base URL of the server, and Key the key for it.
	URL   string `json:"url"`
	Key   string `json:"key"`
	Model string `json:"model"`
	Text  string `json:"text"`
	// Tools offers the tools a and b.
	Tools bool `json:"tools"`
}

// Answer is an answer as a library reads it, or its error.
type Answer struct {
	// Text is the text of the whole answer, Shown what the pieces of a stream said.
	Text, Shown string
	Calls       []Call
	// Thinking is a thought with its signature.
	Thinking, Stop string
	// Input and Output count tokens.
	Input, Output int

	// Error is the text of the error; Status, Code and Request belong to it.
	Error, Code, Request string
	Status               int
}

// Call is a call of a tool.
type Call struct{ ID, Name, Arguments string }

// AskByLibraries asks each question with the library of its service.
func AskByLibraries(t testing.TB, asked []Asked) []Answer {
	t.Helper()
	var answers []Answer
	if err := json.Unmarshal(Run(t, models, asked, "openai", "@anthropic-ai/sdk"), &answers); err != nil || len(answers) != len(asked) {
		t.Fatalf("%d of %d answers, %v", len(answers), len(asked), err)
	}
	return answers
}
