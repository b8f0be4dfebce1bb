package openai

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Request is a request as the server decoded it.
type Request struct {
	// Seq is the number of the request, counted from 1.
	Seq int
	// At is the time of arrival.
	At time.Time
	// Model, Stream and IncludeUsage are from the request.
	Model                string
	Stream, IncludeUsage bool
	// Responses says that the request used the Responses API. Its items are converted to the messages
	// that they represent.
	Responses bool
	// ReasoningItems is the number of reasoning items sent back.
	ReasoningItems int
	// HasKey says whether the request had a key. The key itself is not stored.
	HasKey bool
	// Effort is the reasoning effort; empty without one.
	Effort string
	// CacheKey is prompt_cache_key, or user without it.
	CacheKey string
	// Tools are the offered tools, in order. ToolsJSON is their raw JSON.
	Tools     []Tool
	ToolsJSON json.RawMessage
	// Messages is the conversation. MessagesJSON is its raw JSON.
	Messages     []Message
	MessagesJSON json.RawMessage
	// Usage is the usage of the prompt.
	Usage Usage
	// Truncated is the number of messages that were dropped to fit the context.
	Truncated int
	// Refused is the error with which the request was refused.
	Refused *Error
}

// Tool is an offered tool.
type Tool struct {
	Name        string
	Description string
	Parameters  json.RawMessage
}

// Message is an entry of the conversation. Parts of its content are joined.
type Message struct {
	Role    string
	Content string
	// Pictures are the pictures in a user's message.
	Pictures   []Picture
	ToolCallID string
	ToolCalls  []ToolCall
}

// ToolCall is a call of a tool. In a [Reply], an empty ID is replaced.
type ToolCall struct {
	ID        string
	Name      string
	Arguments string
}

// Usage is the number of tokens of a prompt, estimated as four bytes each, and the number of cached
// tokens among them.
type Usage struct {
	Prompt, Cached int
}

// ToolNames returns the names of the offered tools, in order.
func (r Request) ToolNames() []string {
	names := make([]string, len(r.Tools))
	for i, t := range r.Tools {
		names[i] = t.Name
	}
	return names
}

type wireRequest struct {
	Model         string          `json:"model"`
	Messages      json.RawMessage `json:"messages"`
	Tools         json.RawMessage `json:"tools"`
	Stream        bool            `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	User        string   `json:"user"`
	CacheKey    string   `json:"prompt_cache_key"`
	Effort      string   `json:"reasoning_effort"`
	Temperature *float64 `json:"temperature"`
}

type wireMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCallID string          `json:"tool_call_id"`
	ToolCalls  []wireCall      `json:"tool_calls"`
	Refusal    *string         `json:"refusal"`
}

type wireCall struct {
	Index    *int   `json:"index,omitempty"`
	ID       string `json:"id,omitempty"`
	Type     string `json:"type,omitempty"`
	Function struct {
		Name      string `json:"name,omitempty"`
		Arguments string `json:"arguments"`
	} `json:"function"`
	ExtraContent map[string]any `json:"extra_content,omitempty"`
}

// decode parses a request, and refuses it if the service would.
func (s *Server) decode(body []byte) (Request, *Error) {
	req := Request{At: s.cfg.now()}
	var in wireRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return req, invalid("", "", "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON.)")
	}
	req.Model, req.Stream, req.IncludeUsage = in.Model, in.Stream, in.StreamOptions.IncludeUsage
	req.CacheKey, req.Effort = cmp.Or(in.CacheKey, in.User), in.Effort
	req.ToolsJSON, req.MessagesJSON = in.Tools, in.Messages
	if in.Model == "" {
		return req, invalid("", "", "you must provide a model parameter")
	}
	if in.StreamOptions.IncludeUsage && !in.Stream {
		return req, invalid("stream_options", "", "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	}
	if err := req.readTools(s.cfg.MaxTools); err != nil {
		return req, err
	}
	if err := req.readMessages(); err != nil {
		return req, err
	}
	if err := s.cfg.Profile.checkSampling(in.Model, "reasoning_effort", in.Effort, in.Temperature); err != nil {
		return req, err
	}
	if err := s.cfg.Profile.checkService(&req); err != nil {
		return req, err
	}
	return req, s.fitContext(&req, (len(in.Tools)+len(in.Messages)-req.pictureBytes())/bytesPerToken)
}

func invalid(param, code, format string, args ...any) *Error {
	return &Error{Status: 400, Param: param, Code: code, Message: fmt.Sprintf(format, args...)}
}

// readContent joins the parts of a message's content. Only users may send pictures.
func (m *Message) readContent(raw json.RawMessage) (null bool, err error) {
	if len(raw) == 0 || string(raw) == "null" {
		return true, nil
	}
	if json.Unmarshal(raw, &m.Content) == nil {
		return false, nil
	}
	var parts []part
	if err := json.Unmarshal(raw, &parts); err != nil {
		return false, err
	}
	var b strings.Builder
	for _, p := range parts {
		switch {
		case p.Type == "text":
			b.WriteString(p.Text)
		case p.Type == "image_url" && m.Role == "user":
			pic, err := p.parsePicture()
			if err != nil {
				return false, err
			}
			m.Pictures = append(m.Pictures, pic)
		case p.Type == "input_audio" || p.Type == "file" || p.Type == "thinking" && m.Role == "assistant":
		default:
			return false, fmt.Errorf("unknown part type %q", p.Type)
		}
	}
	m.Content = b.String()
	return false, nil
}
