package interact

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/bridge/turn"
	"oneclaw/internal/wording"
	"oneclaw/toolgroups"
)

const (
	// maxOnCard bounds the effect and the arguments on the card itself, in characters; longer ones are shown in full
	// in messages above it.
	maxOnCard = 2000
	// maxArguments bounds the arguments, and the effect, that an approver has to check, in characters.
	maxArguments = 30_000
	// maxDescription bounds the description of the tool on the card, in characters.
	maxDescription = 200
	// MaxName bounds the name of a user or a task, in characters, and maxTold what a task is told.
	MaxName, maxTold = 60, 600
)

// trigger says in Markdown what has begun a turn that no message of a user has begun or joined: the approver has to
// know what nobody asked for, and what comes from outside.
func trigger(j *queue.Run) string {
	task, what, title := turn.TaskOf(j), "", ""
	if task != nil {
		title = task.Title
	}
	switch result, ok := j.Args.(*receipts.Result); {
	case ok && turn.IsUnasked(j):
		what, title = "the result of the background task", result.Title
	case task == nil:
		return ""
	case turn.IsBackground(j):
		what = "the background task"
	case task.Hook != "":
		what = "a delivery to the webhook"
	default:
		what = "the scheduled task"
	}
	text := what + " " + wording.EscapeRevealed(wording.Quote(title, MaxName))
	if turn.IsBackground(j) && task.Outside {
		text += ", which is told " + ShowTask(j)
	}
	return text
}

// ShowTask returns what a background task is told, in Markdown, for where others may have worded what its title stands
// for. The card that asks whether it may begin has shown all of it.
func ShowTask(j *queue.Run) string {
	return wording.EscapeRevealed(wording.Quote(j.Message.Text, maxTold))
}

// commandTool is the tool that runs a command.
const commandTool = "exec"

// approvalQuestion returns what the card of a call, or of several that would open addresses, asks. changed is how
// many things the call lists to change.
func approvalQuestion(tool string, changed int, addresses []*addressCall) string {
	what := wording.InlineCode(tool)
	if tool == commandTool {
		what = "this command"
	}
	switch servers, n := serverTools(addresses), len(addresses); {
	case n == 0 && changed > 1:
		return fmt.Sprintf("May I run %s on %d things at once?", what, changed)
	case n == 0:
		return fmt.Sprintf("May I run %s?", what)
	case servers != "" && n == 1:
		return fmt.Sprintf("May I run %s with this address?", what)
	case servers != "":
		return fmt.Sprintf("May I run %s with these %d addresses?", servers, n)
	case n == 1:
		return "May I open this address?"
	default:
		return fmt.Sprintf("May I open these %d addresses?", n)
	}
}

// whatStays says of a call in a shared chat what others there get of it.
func whatStays(tool toolgroups.Tool) string {
	const stays = "What it returns stays in this chat, so everybody here can ask me for all of it.\n\n"
	switch {
	case tool.Personal:
		return "It uses your account. " + stays
	case tool.Role >= toolgroups.RoleAdmin && tool.Effect == toolgroups.ReadOnly:
		return stays
	}
	return ""
}

