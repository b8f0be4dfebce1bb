package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// maxRounds bounds how often [Offline] calls tools for one message before it answers without further
// calls.
const maxRounds = 16

// loadTool makes the tools of a group callable.
const loadTool = "load_tool_group"

// Offline is a rule-based [Responder] that shows the product without a key. It uses only the request.
// It calls only offered tools, loads a group only if the prompt lists it and its tools
// are missing, and says plainly what it cannot do. It understands some English: wishes that a tool fulfils,
// and questions that words of a given text answer.
type Offline struct{}

// Reply does the wishes of the user's last message.
func (Offline) Reply(_ context.Context, req Request) (Reply, error) {
	t := newTurn(req)
	if t.said == "" && len(t.given) == 0 {
		return Reply{Text: "I did not get any text. Ask me something, or send me a PDF."}, nil
	}
	reply := t.doAll()
	reply.Calls = t.wrapCalls(reply.Calls)
	return reply, nil
}

// rule is a kind of request and the function that answers it.
type rule struct {
	matches bool
	answer  func() Reply
}

// turn is the content of a request: the message to answer, and the tool results since that message.
type turn struct {
	said        string          // the wish: the user's last message, or a part of it, without marks
	whole       string          // the whole message
	sentFiles   []string        // files sent with it
	files       []string        // all files of the conversation, the newest last
	picture     string          // the newest picture of the conversation
	tools       map[string]bool // callable tools
	listedTools map[string]bool // callable tools that are in the tools array
	groups      []group
	notes       []string                   // notes that the user saved
	given       []given                    // what the user has given, the newest last
	written     []given                    // text files that were written
	before      string                     // what the message before asks for, with what has corrected it
	asked       string                     // what the bot said last
	last        made                       // what came of the message before
	corrects    bool                       // the message asks for another time of that
	schemas     map[string]json.RawMessage // parameters of the tools in the tools array
	results     []result                   // calls made in this turn, with their results
	rounds      int
}

type group struct{ name, description string }

type result struct {
	call ToolCall
	text string
}

var (
	fileMark   = regexp.MustCompile(`(?m)^\[file: (.+)\]$`)
	senderMark = regexp.MustCompile(`^\[[^\]\n]{1,64}\] `)
	joinedMark = regexp.MustCompile(`\n\n\[[^\]\n:]{1,64}\] `)
	// mentionMark is what is left of the mention of a bot in a message without words.
	mentionMark = regexp.MustCompile(`(?m)^@\w+[ \t]*(?:\n|$)`)
	groupLine   = regexp.MustCompile(`^- ([A-Za-z0-9_-]+): (.*)$`)
)

// tryAgain matches the messages of buttons that ask to repeat the previous request, or its interrupted call.
var tryAgain = regexp.MustCompile(`^Please (try|make only the interrupted call of .+) again\.$`)

// toolPicturesPrefix begins a message with pictures from tools, which no user wrote.
const toolPicturesPrefix = "[made by tools: "

func newTurn(req Request) *turn {
	t := &turn{tools: map[string]bool{}, schemas: map[string]json.RawMessage{}, written: writtenFiles(req.Messages)}
	for _, tool := range req.Tools {
		t.tools[tool.Name], t.schemas[tool.Name] = true, tool.Parameters
	}
	last, before := -1, -1
	for i, m := range req.Messages {
		switch m.Role {
		case "system", "developer":
			t.groups = append(t.groups, parseGroups(m.Content)...)
		case "user":
			if strings.HasPrefix(m.Content, toolPicturesPrefix) {
				continue
			}
			last, before = i, last
			t.given = append(t.given, gather(m.Content)...)
			for _, mark := range fileMark.FindAllStringSubmatch(m.Content, -1) {
				t.files = append(t.files, mark[1])
			}
		}
	}
	if last < 0 {
		t.addBridgeTools(nil)
		return t
	}
	text := req.Messages[last].Content
	for _, mark := range fileMark.FindAllStringSubmatch(text, -1) {
		t.sentFiles = append(t.sentFiles, mark[1])
	}
	if text = inEnglish(plainText(text)); tryAgain.MatchString(text) && before >= 0 {
		text = inEnglish(plainText(req.Messages[before].Content))
	}
	t.said, t.whole = text, text
	t.picture = newestPicture(req.Messages[:last+1])
	// What the turn itself changes must not change what its wishes mean.
	t.notes = savedNotes(req.Messages[:last+1])
	t.before, t.asked = lastAsked(req.Messages[:last])
	t.last = lastMade(req.Messages[max(0, before):last])
	t.readResults(req.Messages[last+1:])
	t.addBridgeTools(req.Messages)
	return t
}

