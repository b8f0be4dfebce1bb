package openai

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

var (
	looksUp    = regexp.MustCompile(`(?i)^(?:(?:please|can you|could you)[,\s]+)*(show|list|what|which|find|search|look up|check|do i have|how many)\b`)
	findsBy    = regexp.MustCompile(`(?i)\b(?:find|search(?: for)?|look up)\s+(?:the |my )?(.+?)\s+(?:in|among|from|on)\s+(?:my|the)\b`)
	givenValue = regexp.MustCompile(`(?:^| or )(@\w+)\b|^(primary)\b`)
)

// familyWords are words in names of groups that do not say what a group is about.
const familyWords = " google tool management setting setup js user service "

// groupFor returns the group whose name a message says that looks something up; nil if there is none, or more than one.
func (t *turn) groupFor() (found []string) {
	if !looksUp.MatchString(t.said) {
		return nil
	}
	words := contentWords(t.said)
	for _, g := range t.groups {
		if slices.ContainsFunc(contentWords(strings.ReplaceAll(g.name, "_", " ")), func(word string) bool {
			return !strings.Contains(familyWords, " "+word+" ") && slices.Contains(words, word)
		}) {
			found = append(found, g.name)
		}
	}
	if len(found) != 1 {
		return nil
	}
	return found
}

// lookUp uses the tool of a group that lists or searches, as its name says, with the arguments that its
// description names or the message has.
func (t *turn) lookUp(found []string) string {
	group := found[0]
	prefix := group[strings.LastIndexByte(group, '_')+1:] + "_"
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(t.tools)), func(name string) bool { return !strings.HasPrefix(name, prefix) })
	if len(names) == 0 {
		t.load(group, prefix)
	}
	verb, query := "list", ""
	if m := findsBy.FindStringSubmatch(t.said); m != nil {
		verb, query = "search", m[1]
	}
	// The plainest name is that of the things themselves: tasks_list_tasks rather than tasks_list_tasklists.
	slices.SortStableFunc(names, func(a, b string) int { return len(a) - len(b) })
	for _, name := range names {
		args, ok := t.fillArguments(name, query)
		if !strings.Contains(name, verb) || !ok {
			continue
		}
		text := t.use(name, args)
		if lines, ok := listed(text); ok {
			text = cmp.Or(strings.Join(lines, "\n"), "Nothing.")
		}
		return fmt.Sprintf("What `%s` shows:\n\n%s", name, shorten(rewordForUser(text), 1500))
	}
	return t.decline()
}

// fillArguments fills in the required arguments of a tool.
func (t *turn) fillArguments(tool, query string) (args map[string]any, ok bool) {
	var schema struct {
		Properties map[string]struct{ Description string }
		Required   []string
	}
	if json.Unmarshal(t.schemas[tool], &schema) != nil {
		return nil, false
	}
	args = map[string]any{}
	for _, name := range schema.Required {
		switch m := givenValue.FindStringSubmatch(schema.Properties[name].Description); {
		case m != nil:
			args[name] = m[1] + m[2]
		case name == "query" && query != "":
			args[name] = query
		default:
			return nil, false
		}
	}
	return args, true
}

// listed returns a line for each entry of a list in JSON: its title, and what else people read of it. It is not ok
// if the text is no such list.
func listed(text string) (lines []string, ok bool) {
	var found map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &found) != nil {
		return nil, false
	}
	for _, key := range slices.Sorted(maps.Keys(found)) {
		var entries []map[string]any
		if json.Unmarshal(found[key], &entries) != nil {
			continue
		}
		for _, entry := range entries {
			title, more := "", ""
			for _, name := range slices.Sorted(maps.Keys(entry)) {
				switch value := readable(entry[name]); {
				case value == "":
				case titleKey.MatchString(name) && title == "":
					title = "**" + value + "**"
				case name == "from":
					more += ", from " + value
				case detailKey.MatchString(name) && value != "confirmed":
					more += ", " + value
				}
			}
			if title+more != "" {
				lines = append(lines, "- "+strings.TrimPrefix(title+more, ", "))
			}
		}
		ok = true
	}
	return lines, ok
}

// readable returns a value as people read it: a text, a time, or a mail address without the brackets.
func readable(value any) string {
	switch value := value.(type) {
	case string:
		name, _, _ := strings.Cut(value, " <")
		return name
	case map[string]any:
		if at, err := time.Parse(time.RFC3339, readable(value["dateTime"])); err == nil {
			return at.Format("Monday 2 January at 15:04")
		}
		return readable(value["date"])
	}
	return ""
}

var (
	titleKey  = regexp.MustCompile(`(?i)^(?:(?:display|full|given|family)?_?name|title|summary|subject)$`)
	detailKey = regexp.MustCompile(`(?i)^(?:(?:display|full|given|family)?_?name|email|phone|due|status|start)$`)
)
