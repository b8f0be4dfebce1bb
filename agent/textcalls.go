package agent

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"oneclaw/toolgroups"
)

// Servers that do not know a model's form of calls leave them in the text of its reply. Each family has marks of
// its own; models that were not trained on any write bare JSON (openclaw #4016).

var (
	// familyMarks matches what families put in front of the names of the same tags: MiniMax, Seed, LongCat, models
	// that imitate Claude, and DeepSeek from V3.2 on (sglang #40236).
	familyMarks = regexp.MustCompile(`(</?)(?:minimax:|mm:|seed:|longcat_|antml:|｜DSML｜)((?:tool_call|function_call)s?|invoke|parameter|arg_key|arg_value|think|thinking)\b`)
	// callBlocks matches the marks around calls, and what they contain: those of Qwen and Hermes, of Jamba and
	// Hunyuan, of models that imitate Claude, Gemma, Phi and Granite, Kimi, DeepSeek, Mistral, Command, gpt-oss,
	// Nemotron, Llama and InternLM.
	callBlocks = regexp.MustCompile(`(?s)<tool_calls?>(.*?)(?:</tool_calls?>|$)|<function_calls?>(.*?)(?:</function_calls?>|$)|<tools>(\s*[\[{].*?)(?:</tools>|$)|` +
		`<\|tool_call>(.*?)(?:<tool_call\|>|$)|<\|tool_call\|>(.*?)(?:<\|/tool_call\|>|$)|<\|action_start\|>\s*<\|plugin\|>(.*?)(?:<\|action_end\|>|$)|<\|tool_call_begin\|>(.*?)(?:<\|tool_call_end\|>|$)|<｜tool▁call▁begin｜>(.*?)(?:<｜tool▁call▁end｜>|$)|` +
		`\[TOOL_CALLS\](.*?)(?:\[/TOOL_CALLS\]|</s>|$)|<\|START_ACTION\|>(.*?)(?:<\|END_ACTION\|>|$)|<TOOLCALL>(.*?)(?:</TOOLCALL>|$)|<\|python_tag\|>(.*?)(?:<\|eo[mt]_id\|>|$)|` +
		`<\|FunctionCallBegin\|>(.*?)(?:<\|FunctionCallEnd\|>|$)|((?:(?:<\|start\|>\s*assistant)?\s*\bto=[\w.-]+\s*)?<\|channel\|>\s*commentary(?:[^<]|<\|constrain\|>){0,80}<\|message\|>.*?)(?:<\|(?:call|end|return)\|>|$)|` +
		`(<function=.*?)(?:</function>|$)|(<invoke name=.*?)(?:</invoke>|$)`)
	// namedJSON matches the name of a function in front of its arguments: Kimi, DeepSeek, Mistral, gpt-oss, Llama.
	namedJSON = regexp.MustCompile(`(?s)^\s*(?:<\|start\|>\s*assistant\s+to=|to=|<\|channel\|>\s*commentary\s+to=|<function=|function<｜tool▁sep｜>)?(?:functions\.)?"?([A-Za-z0-9_-]{1,64})"?(?::\d+)?\s*(?:<\|tool_call_argument_begin\|>|<｜tool▁sep｜>|(?:\[CALL_ID\]\w+)?\[ARGS\]|(?:<\|channel\|>\s*commentary)?(?:[^<{\[]{0,20}<\|constrain\|>)?[^<{\[]{0,20}<\|message\|>|>)?\s*(?:` + "```(?:json)?\\s*" + `)?(\{.*\})`)
	// gemmaCall matches a call in Gemma 4's notation.
	gemmaCall = regexp.MustCompile(`(?s)\bcall:([A-Za-z0-9_-]{1,64})(\{.*)`)
	// xmlFunction and xmlParameters match calls with a tag for each parameter, argPairs GLM's.
	xmlFunction   = regexp.MustCompile(`(?s)<(?:function=|invoke name=)"?([A-Za-z0-9_-]{1,64})"?>(.*?)(?:</function>|</invoke>|$)`)
	xmlParameters = regexp.MustCompile(`(?s)<parameter(?:=| name=)"?([^">]{1,64})"?(?: string="(?:true|false)")?>(.*?)</parameter>`)
	argPairs      = regexp.MustCompile(`(?s)<arg_key>(.*?)</arg_key>\s*<arg_value>(.*?)</arg_value>`)
	firstWord     = regexp.MustCompile(`^\s*([A-Za-z0-9_-]{1,64})`)
	// bareCall matches a text, or its last paragraph, that begins as a call in JSON does.
	bareCall = regexp.MustCompile(`(?s)(?:^|\n)\s*(?:` + "```(?:json|tool_call)?\\s*" + `)?(?:functools)?(\[?\s*\{\s*"(?:name|tool|tool_name|function|type|arguments|parameters|tool_calls|id|action|recipient_name|tool_uses)"\s*:.*)$`)
)

// maxTextCalls bounds how much of a text is searched for calls, in bytes.
const maxTextCalls = 256 << 10