// approvalCard returns the card that asks whether a call may run.
func approvalCard(j *queue.Run, r *request, tool toolgroups.Tool, changed int, arguments string, addresses []*addressCall, timeout time.Duration, format func(platform, text string) string) Card {
	card := Card{Kind: ApprovalKind, KeepCommands: true, QuotedUser: r.Requester, ReplyTo: j.Message.ReplyTarget(), Choices: [][]Choice{{
		{Label: "Allow once", Value: receipts.ChoiceAllow, Style: chats.StylePrimary},
		{Label: "Deny", Value: receipts.ChoiceDeny, Style: chats.StyleDanger},
	}}}
	if r.Approvers != ApproversAdmins && !r.ByChat && tool.Role < toolgroups.RoleAdmin {
		card.Choices[0][0].Reaction, card.Choices[0][1].Reaction = chats.FeedbackGood, chats.FeedbackBad
	}
	if turn.TaskOf(j) != nil || r.Direct {
		card.ReplyTo = ""
	}
	var text strings.Builder
	text.WriteString("**" + approvalQuestion(r.Tool, changed, addresses) + "**")
	if began := trigger(j); began != "" {
		fmt.Fprintf(&text, " It is for %s.", began)
	}
	switch {
	case r.Why != "":
		fmt.Fprintf(&text, "\n\nI ask because %s.\n\n", r.Why)
	case r.Tool == commandTool: // the question says what it is
		text.WriteString("\n\n")
		arguments = strings.TrimPrefix(arguments, wording.InlineCode("command")+":\n\n")
	default:
		says := firstSentence(tool.Description)
		if tool.External {
			says = wording.Quote(says, maxDescription)
		}
		fmt.Fprintf(&text, "\n\n_%s_\n\n", wording.EscapeRevealed(says))
		if !r.Direct {
			text.WriteString(whatStays(tool))
		}
	}
	shown := arguments
	if r.Effect != "" {
		shown = wording.Fence(r.Effect) + "\n\n" + arguments
	}
	if utf8.RuneCountInString(shown) > maxOnCard {
		card.Lead = fmt.Sprintf("**What %s would do:**\n\n%s", wording.InlineCode(r.Tool), shown)
		shown = "What it would do is in the messages above. Please read them to the end."
	}
	text.WriteString(shown)
	requester := showName(cmp.Or(j.Message.UserName, j.Message.User))
	who := requester + " or an administrator"
	switch {
	case r.Approvers == ApproversAdmins:
		who = "An administrator"
	case r.Direct:
		who = "You"
	case r.ByChat:
		who = "An administrator of this chat who may talk to me"
	case r.Approvers == ApproversRequester:
		who = "Only " + requester
	}
	card.Text = text.String()
	card.Footer = fmt.Sprintf("%s can allow it within %s; until then I wait.", who, wording.DurationInWords(timeout))
	if r.Lasting != nil {
		if r.Direct {
			requester = "" // nobody else is answered here
		}
		label := "Allow here until /clear"
		if r.Why != "" {
			label = "Allow this address pattern"
		}
		r.Lasting.offer(&card, label, requester, func(text string) string { return format(r.Chat.Platform, text) })
	}
	return card
}

// showName returns the name of a person in Markdown. That person chose it, so it stands in quotes: it cannot go on as a
// sentence of the card.
func showName(name string) string { return wording.EscapeRevealed(wording.Quote(name, MaxName)) }

// serverTools names the tools of calls in Markdown if one of a server, which may do more with an address than open
// it, is among them.
func serverTools(calls []*addressCall) string {
	if !slices.ContainsFunc(calls, func(one *addressCall) bool { return one.tool.External }) {
		return ""
	}
	var names []string
	for _, one := range calls {
		if name := wording.InlineCode(one.tool.Name); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, " and ")
}

// firstSentence returns the beginning of a tool's description, on one line.
func firstSentence(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if i := strings.Index(line, ". "); i >= 0 {
		line = line[:i+1]
	}
	return wording.Clip(line, maxDescription)
}

var plainNamePattern = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// formatCall is [formatArguments], and names those arguments that the tool of a server does not declare: the server may
// know them, or do something else than they say.
func formatCall(tool toolgroups.Tool, raw json.RawMessage) (string, bool) {
	shown, whole := formatArguments(raw)
	if !whole {
		return shown, false
	}
	var names []string
	for _, way := range toolgroups.Undeclared(tool, raw) {
		names = append(names, wording.InlineCode(way))
	}
	if len(names) > 0 {
		shown += "\n\nNot among the parameters of this tool, so it may ignore them: " + strings.Join(names, ", ")
	}
	return shown, utf8.RuneCountInString(shown) <= 2*maxArguments
}

