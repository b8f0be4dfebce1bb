package mcp

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strconv"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"oneclaw/toolgroups"
)

// messages prepares the messages of a server for the library, which ends the connection, or loses a whole
// result, for one part that it cannot decode, and keeps numbers as float64. The results that this package
// decodes itself travel through the library as a text.
type messages struct {
	log *slog.Logger

	mu    sync.Mutex
	calls map[int64]string // methods of the calls without an answer
}

// maxCalls bounds the calls that may still be answered.
const maxCalls = 1000

// noteSent notes the method of a call that is sent, and returns its id; ok is false for other messages.
func (m *messages) noteSent(message []byte) (id int64, ok bool) {
	var call struct {
		ID     *int64 `json:"id"`
		Method string `json:"method"`
	}
	if json.Unmarshal(message, &call) != nil || call.ID == nil || call.Method == "" {
		return 0, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.calls == nil {
		m.calls = map[int64]string{}
	}
	m.calls[*call.ID] = call.Method
	delete(m.calls, *call.ID-maxCalls)
	return *call.ID, true
}

// take returns the method of a call that is answered.
func (m *messages) take(id int64) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	method := m.calls[id]
	delete(m.calls, id)
	return method
}

// receive returns the messages in a server's data, one or a list, each on one line. Other data is skipped:
// programs write their logs where their messages belong.
func (m *messages) receive(data []byte) (out [][]byte) {
	data = bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\ufeff")))
	list := []json.RawMessage{data}
	if len(data) > 0 && data[0] == '[' {
		if list = nil; hasTooManyValues(data) || json.Unmarshal(data, &list) != nil {
			list = nil
		}
	}
	for _, one := range list {
		if message := m.prepare(one); message != nil {
			out = append(out, message)
		}
	}
	if len(out) < len(list) && len(data) > 0 {
		m.log.Debug("skipped what an MCP server has sent that is no message", "bytes", len(data))
	}
	return out
}

// prepare returns a message for the library, or nil.
func (m *messages) prepare(data json.RawMessage) []byte {
	var fields map[string]json.RawMessage
	if hasTooManyMembers(data) || json.Unmarshal(data, &fields) != nil || !isMessage(fields) {
		return nil
	}
	if method, ok := fields["method"]; ok {
		id, given := fields["id"]
		if method[0] != '"' || hasTooManyValues(data) || given && strings.IndexByte(`"-0123456789n`, id[0]) < 0 {
			return nil
		}
		if string(method) == elicitMethod {
			fields["params"] = packForm(fields["params"])
			if packed, err := toolgroups.EncodeJSON(fields); err == nil {
				return packed
			}
		}
		return oneLine(data)
	}
	id, ok := answeredID(fields["id"])
	if !ok {
		return nil
	}
	method := m.take(id)
	if fault, ok := fields["error"]; ok && string(fault) != "null" {
		if hasTooManyValues(fault) {
			fault = json.RawMessage(`"an error of too many values"`)
		}
		return encodeAnswer(id, nil, readError(fault))
	}
	result, ok := fields["result"]
	if !ok {
		result = json.RawMessage("{}")
	}
	return encodeAnswer(id, prepareResult(method, result), nil)
}

func isMessage(fields map[string]json.RawMessage) bool { return string(fields["jsonrpc"]) == `"2.0"` }

// oneLine returns JSON without line breaks.
func oneLine(data []byte) []byte {
	return bytes.Map(func(r rune) rune {
		if r == '\n' || r == '\r' {
			return ' '
		}
		return r
	}, data)
}

// answeredID returns the id of the call that an answer belongs to. The ids of this client are whole numbers,
// which some servers send back as texts.
func answeredID(raw json.RawMessage) (int64, bool) {
	text := string(raw)
	if len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &text) != nil {
		return 0, false
	}
	id, err := strconv.ParseInt(strings.TrimSuffix(text, ".0"), 10, 64)
	return id, err == nil
}