// callsInText returns the calls of offered tools in the text of a reply, and the text without them.
func callsInText(text string, tools []toolgroups.Tool) (calls []Call, rest string) {
	if len(text) > maxTextCalls || !strings.ContainsAny(text, "{<[") {
		return nil, text
	}
	offered := func(name string) bool {
		return slices.ContainsFunc(tools, func(t toolgroups.Tool) bool { return t.Name == name })
	}
	plain := plainMarks(text)
	for _, part := range []string{stripThinking(plain), plain} { // a call may stand in a thought that never ends
		calls, rest = markedCalls(part, offered)
		if len(calls) == 0 {
			calls = bareCalls(part, offered)
		}
		if len(calls) > 0 || VisibleText(text) != "" {
			break
		}
	}
	if len(calls) == 0 {
		return nil, text
	}
	rest = VisibleText(rest)
	if at := bareCall.FindStringSubmatchIndex(rest); at != nil {
		rest = strings.TrimSpace(rest[:at[0]])
	}
	return calls, strings.TrimSpace(xmlFunction.ReplaceAllLiteralString(rest, ""))
}

// plainMarks returns a text with the tags of all families under one name, outside of code.
func plainMarks(text string) string {
	if !familyMarks.MatchString(text) {
		return text
	}
	return replaceOutsideCode(text, func(prose string) string { return familyMarks.ReplaceAllString(prose, "$1$2") })
}

// markedCalls returns the calls within the marks of a family, outside of code, and the text without them.
func markedCalls(text string, offered func(string) bool) (calls []Call, rest string) {
	add := func(name, arguments string) bool {
		if name = strings.TrimPrefix(name, "functions."); !offered(name) || len(calls) >= maxCalls {
			return false
		}
		calls = append(calls, Call{Name: name, Arguments: arguments})
		return true
	}
	done := 0
	for _, at := range findOutsideCode(text, callBlocks) {
		before := len(calls)
		for i := 2; i < len(at); i += 2 {
			if at[i] < 0 {
				continue
			}
			for content := range strings.SplitSeq(text[at[i]:at[i+1]], "[TOOL_CALLS]") {
				readCalls(content, at[i+1] < at[1], add)
			}
		}
		if len(calls) > before {
			rest += text[done:at[0]]
			done = at[1]
		}
	}
	return calls, rest + text[done:]
}

// readCalls passes the calls in a block to add: as JSON, with a tag for each parameter, as a name and its
// arguments, or in Gemma's notation. closed says that the block has an end: one without may have been cut off, and its
// JSON is not repaired.
func readCalls(content string, closed bool, add func(name, arguments string) bool) {
	if functions := xmlFunction.FindAllStringSubmatch(content, -1); len(functions) > 0 {
		for _, f := range functions {
			if arguments := strings.TrimSpace(f[2]); strings.HasPrefix(arguments, "{") && json.Valid([]byte(arguments)) {
				add(f[1], arguments)
			} else {
				add(f[1], encodeParameters(xmlParameters.FindAllStringSubmatch(f[2], -1)))
			}
		}
		return
	}
	if m := gemmaCall.FindStringSubmatch(content); m != nil {
		if arguments, ok := decodeGemma(m[2]); ok {
			add(m[1], arguments)
		}
		return
	}
	if readJSONCalls(content, add) {
		return
	}
	if repaired, err := toolgroups.RepairArguments(json.RawMessage(content)); closed && err == nil && readJSONCalls(string(repaired), add) {
		return // a bracket was missing, or there was a comma too many
	}
	if m := namedJSON.FindStringSubmatch(content); m != nil {
		if arguments := firstJSON(m[2]); arguments != "" && add(m[1], arguments) {
			return
		}
	}
	if pairs := argPairs.FindAllStringSubmatch(content, -1); len(pairs) > 0 {
		if name := firstWord.FindStringSubmatch(content); name != nil {
			add(name[1], encodeParameters(pairs))
		}
	}
}

// firstJSON returns the JSON value at the beginning of a text; "" if there is none.
func firstJSON(text string) string {
	var value json.RawMessage
	if json.NewDecoder(strings.NewReader(text)).Decode(&value) != nil {
		return ""
	}
	return string(value)
}

// writtenCall is a call as models write it in JSON.
type writtenCall struct {
	Name       string          `json:"name"`
	Tool       string          `json:"tool"`
	ToolName   string          `json:"tool_name"`
	Action     string          `json:"action"`
	Recipient  string          `json:"recipient_name"`
	Arguments  json.RawMessage `json:"arguments"`
	Parameters json.RawMessage `json:"parameters"`
	Args       json.RawMessage `json:"args"`
	Input      json.RawMessage `json:"input"`
	ForAction  json.RawMessage `json:"action_input"`
	// Function is the name, or an object with the name and the arguments.
	Function  json.RawMessage `json:"function"`
	ToolCalls []writtenCall   `json:"tool_calls"`
	ToolUses  []writtenCall   `json:"tool_uses"`
}

