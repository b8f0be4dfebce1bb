package toolgroups

import (
	"encoding/json"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Bounds of the description of a call and of an argument in it, in characters.
const maxActivity, maxActivityArgument = 60, 32

// placeholder matches the placeholder of an argument in [Tool.Activity].
var placeholder = regexp.MustCompile(`\s*\{([a-zA-Z0-9_]+)\}`)

// verbs maps the verbs in tool names to the participles shown to users.
var verbs = map[string]string{
	"add": "adding", "append": "adding", "apply": "applying", "archive": "archiving", "ask": "asking", "analyze": "analysing",
	"browse": "browsing", "build": "building", "call": "calling", "cancel": "cancelling", "check": "checking", "clear": "clearing",
	"close": "closing", "comment": "commenting on", "complete": "completing", "convert": "converting", "copy": "copying",
	"count": "counting", "create": "creating", "delete": "deleting", "describe": "looking at", "download": "downloading",
	"edit": "editing", "execute": "running", "export": "exporting", "extract": "reading", "fetch": "fetching", "find": "searching",
	"generate": "making", "get": "looking up", "import": "importing", "insert": "inserting", "inspect": "looking at",
	"invite": "inviting", "list": "listing", "load": "loading", "lookup": "looking up", "make": "making", "mark": "marking",
	"merge": "merging", "modify": "changing", "move": "moving", "open": "opening", "post": "posting", "publish": "publishing",
	"query": "asking", "read": "reading", "remove": "removing", "rename": "renaming", "render": "drawing", "reply": "replying",
	"respond": "replying", "restore": "restoring", "run": "running", "save": "saving", "schedule": "scheduling",
	"search": "searching", "send": "sending", "set": "setting", "share": "sharing", "start": "starting", "stop": "stopping",
	"submit": "submitting", "summarize": "summing up", "sync": "syncing", "translate": "translating", "trash": "removing",
	"untrash": "restoring", "update": "updating", "upload": "uploading", "validate": "checking", "view": "looking at",
	"wait": "waiting", "write": "writing",
}

// subjects are the arguments that best identify a call, best first.
var subjects = []string{"path", "file_path", "file", "filename", "url", "title", "subject", "query", "name", "summary"}

// DescribeCall describes a call to users in one line of at most 60 characters, with [Tool.Activity]
// or else the name of the tool. mask masks the secrets in a value; nil leaves values unchanged.
func DescribeCall(tool Tool, arguments json.RawMessage, mask func(string) string) string {
	var given map[string]any
	_ = json.Unmarshal(GivenTo(tool, arguments), &given)
	about := func(name string) string {
		value, _ := given[name].(string)
		if mask != nil && value != "" {
			value = mask(value)
		}
		return shortenArgument(name, value)
	}
	if tool.Activity != "" {
		return oneLine(placeholder.ReplaceAllStringFunc(tool.Activity, func(place string) string {
			value := about(strings.Trim(strings.TrimSpace(place), "{}"))
			if value == "" {
				return ""
			}
			return place[:strings.IndexByte(place, '{')] + value
		}), maxActivity)
	}
	text := nameInWords(tool.Name)
	for _, name := range subjects {
		if value := about(name); value != "" {
			return oneLine(text+": "+value, maxActivity)
		}
	}
	return oneLine(text, maxActivity)
}

// nameInWords turns the name of a tool into words: calendar_create_event becomes "creating event
// (calendar)".
func nameInWords(name string) string {
	words := strings.FieldsFunc(splitCamelCase(name), func(r rune) bool { return r == '_' || r == '-' || r == ' ' || r == '.' })
	at := slices.IndexFunc(words, func(w string) bool { return verbs[w] != "" })
	if at < 0 {
		return "using " + strings.Join(words, " ")
	}
	before, after := strings.Join(words[:at], " "), strings.Join(words[at+1:], " ")
	switch {
	case after == "":
		return verbs[words[at]] + " " + before
	case before == "":
		return verbs[words[at]] + " " + after
	}
	return verbs[words[at]] + " " + after + " (" + before + ")"
}

// splitCamelCase turns createEvent into "create event".
func splitCamelCase(name string) string {
	var b strings.Builder
	small := false
	for _, r := range name {
		if unicode.IsUpper(r) && small {
			b.WriteByte(' ')
		}
		small = unicode.IsLower(r)
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// shortenArgument shortens an argument for users: a file path to its base name, a URL to its host and
// path.
func shortenArgument(name, value string) string {
	if u, err := url.Parse(strings.TrimSpace(value)); err == nil && u.Host != "" {
		value = u.Hostname() + strings.TrimRight(u.Path, "/")
	} else if _, rest, is := strings.Cut(value, "://"); is {
		host, _, _ := strings.Cut(rest, "/") // the URL does not parse, because a part of it was masked
		value = host[strings.LastIndexByte(host, '@')+1:]
	} else if strings.Contains(name, "path") || strings.Contains(name, "file") {
		if value = strings.TrimRight(strings.TrimSpace(value), "/"); value != "" {
			value = path.Base(value)
		}
	}
	return oneLine(value, maxActivityArgument)
}
