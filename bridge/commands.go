package bridge

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/jobs"
)

// commands are what people ask of the bot itself.
type commands struct {
	platforms map[string]chats.Platform
	list      []jobs.Command
	names     *regexp.Regexp // of the commands, as texts of ours name them
}

// add takes the commands that all rooms bring.
func (c *commands) add(list []jobs.Command) {
	c.list = list
	var names []string
	for _, one := range list {
		names = append(names, regexp.QuoteMeta(one.Name))
	}
	c.names = regexp.MustCompile(`(^|[\s(` + "`" + `])/(` + strings.Join(names, "|") + `)\b`)
}

// infos are the commands that platforms list.
func (c *commands) infos() []chats.CommandInfo {
	var infos []chats.CommandInfo
	for _, one := range c.list {
		if !one.Hidden {
			infos = append(infos, one.CommandInfo)
		}
	}
	return infos
}

var commandPattern = regexp.MustCompile(`^/([a-z_]{1,32})(?:\s+([\s\S]*))?$`)

// of returns the command of a job. A job with a notice has none, and neither has a text
// that only looks like one.
func (c *commands) of(j *jobs.Job) (jobs.Command, string, bool) {
	if j.Notice != "" || j.Message.Kind != chats.KindText {
		return jobs.Command{}, "", false
	}
	match := commandPattern.FindStringSubmatch(strings.TrimSpace(j.Message.Text))
	if match == nil {
		return jobs.Command{}, "", false
	}
	i := slices.IndexFunc(c.list, func(one jobs.Command) bool { return one.Name == match[1] })
	if i < 0 {
		return jobs.Command{}, "", false
	}
	return c.list[i], match[2], true
}

// run answers a command.
func (c *commands) run(ctx context.Context, j *jobs.Job) (string, error) {
	one, args, _ := c.of(j)
	text, err := one.Run(ctx, j, args)
	return c.spelled(j.Message.Chat.Platform, text), err
}

// spelled is a text of ours, in which commands have a slash, with the commands as people
// write them on a platform.
func (c *commands) spelled(platform, text string) string {
	s, ok := c.platforms[platform].(chats.Speller)
	if !ok {
		return text
	}
	return c.names.ReplaceAllString(text, "${1}"+strings.ReplaceAll(s.CommandSign(), "$", "$$")+"${2}")
}

// help says what the bot can do, and lists the commands.
func (c *commands) help(_ context.Context, j *jobs.Job, _ string) (string, error) {
	var text strings.Builder
	text.WriteString("I answer what you write to me, and I have tools to get things done. " +
		"I load the ones I need as we go.\n\n")
	if !j.Message.Direct {
		text.WriteString("Here I answer when I am mentioned or replied to.\n\n")
	}
	for _, info := range c.infos() {
		fmt.Fprintf(&text, "- /%s – %s\n", info.Name, info.Description)
	}
	return text.String(), nil
}