// plainText returns a user's message without what it quotes, and without the marks of files, sender and
// memory.
func plainText(text string) string {
	text, _, _ = strings.Cut(text, "\n[From memory]\n")
	text = quoteBlock.ReplaceAllString(text, "")
	text = strings.TrimSpace(spokenLine.ReplaceAllString(fileMark.ReplaceAllString(text, ""), ""))
	if !strings.HasPrefix(text, "[Summary of") {
		text = senderMark.ReplaceAllString(text, "")
		// Messages in quick succession are one, each with its sender.
		text = strings.TrimSpace(mentionMark.ReplaceAllString(joinedMark.ReplaceAllString(text, "\n\n"), ""))
	}
	return text
}

// readResults pairs the calls made since the user's message with their results.
func (t *turn) readResults(messages []Message) {
	for _, m := range messages {
		if m.Role == "assistant" && len(m.ToolCalls) > 0 {
			t.rounds++
			for _, c := range m.ToolCalls {
				t.results = append(t.results, result{call: c})
			}
			continue
		}
		// Several calls can have the same id, because some models begin again at zero. The newest one
		// counts.
		for i := len(t.results) - 1; i >= 0 && m.Role == "tool"; i-- {
			if t.results[i].call.ID == m.ToolCallID {
				t.results[i].text = m.Content
				break
			}
		}
	}
}

// parseGroups parses the list of tool groups in a system prompt.
func parseGroups(prompt string) []group {
	_, list, ok := strings.Cut(prompt, "## Available Tool Groups\n")
	if !ok {
		return nil
	}
	var groups []group
	for line := range strings.SplitSeq(list, "\n") {
		if strings.HasPrefix(line, "## ") || line == "---" {
			break
		}
		if m := groupLine.FindStringSubmatch(line); m != nil {
			groups = append(groups, group{m[1], m[2]})
		}
	}
	return groups
}

// toolResult returns the newest result of a tool in this turn.
func (t *turn) toolResult(tool string) (string, bool) {
	for _, v := range slices.Backward(t.results) {
		if v.call.Name == tool {
			return v.text, true
		}
	}
	return "", false
}

// hasWord reports whether the message contains one of the words.
func (t *turn) hasWord(words ...string) bool {
	said := strings.FieldsFunc(strings.ToLower(t.said), isNoWord)
	return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(said, w) })
}

// encodeArguments encodes the arguments of a call.
func encodeArguments(args map[string]any) string {
	if args == nil {
		return "{}"
	}
	b, err := json.Marshal(args)
	if err != nil {
		return "{}"
	}
	return string(b)
}

// useTool calls a tool once and then answers with its result.
func (t *turn) useTool(tool string, args map[string]any, answer func(string) string) Reply {
	if text, ok := t.toolResult(tool); ok {
		return Reply{Text: answer(cmp.Or(strings.TrimSpace(text), "(the tool said nothing)"))}
	}
	return t.call(tool, args)
}

// call calls a tool, if it is there and calls have not led nowhere for long.
func (t *turn) call(tool string, args map[string]any) Reply {
	switch {
	case !t.tools[tool]:
		return Reply{Text: fmt.Sprintf("That needs the tool `%s`, which I do not have here.", tool)}
	case t.rounds >= maxRounds:
		return Reply{Text: "I have tried several times without getting further, so I stop here."}
	}
	return Reply{Calls: []ToolCall{{Name: tool, Arguments: encodeArguments(args)}}}
}

// resulting words the result of a tool: an answer to one that begins like a success, and else why not.
func resulting(success, trouble, answer string) func(string) string {
	return func(text string) string {
		if strings.HasPrefix(text, success) {
			return answer
		}
		return "I could not " + trouble + ": " + rewordForUser(text)
	}
}

