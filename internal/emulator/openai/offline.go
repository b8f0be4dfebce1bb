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
	made        *[]result                  // calls made in this turn that no wish has taken yet, with their results
	loads       []result                   // those that make tools available, which hold for all wishes
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
	groupLine   = regexp.MustCompile(`(?m)^- ([A-Za-z0-9_-]+): (.*)$`)
)

// tryAgain matches the messages of buttons that ask to repeat the previous request, or its interrupted call.
var tryAgain = regexp.MustCompile(`^Please (try|make only the interrupted call of .+) again\.$`)

// toolPicturesPrefix begins a message with pictures from tools, which no user wrote.
const toolPicturesPrefix = "[made by tools: "

func newTurn(req Request) *turn {
	t := &turn{tools: map[string]bool{}, schemas: map[string]json.RawMessage{}, written: writtenFiles(req.Messages), made: new([]result)}
	for _, tool := range req.Tools {
		t.tools[tool.Name], t.schemas[tool.Name] = true, tool.Parameters
	}
	last, before := -1, -1
	for i, m := range req.Messages {
		switch {
		case m.Role == "system" || m.Role == "developer":
			t.groups = append(t.groups, parseGroups(m.Content)...)
		case m.Role == "user" && !strings.HasPrefix(m.Content, toolPicturesPrefix):
			last, before = i, last
			t.given = append(t.given, gather(m.Content)...)
			t.sentFiles = allIn(fileMark, m.Content)
			t.files = append(t.files, t.sentFiles...)
		}
	}
	if last >= 0 {
		t.said = inEnglish(plainText(req.Messages[last].Content))
		if tryAgain.MatchString(t.said) && before >= 0 {
			t.said = inEnglish(plainText(req.Messages[before].Content))
		}
		t.whole = t.said
		t.picture = newestPicture(req.Messages[:last+1])
		// What the turn itself changes must not change what its wishes mean.
		t.notes = savedNotes(req.Messages[:last+1])
		t.before, t.asked = lastAsked(req.Messages[:last])
		t.last = lastMade(req.Messages[max(0, before):last])
	}
	t.addBridgeTools(req.Messages)
	for _, m := range req.Messages[last+1:] {
		t.rounds += min(1, len(m.ToolCalls))
	}
	for _, r := range resultsIn(req.Messages[last+1:]) {
		if r.call.Name == loadTool || r.call.Name == searchTool {
			t.loads = append(t.loads, r)
		} else {
			*t.made = append(*t.made, r)
		}
	}
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

// resultsIn pairs the calls of messages with their results.
func resultsIn(messages []Message) (all []result) {
	for _, m := range messages {
		for _, c := range m.ToolCalls {
			all = append(all, result{unwrapCall(c), "(the tool said nothing)"})
		}
		// Several calls can have the same id, because some models begin again at zero. The newest one
		// counts.
		for i := len(all) - 1; i >= 0 && m.Role == "tool"; i-- {
			if all[i].call.ID == m.ToolCallID {
				all[i].text = cmp.Or(strings.TrimSpace(m.Content), all[i].text)
				break
			}
		}
	}
	return all
}

// parseGroups parses the list of tool groups in a system prompt.
func parseGroups(prompt string) (groups []group) {
	_, list, _ := strings.Cut(prompt, "## Available Tool Groups\n")
	list, _, _ = strings.Cut(list, "\n---\n")
	list, _, _ = strings.Cut(list, "\n## ")
	for _, m := range groupLine.FindAllStringSubmatch(list, -1) {
		groups = append(groups, group{m[1], m[2]})
	}
	return groups
}

// hasWord reports whether the message contains one of the words.
func (t *turn) hasWord(words ...string) bool {
	said := strings.FieldsFunc(strings.ToLower(t.said), isNoWord)
	return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(said, w) })
}

// call returns a call of a tool.
func call(tool string, args map[string]any) ToolCall {
	b, err := json.Marshal(args)
	if args == nil || err != nil {
		b = []byte("{}")
	}
	return ToolCall{Name: tool, Arguments: string(b)}
}

// stop ends the work on a wish before its answer: with calls whose results it needs, or with a text instead.
type stop Reply

// attempt works on the wish up to its answer, or to what stops it. A wish begins again at each request, and takes
// the results of the calls that it has made.
func (t *turn) attempt() (reply Reply) {
	defer func() {
		switch stopped := recover().(type) {
		case nil:
		case stop:
			reply = Reply(stopped)
		default:
			panic(stopped)
		}
	}()
	return Reply{Text: t.answer()}
}

// use returns the result of a tool.
func (t *turn) use(tool string, args map[string]any) string { return t.useAll(call(tool, args))[0] }

// useAll returns the results of calls, and stops for those that were not made yet.
func (t *turn) useAll(calls ...ToolCall) (results []string) {
	var missing []ToolCall
	for _, c := range calls {
		if i := slices.IndexFunc(*t.made, func(r result) bool { return r.call.Name == c.Name }); i >= 0 {
			results = append(results, (*t.made)[i].text)
			*t.made = slices.Delete(*t.made, i, i+1)
		} else {
			missing = append(missing, c)
		}
	}
	if len(missing) > 0 {
		t.stopFor(missing...)
	}
	return results
}