// formatArguments formats the arguments of a call completely and exactly, as Markdown: each under its
// name, strings with their line breaks. Texts within them that are written with escapes follow as they are read. It
// returns false if they are too long, or nested too deeply.
func formatArguments(raw json.RawMessage) (string, bool) {
	if utf8.RuneCount(raw) > maxArguments {
		return "", false
	}
	if len(bytes.TrimSpace(raw)) == 0 || string(bytes.TrimSpace(raw)) == "{}" {
		return "It has no arguments.", true
	}
	fields, ok := argumentFields(raw)
	var text strings.Builder
	var escaped []argumentField
	if ok {
		for _, f := range fields {
			fmt.Fprintf(&text, "%s:\n\n%s\n\n", wording.InlineCode(f.name), wording.Fence(f.value))
			within, shallow := escapedTexts(wording.InlineCode(f.name), []byte(f.value), 0)
			if !shallow {
				return "", false
			}
			escaped = append(escaped, within...)
		}
	} else {
		text.WriteString(wording.Fence(string(raw)) + "\n\n")
		if escaped, ok = escapedTexts("", raw, 0); !ok {
			return "", false
		}
	}
	for _, f := range escaped {
		fmt.Fprintf(&text, "In %s it says:\n\n%s\n\n", cmp.Or(f.name, "the arguments"), wording.Fence(f.value))
	}
	shown := strings.TrimSpace(text.String())
	return shown, utf8.RuneCountInString(shown) <= 2*maxArguments
}

// maxNested bounds how deep texts within arguments are looked for, and maxKey what is shown of each name on the way.
const maxNested, maxKey = 50, 60

// escapedTexts returns the texts within a value that are written with escapes, with the way to them in Markdown: whoever
// gets the value reads them, and a person reads no \u0065. JSON that is a text of the value is looked into as well. It
// returns false if the value is nested too deeply.
func escapedTexts(path string, value []byte, depth int) (texts []argumentField, ok bool) {
	value = bytes.TrimSpace(value)
	switch {
	case !json.Valid(value):
		return nil, true
	case depth > maxNested:
		return nil, false
	case value[0] == '"':
		var text string
		if json.Unmarshal(value, &text) != nil || !bytes.ContainsRune(value, '\\') {
			return nil, true
		}
		within, ok := escapedTexts(path, []byte(text), depth+1)
		return append([]argumentField{{path, text}}, within...), ok
	case value[0] != '{' && value[0] != '[':
		return nil, true
	}
	decoder := json.NewDecoder(bytes.NewReader(value))
	_, err := decoder.Token()
	for n := 1; err == nil && decoder.More(); n++ {
		key, escaped := strconv.Itoa(n), false
		if value[0] == '{' {
			var name json.Token
			from := decoder.InputOffset()
			name, err = decoder.Token()
			key, _ = name.(string)
			escaped = bytes.ContainsRune(value[from:decoder.InputOffset()], '\\')
		}
		var inner json.RawMessage
		if err = errors.Join(err, decoder.Decode(&inner)); err != nil {
			break
		}
		name := wording.Clip(key, maxKey)
		to := strings.TrimSpace(path + " " + wording.InlineCode(name))
		if escaped && name != key {
			texts = append(texts, argumentField{path, key})
		}
		if escaped {
			texts = append(texts, argumentField{to, string(inner)})
		}
		within, ok := escapedTexts(to, inner, depth+1)
		if !ok {
			return nil, false
		}
		texts = append(texts, within...)
	}
	return texts, err == nil
}

type argumentField struct{ name, value string }

// argumentFields splits an object into its fields, in their order, including repeated keys. It returns
// false for any other value, and for an object whose keys are not plain names.
func argumentFields(raw json.RawMessage) ([]argumentField, bool) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if open, err := decoder.Token(); err != nil || open != json.Delim('{') {
		return nil, false
	}
	var fields []argumentField
	for decoder.More() {
		key, err := decoder.Token()
		name, _ := key.(string)
		var value json.RawMessage
		if err != nil || !plainNamePattern.MatchString(name) || decoder.Decode(&value) != nil {
			return nil, false
		}
		var text string
		if value[0] != '"' || json.Unmarshal(value, &text) != nil {
			var indented bytes.Buffer
			if json.Indent(&indented, value, "", "  ") != nil {
				return nil, false
			}
			text = indented.String()
		}
		fields = append(fields, argumentField{name, text})
	}
	if _, err := decoder.Token(); err != nil || decoder.More() {
		return nil, false
	}
	return fields, true
}