// ensureTool makes the tool of a group available. It returns a reply if a call or a message to the user
// has to come first.
func (t *turn) ensureTool(groupName, tool string) (Reply, bool) {
	if t.tools[tool] {
		return Reply{}, false
	}
	if reply, found := t.searchForTool(tool); found {
		return reply, true
	}
	for _, d := range t.results {
		if d.call.Name != loadTool || !strings.Contains(d.call.Arguments, `"`+groupName+`"`) {
			continue
		}
		if strings.HasPrefix(d.text, "Loaded ") {
			return Reply{Text: fmt.Sprintf("The tool group `%s` is loaded, but not with what that needs. "+cannot+setKey, groupName)}, true
		}
		return Reply{Text: fmt.Sprintf("I could not load the tool group `%s`: %s", groupName, rewordForUser(d.text))}, true
	}
	listed := slices.ContainsFunc(t.groups, func(g group) bool { return g.name == groupName })
	switch {
	case !listed:
		return Reply{Text: fmt.Sprintf("That needs the tool group `%s`, which is not set up here.", groupName)}, true
	case !t.tools[loadTool]:
		return Reply{Text: fmt.Sprintf("That needs the tool group `%s`, and I cannot load it here.", groupName)}, true
	}
	return t.call(loadTool, map[string]any{"group_name": groupName}), true
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

// cannot begins the answer to what the rules cannot do.
const cannot = "I cannot do that without a real model: "

// setKey says why, and what helps.
const setKey = "this demo answers by rules, not by an AI. Set OPENAI_API_KEY for a real model."

// decline says that the rules cannot do what the message wants.
func (t *turn) decline() Reply {
	return Reply{Text: cannot + setKey + " \"What can you do?\" lists what I know."}
}

// abilities returns a sentence that lists what the user can ask for with the available tools.
func (t *turn) abilities() string {
	var list []string
	for _, a := range []struct {
		can  bool
		what string
	}{
		{t.hasGroup("pdf", "pdf_info"), "read a PDF and answer from it"},
		{t.hasGroup("documents", "read_document"), "read Word, Excel and other documents"},
		{true, "answer from a text or a table that you send"},
		{t.hasGroup("images", "generate_image"), "draw (\"draw a cat\")"},
		{t.hasGroup("scheduled_tasks", "schedule_task"), "remind you (\"remind me in 1 minute to stretch\")"},
		{t.hasGroup("background", "start_background_task"), "work while we go on (\"in the background, what time is it in Tokyo?\")"},
		{t.tools["save_memory"], "remember things (\"remember that my cat is called Minka\")"},
		{t.tools["js_eval"], "calculate (\"17*23\")"},
		{t.hasGroup("documents", "write_document"), "make a workbook or a document (\"make a spreadsheet: item, cost; rent, 900\")"},
		{t.tools["webfetch"], "sum up a web page"},
		{t.tools["get_current_time"], "tell the time (\"what time is it in Tokyo?\")"},
		{t.tools["read_file"] && t.tools["write_file"], "keep lists and files (\"add milk to my shopping list\")"},
		{t.tools["exec"], "run a command (\"run echo hello\")"},
		{t.hasGroup("google_gmail", ""), "look at a sample Google account (\"check my email\")"},
	} {
		if a.can {
			list = append(list, a.what)
		}
	}
	if len(list) == 1 {
		return "I can " + list[0] + "."
	}
	return "I can " + strings.Join(list[:len(list)-1], ", ") + " and " + list[len(list)-1] + "."
}

// rewordForUser rewords a tool's result for the user, without hints for the model.
func rewordForUser(text string) string {
	text = strings.TrimSpace(text)
	switch {
	case strings.Contains(text, "has connected no Google account"):
		return "No Google account is connected. Send `/connect google gmail calendar sheets` in a direct chat and open the link."
	case strings.Contains(text, "You said no"), strings.Contains(text, "was not allowed"):
		return "OK, I did not run it."
	case strings.Contains(text, "This call was interrupted"):
		return "I was interrupted while I did that, so I do not know whether it is done."
	}
	line := firstLine(text)
	for _, hint := range modelHints {
		if at := strings.Index(line, hint); at > 0 {
			return strings.TrimSpace(line[:at])
		}
	}
	return text
}

// modelHints are beginnings of sentences that are instructions to the model.
var modelHints = []string{" Ask the user", " Tell the user", " Do not repeat", " Use an IANA", " Call ", " Load ", " Try "}