// stopFor stops for calls, if the tools are there and calls have not led nowhere for long.
func (t *turn) stopFor(calls ...ToolCall) {
	for _, c := range calls {
		if !t.tools[c.Name] {
			panic(stop{Text: fmt.Sprintf("That needs the tool `%s`, which I do not have here.", c.Name)})
		}
	}
	if t.rounds >= maxRounds {
		panic(stop{Text: "I have tried several times without getting further, so I stop here."})
	}
	panic(stop{Calls: calls})
}

// useOf returns the result of a tool of a group, which it loads if necessary.
func (t *turn) useOf(group, tool string, args map[string]any) string {
	t.load(group, tool)
	return t.use(tool, args)
}

// do uses a tool of a group, or with an empty group one that is always there, and words its result: the answer to one
// that begins like a success, and else why not.
func (t *turn) do(group, tool string, args map[string]any, success, trouble, answer string) string {
	if group != "" {
		t.load(group, tool)
	}
	if text := t.use(tool, args); !strings.HasPrefix(text, success) {
		return "I could not " + trouble + ": " + rewordForUser(text)
	}
	return answer
}

// load makes the tool of a group available.
func (t *turn) load(group, tool string) {
	if t.tools[tool] {
		return
	}
	if t.listedTools[searchTool] && !slices.ContainsFunc(t.loads, func(r result) bool { return r.call.Name == searchTool }) {
		panic(stop{Calls: []ToolCall{call(searchTool, map[string]any{"query": strings.ReplaceAll(tool, "_", " ")})}})
	}
	loaded, tried := t.loadResult(group)
	text := fmt.Sprintf("I could not load the tool group `%s`: %s", group, rewordForUser(loaded))
	switch {
	case strings.HasPrefix(loaded, "Loaded "):
		text = fmt.Sprintf("The tool group `%s` is loaded, but not with what that needs. "+cannot+setKey, group)
	case tried:
	case !t.lists(group):
		text = fmt.Sprintf("That needs the tool group `%s`, which is not set up here.", group)
	case !t.tools[loadTool]:
		text = fmt.Sprintf("That needs the tool group `%s`, and I cannot load it here.", group)
	default:
		t.stopFor(call(loadTool, map[string]any{"group_name": group}))
	}
	panic(stop{Text: text})
}

// loadResult returns what came of loading a group.
func (t *turn) loadResult(group string) (text string, tried bool) {
	for _, r := range t.loads {
		if r.call.Name == loadTool && strings.Contains(r.call.Arguments, `"`+group+`"`) {
			return r.text, true
		}
	}
	return "", false
}

func (t *turn) lists(name string) bool {
	return slices.ContainsFunc(t.groups, func(g group) bool { return g.name == name })
}

// can reports whether a tool is there, or its group listed.
func (t *turn) can(group, tool string) bool { return t.tools[tool] || t.lists(group) }

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

// cannot begins the answer to what the rules cannot do.
const cannot = "I cannot do that without a real model: "

// setKey says why, and what helps.
const setKey = "this demo answers by rules, not by an AI. Set OPENAI_API_KEY for a real model."

// decline says that the rules cannot do what the message wants.
func (t *turn) decline() string { return cannot + setKey + " \"What can you do?\" lists what I know." }

// abilities returns a sentence that lists what the user can ask for with the available tools.
func (t *turn) abilities() string {
	var list []string
	for _, a := range []struct {
		can  bool
		what string
	}{
		{t.can("pdf", "pdf_info"), "read a PDF and answer from it"},
		{t.can("documents", "read_document"), "read Word, Excel and other documents"},
		{true, "answer from a text or a table that you send"},
		{t.can("images", "generate_image"), "draw (\"draw a cat\")"},
		{t.can("scheduled_tasks", "schedule_task"), "remind you (\"remind me in 1 minute to stretch\")"},
		{t.can("background", "start_background_task"), "work while we go on (\"in the background, what time is it in Tokyo?\")"},
		{t.can("questions", "ask_user"), "ask you with buttons (\"ask me which city: Rome or Oslo\")"},
		{t.tools["save_memory"], "remember things (\"remember that my cat is called Minka\")"},
		{t.tools["js_eval"], "calculate (\"17*23\")"},
		{t.can("documents", "write_document"), "make a workbook or a document (\"make a spreadsheet: item, cost; rent, 900\")"},
		{t.tools["webfetch"], "sum up a web page"},
		{t.tools["get_current_time"], "tell the time (\"what time is it in Tokyo?\")"},
		{t.tools["read_file"] && t.tools["write_file"], "keep lists and files (\"add milk to my shopping list\")"},
		{t.tools["exec"], "run a command (\"run echo hello\")"},
		{t.can("google_gmail", ""), "look at a sample Google account (\"check my email\")"},
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
