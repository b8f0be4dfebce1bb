package openai

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"oneclaw/agent"
	"oneclaw/internal/runes"
	"oneclaw/toolgroups"
)

// payload is what of a request is encoded here and not by the library: the large
// parts, which would be encoded several times over, and byte for byte as
// toolgroups has them; and a field that the library does not know.
type payload struct {
	// list is the name of the field with the messages.
	list     string
	messages []byte
	tools    []byte
	cacheKey string
	// keep says that the server has to be told to cache the prompt.
	keep bool
	// pictures says that there are some among the messages.
	pictures bool
	// temperature, if not nil, is sent.
	temperature *float64
}

func (c *Client) payload(req agent.Request) payload {
	to := dialogue{origin: c.origin, signed: c.signs(), show: c.look(req)}
	p := payload{list: "messages", pictures: len(to.show.pictures) > 0, keep: c.keeps}
	if c.responses {
		p.list, p.messages = "input", encodeInput(to, req.System, req.Messages)
	} else {
		p.messages = encodeMessages(to, req.System, req.Messages)
	}
	if !reasons(c.cfg.Model) {
		// Models that reason refuse any temperature but their own.
		p.temperature = req.Temperature
	}
	if len(req.Tools) > 0 {
		p.tools = c.arrays.encode(req.Tools, c.encodeTools)
	}
	if c.hosted && req.CacheKey != "" {
		// OpenAI bounds the key to 64 characters, and needs not know our ids.
		sum := sha256.Sum256([]byte(req.CacheKey))
		p.cacheKey = hex.EncodeToString(sum[:16])
	}
	return p
}

// fill returns the body of a request with the payload in place of what the library
// encoded, as parts that follow each other: the messages may be large and are not
// copied.
func (p payload) fill(skeleton []byte) ([][]byte, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(skeleton, &fields); err != nil {
		return nil, fmt.Errorf("decode the request: %w", err)
	}
	delete(fields, p.list)
	delete(fields, "tools")
	if p.cacheKey != "" {
		fields["prompt_cache_key"] = json.RawMessage(`"` + p.cacheKey + `"`)
	}
	if p.keep {
		fields["cache_control"] = json.RawMessage(`{"type":"ephemeral"}`)
	}
	if p.temperature != nil {
		fields["temperature"] = json.RawMessage(strconv.FormatFloat(*p.temperature, 'g', -1, 64))
	}
	head, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	parts := [][]byte{bytes.TrimSuffix(head, []byte("}"))}
	if len(p.tools) > 0 {
		parts = append(parts, []byte(`,"tools":`), p.tools)
	}
	return append(parts, []byte(`,"`+p.list+`":`), p.messages, []byte(`}`)), nil
}

// arrays remembers how the last few tools arrays are encoded.
type arrays struct {
	mu   sync.Mutex
	last []array
}

type array struct {
	tools   []toolgroups.Tool
	encoded []byte
}

// maxArrays is how many are remembered.
const maxArrays = 16

func (a *arrays) encode(tools []toolgroups.Tool, encode func([]toolgroups.Tool) json.RawMessage) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range a.last {
		if slices.EqualFunc(a.last[i].tools, tools, sameTool) {
			return a.last[i].encoded
		}
	}
	encoded := encode(tools)
	if len(a.last) == maxArrays {
		a.last = slices.Delete(a.last, 0, 1)
	}
	a.last = append(a.last, array{tools, encoded})
	return encoded
}

func sameTool(a, b toolgroups.Tool) bool {
	return a.Name == b.Name && a.Description == b.Description && bytes.Equal(a.Parameters, b.Parameters)
}

// encodeMessages encodes the system prompt and the messages. User messages that
// follow each other become one, because some servers insist that the roles
// alternate.
func encodeMessages(to dialogue, system string, messages []agent.Message) []byte {
	e := newEncoder(to, system, messages)
	e.raw(`[`)
	if system != "" {
		e.message("system", system)
	}
	turn := lastUser(messages)
	for i := 0; i < len(messages); i++ {
		m := &messages[i]
		switch m.Role {
		case agent.RoleUser, agent.RoleSummary:
			first := i
			var text strings.Builder
			text.WriteString(userText(m))
			for i+1 < len(messages) && messages[i+1].Role == agent.RoleUser {
				i++
				text.WriteString("\n\n" + userText(&messages[i]))
			}
			e.user(text.String(), to.show.with(first, i))
		case agent.RoleAssistant:
			e.assistant(m, i > turn)
		case agent.RoleTool:
			e.result(m)
		}
	}
	e.raw(`]`)
	return e.buf
}

// newEncoder makes an encoder with room for the messages.
func newEncoder(to dialogue, system string, messages []agent.Message) encoder {
	size := len(system) + 64
	for i := range messages {
		size += len(messages[i].Text) + len(messages[i].Text)/16 + 96
	}
	for _, p := range to.show.pictures {
		size += base64.StdEncoding.EncodedLen(len(p.data)) + 96
	}
	return encoder{buf: make([]byte, 0, size), to: to}
}

func lastUser(messages []agent.Message) int {
	for i, message := range slices.Backward(messages) {
		if message.Role == agent.RoleUser {
			return i
		}
	}
	return -1
}

// userText is what the model reads of a user message: "[Ann] text" in shared chats,
// a line "[file: path]" for each file, and what the memory has about it.
func userText(m *agent.Message) string {
	if m.Role == agent.RoleSummary {
		return "[Summary of the conversation so far]\n" + m.Text
	}
	text := m.Text
	if name := senderName(m.Sender); name != "" {
		text = "[" + name + "] " + text
	}
	for _, f := range m.Files {
		text = strings.TrimPrefix(text+"\n[file: "+f.Path+"]", "\n")
	}
	if m.Recalled != "" {
		text += "\n[From memory]\n" + m.Recalled
	}
	return orEmpty(text)
}

// maxSender bounds a name, in characters.
const maxSender = 64

// senderName takes out of a name what could be read as the end of it.
func senderName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r == '[' || r == ']' || unicode.IsControl(r) {
			return ' '
		}
		return r
	}, name)
	name, _ = runes.Split(strings.Join(strings.Fields(name), " "), maxSender)
	return name
}

// orEmpty stands in for no text, which many servers refuse.
func orEmpty(text string) string {
	if strings.TrimSpace(text) == "" {
		return "(empty)"
	}
	return text
}