// encodeAnswer encodes an answer to a call. A result that is not valid JSON does not reach it.
func encodeAnswer(id int64, result any, fault *jsonrpc.Error) []byte {
	if raw, ok := result.(*jsonrpc.Error); ok {
		result, fault = nil, raw
	}
	answer := struct {
		Version string         `json:"jsonrpc"`
		ID      int64          `json:"id"`
		Result  any            `json:"result,omitempty"`
		Error   *jsonrpc.Error `json:"error,omitempty"`
	}{"2.0", id, result, fault}
	data, err := toolgroups.EncodeJSON(answer)
	if err != nil {
		return nil
	}
	return data
}

// readError reads an error, also one that lacks a code or is only a text.
func readError(raw json.RawMessage) *jsonrpc.Error {
	fields := objectFields(raw)
	fault := &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: textOf(raw), Data: fields["data"]}
	if code, ok := answeredID(fields["code"]); ok {
		fault.Code = code
	}
	if message, ok := fields["message"]; ok {
		fault.Message = textOf(message)
	}
	return fault
}

// objectFields returns the members of a JSON object; nil if it is none.
func objectFields(raw json.RawMessage) map[string]json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return nil
	}
	return fields
}

// textOf returns the text of a JSON string, or other JSON as it is; "" for null.
func textOf(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return strings.ToValidUTF8(string(raw), "\uFFFD")
}

// stringOf returns the text of a JSON string; "" for everything else.
func stringOf(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return ""
	}
	return text
}

// prepareResult returns a result that the library can decode, or an error.
func prepareResult(method string, raw json.RawMessage) any {
	switch method {
	case "tools/call":
		return withQuestions(raw, map[string]any{"content": []any{}, "structuredContent": asText(raw)}, &sdk.CallToolResult{})
	case "resources/read":
		return withQuestions(raw, map[string]any{"contents": []any{map[string]any{"uri": "", "text": asText(raw)}}}, &sdk.ReadResourceResult{})
	}
	if hasTooManyValues(raw) {
		return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "its answer has too many values"}
	}
	switch method {
	case "tools/list":
		return packTools(raw)
	case "initialize":
		return withoutUnreadable(raw, func() any { return &sdk.InitializeResult{} })
	case "server/discover":
		return withoutUnreadable(raw, func() any { return &sdk.DiscoverResult{} })
	}
	return raw
}

// The first version of the protocol is the second one with another form of results. The library does not
// know it.
const firstVersion, secondVersion = `"2024-10-07"`, `"2024-11-05"`

// withoutUnreadable returns an object without the members that cannot be decoded.
func withoutUnreadable(raw json.RawMessage, empty func() any) any {
	fields := objectFields(raw)
	if string(fields["protocolVersion"]) == firstVersion {
		fields["protocolVersion"] = json.RawMessage(secondVersion)
	}
	for name, value := range fields {
		one, err := json.Marshal(map[string]json.RawMessage{name: value})
		if err != nil || json.Unmarshal(one, empty()) != nil {
			delete(fields, name)
		}
	}
	if fields == nil {
		return raw
	}
	return fields
}

// asText returns JSON as a text.
func asText(raw json.RawMessage) string { return strings.ToValidUTF8(string(raw), "\uFFFD") }

// withQuestions returns a result that holds the server's own as a text, and beside it what the library handles
// itself: questions, which it decodes into empty.
func withQuestions(raw json.RawMessage, result map[string]any, empty any) any {
	var fields map[string]json.RawMessage
	if !hasTooManyMembers(raw) {
		fields = objectFields(raw)
	}
	if hasTooManyValues(fields["inputRequests"]) {
		return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "it asked for too much at once"}
	}
	asks := false
	for _, name := range []string{"resultType", "inputRequests", "requestState"} {
		if value, ok := fields[name]; ok {
			result[name], asks = value, true
		}
	}
	if questions := objectFields(fields["inputRequests"]); questions != nil {
		for id, one := range questions {
			if question := objectFields(one); string(question["method"]) == elicitMethod {
				question["params"] = packForm(question["params"])
				questions[id], _ = toolgroups.EncodeJSON(question) // never fails: it was decoded
			}
		}
		result["inputRequests"] = questions
	}
	data, err := toolgroups.EncodeJSON(result)
	if err != nil || asks && json.Unmarshal(data, empty) != nil {
		return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "it asked for something that cannot be read"}
	}
	return json.RawMessage(data)
}