// read passes the call to add.
func (c *writtenCall) read(add func(name, arguments string) bool) bool {
	several := append(c.ToolCalls, c.ToolUses...)
	for i := range several {
		if !several[i].read(add) {
			return false
		}
	}
	if len(several) > 0 {
		return true
	}
	var inner writtenCall
	if len(c.Function) > 0 && json.Unmarshal(c.Function, &inner) == nil {
		return inner.read(add)
	}
	name := cmp.Or(c.Name, c.Tool, c.ToolName, c.Action, strings.TrimPrefix(c.Recipient, "functions."))
	if name == "" && len(c.Function) > 0 && json.Unmarshal(c.Function, &name) != nil {
		return false
	}
	var arguments json.RawMessage
	for _, given := range []json.RawMessage{c.Arguments, c.Parameters, c.Args, c.Input, c.ForAction} {
		if len(arguments) == 0 {
			arguments = given
		}
	}
	var text string
	if json.Unmarshal(arguments, &text) != nil {
		text = string(arguments)
	}
	return add(name, text)
}

// readJSONCalls passes calls in JSON, one or a list or several in a row, to add. It returns false if the text is
// anything else.
func readJSONCalls(text string, add func(name, arguments string) bool) bool {
	text = strings.TrimSpace(text)
	if fenced, ok := strings.CutPrefix(text, "```"); ok {
		text = strings.TrimSpace(strings.TrimPrefix(strings.TrimSuffix(fenced, "```"), "json"))
	}
	found := false
	for text != "" {
		if text[0] != '{' && text[0] != '[' {
			return found && strings.Trim(text, "`;,]} \n<>/|") == ""
		}
		raw := firstJSON(text)
		if raw == "" {
			return false
		}
		calls := make([]writtenCall, 1)
		if raw[0] == '[' {
			if json.Unmarshal([]byte(raw), &calls) != nil || len(calls) == 0 {
				return false
			}
		} else if json.Unmarshal([]byte(raw), &calls[0]) != nil {
			return false
		}
		for i := range calls {
			if !calls[i].read(add) {
				return false
			}
		}
		found, text = true, strings.TrimSpace(text[len(raw):])
	}
	return found
}

// bareCalls returns the calls of a text that is, or ends with, calls in JSON without any marks. All of them have
// to be calls of offered tools: other JSON is an answer.
func bareCalls(text string, offered func(string) bool) (calls []Call) {
	m := bareCall.FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	content := strings.TrimSuffix(strings.TrimSpace(m[1]), "```")
	whole := readJSONCalls(content, func(name, arguments string) bool {
		if !offered(name) || arguments == "" || len(calls) >= maxCalls {
			return false
		}
		calls = append(calls, Call{Name: name, Arguments: arguments})
		return true
	})
	if !whole {
		return nil
	}
	return calls
}

// encodeParameters returns arguments from pairs of names and values. A value that is JSON is taken as such;
// [toolgroups.ValidateArguments] turns it into a text where the tool wants one.
func encodeParameters(pairs [][]string) string {
	var out strings.Builder
	out.WriteByte('{')
	for i, pair := range pairs {
		if i > 0 {
			out.WriteByte(',')
		}
		value := strings.TrimSuffix(strings.TrimPrefix(pair[2], "\n"), "\n")
		out.Write(quote(strings.TrimSpace(pair[1])))
		out.WriteByte(':')
		if trimmed := strings.TrimSpace(value); trimmed != "" && trimmed[0] != '"' && json.Valid([]byte(trimmed)) {
			out.WriteString(trimmed)
		} else {
			out.Write(quote(value))
		}
	}
	out.WriteByte('}')
	return out.String()
}

func quote(s string) []byte {
	b, err := toolgroups.EncodeJSON(s)
	if err != nil {
		return []byte(`""`) // a string always encodes
	}
	return b
}

// gemmaQuote delimits strings in Gemma's notation.
const gemmaQuote = `<|"|>`

// gemmaToken matches a token outside of strings in Gemma's notation, which has names without quotes.
var gemmaToken = regexp.MustCompile(`^(?:[{}\[\],:]|\s+|[^{}\[\],:\s<]+)`)

// decodeGemma returns an object in Gemma's notation as JSON. What follows it is ignored.
func decodeGemma(text string) (string, bool) {
	var out strings.Builder
	depth := 0
	for text != "" {
		if body, ok := strings.CutPrefix(text, gemmaQuote); ok {
			value, rest, closed := strings.Cut(body, gemmaQuote)
			if !closed {
				return "", false
			}
			out.Write(quote(value))
			text = rest
			continue
		}
		token := gemmaToken.FindString(text)
		if token == "" {
			return "", false
		}
		text = text[len(token):]
		switch {
		case strings.ContainsAny(token, "{["):
			depth++
			out.WriteString(token)
		case strings.ContainsAny(token, "}]"):
			out.WriteString(token)
			if depth--; depth == 0 {
				return out.String(), json.Valid([]byte(out.String()))
			}
		case strings.HasPrefix(strings.TrimSpace(text), ":") || !json.Valid([]byte(token)) && strings.TrimSpace(token) != "" && token != "," && token != ":":
			name := token
			if plain, err := strconv.Unquote(token); err == nil {
				name = plain
			}
			out.Write(quote(name))
		default:
			out.WriteString(token)
		}
	}
	return "", false
}