// elicitMethod is the method of a question, in JSON.
const elicitMethod = `"elicitation/create"`

// formKey is the key of a form's own schema in the metadata of a question.
const formKey = "oneclaw/schema"

// packForm keeps the schema of a form as the server sent it, for the digits of its numbers. The library gets it
// without defaults, which it would send for what a person leaves out.
func packForm(params json.RawMessage) json.RawMessage {
	fields := objectFields(params)
	schema, ok := fields["requestedSchema"]
	meta := objectFields(fields["_meta"])
	if given := fields["_meta"]; !ok || meta == nil && given != nil && string(given) != "null" {
		return params
	}
	if meta == nil {
		meta = map[string]json.RawMessage{}
	}
	var err error
	if meta[formKey], err = toolgroups.EncodeJSON(asText(schema)); err == nil {
		fields["_meta"], err = toolgroups.EncodeJSON(meta)
		fields["requestedSchema"] = withoutDefaults(schema)
	}
	packed, failed := toolgroups.EncodeJSON(fields)
	if err != nil || failed != nil {
		return params
	}
	return packed
}

// withoutDefaults returns the schema of a form without the defaults of its fields.
func withoutDefaults(schema json.RawMessage) json.RawMessage {
	form := objectFields(schema)
	properties := objectFields(form["properties"])
	for name, one := range properties {
		if property := objectFields(one); property["default"] != nil {
			delete(property, "default")
			properties[name], _ = toolgroups.EncodeJSON(property) // never fails: it was decoded
		}
	}
	if properties == nil {
		return schema
	}
	form["properties"], _ = toolgroups.EncodeJSON(properties)
	schema, _ = toolgroups.EncodeJSON(form)
	return schema
}

// unpackForm returns the schema of a form as the server sent it.
func unpackForm(p *sdk.ElicitParams) any {
	if schema, ok := p.Meta[formKey].(string); ok {
		return json.RawMessage(schema)
	}
	return p.RequestedSchema
}

// unpackCallResult returns the result of a call as the server sent it.
func unpackCallResult(res *sdk.CallToolResult) json.RawMessage {
	text, _ := res.StructuredContent.(string)
	return json.RawMessage(text)
}

// unpackResource returns a resource, as the server sent it, in the form of the result of a call.
func unpackResource(res *sdk.ReadResourceResult) (json.RawMessage, error) {
	var contents []json.RawMessage
	var pieces []any
	switch {
	case len(res.Contents) != 1:
	case hasTooManyValues([]byte(res.Contents[0].Text)):
		pieces = append(pieces, tooManyText)
	default:
		_ = json.Unmarshal(objectFields(json.RawMessage(res.Contents[0].Text))["contents"], &contents)
	}
	for _, one := range contents {
		pieces = append(pieces, map[string]any{"type": "resource", "resource": one})
	}
	return toolgroups.EncodeJSON(map[string]any{"content": pieces})
}

// maxPackedDepth bounds the nesting of a schema that the library sees.
const maxPackedDepth = 100

// packTools packs a page of a list of tools, each in its description. The library needs their names, and
// their schemas for headers.
func packTools(raw json.RawMessage) any {
	fields := objectFields(raw)
	page := struct {
		Tools      []any  `json:"tools"`
		NextCursor string `json:"nextCursor,omitempty"`
	}{[]any{}, stringOf(fields["nextCursor"])}
	var tools []json.RawMessage
	_ = json.Unmarshal(fields["tools"], &tools) // something else is no tool
	for _, one := range tools {
		own := objectFields(one)
		schema := own["inputSchema"]
		if objectFields(schema) == nil || depthOf(schema) > maxPackedDepth {
			schema = json.RawMessage("{}")
		}
		page.Tools = append(page.Tools, map[string]any{
			"name": stringOf(own["name"]), "description": asText(one), "inputSchema": schema,
		})
	}
	return page
}

// unpackTool returns the members of a tool as the server sent it.
func unpackTool(t *sdk.Tool) map[string]json.RawMessage {
	return objectFields(json.RawMessage(t.Description))
}

// depthOf returns how deep valid JSON is nested.
func depthOf(raw json.RawMessage) (deepest int) {
	depth, inString := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest
}
