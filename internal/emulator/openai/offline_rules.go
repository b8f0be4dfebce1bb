package openai

import (
	"fmt"
	"regexp"
	"strings"
)

var (
	greeting   = regexp.MustCompile(`(?i)^(hi|hello|hey|hiya|howdy|good (morning|afternoon|evening|day)|/start)\b[^a-z]*(there|bot|oneclaw)?\W*$`)
	thanks     = regexp.MustCompile(`(?i)^(thanks|thank you|thx|great|perfect|cool|ok|okay|bye|goodbye)\b.{0,20}$`)
	remember   = regexp.MustCompile(`(?is)\bremember(?:\s+that)?[\s:,]+(.{2,500}?)[.!]*$`)
	readFile   = regexp.MustCompile(`(?i)\b(?:read|show|open|print)\b.*?\b(?:file\s+)?["'` + "`" + `]?([\w./-]+\.\w{1,8})["'` + "`" + `]?`)
	writeFile  = regexp.MustCompile(`(?is)\b(?:write|save|put)\s+["'“` + "`" + `](.+)["'”` + "`" + `]\s+(?:in|to|into|as)\s+(?:the\s+|a\s+)?(?:file\s+)?["'` + "`" + `]?([\w./-]+\.\w{1,8})`)
	loadGroup  = regexp.MustCompile(`(?i)\bload\s+(?:the\s+)?(?:tool\s+)?(?:group\s+)?["'` + "`" + `]?([a-z][\w-]*)["'` + "`" + `]?(?:\s+(?:tools?|group))*\W*$`)
	runCommand = regexp.MustCompile("(?is)^(?:please )?run\\s+(?:the command\\s+)?[\"'`]?(.+?)[\"'`]?$")
	zone       = regexp.MustCompile(`\b([A-Z][A-Za-z]+/[A-Z][A-Za-z_]+)\b`)
	clock      = regexp.MustCompile(`(?i)\b(what('s| is)? (the )?(current )?(time|date)|what time|what day|which day|current (time|date)|time is it|today's date|what('s| is) today)\b`)
	abilities  = regexp.MustCompile(`(?i)^\W*(what can you do|help|explain yourself)(?: for me)?\W*$`)
	capability = regexp.MustCompile(`(?i)\b(what can you do|help|list (your |the |all )?(tool )?groups|(which|what) (tools|groups|tool groups)|explain yourself|tool groups)\b`)
)

// accountTool is a tool for the user's account, with the words that ask for it.
type accountTool struct {
	words       []string
	group, tool string
	args        map[string]any
	label       string
}

func accountTools() []accountTool {
	return []accountTool{
		{[]string{"google drive", "my drive"}, "google_drive", "drive_list_files", nil, "Drive"},
		{[]string{"schedule", "scheduled", "reminders"}, "scheduled_tasks", "list_scheduled_tasks", nil, "scheduled tasks"},
	}
}

// rules returns the rules in the order in which they are tried.
func (t *turn) rules() []rule {
	rules := []rule{
		{reminderRun.MatchString(t.said), t.remindNow},
		{backgroundResult.MatchString(t.said), t.tellResult},
		{inBackground.MatchString(t.said), t.startInBackground},
		{greeting.MatchString(t.said), func() Reply { return Reply{Text: "Hello! " + t.introduce().Text} }},
		{whoAmI.MatchString(t.said), t.introduce},
		{t.isSum(), t.calculate},
		{reminderPattern.MatchString(t.said), t.scheduleReminder},
		{asksToRemember(t.said), t.remember},
		{cityZone(t.said, livesIn) != "", func() Reply { return t.note(strings.TrimSpace(strings.TrimRight(t.said, ".! "))) }},
		{forgetPattern.MatchString(strings.TrimSpace(t.said)), t.forget},
		{writeFile.MatchString(t.said), t.writeFileReply},
		{loadGroup.MatchString(t.said), t.loadGroupReply},
		{t.wantsTableFile(), t.writeTableFile},
		{t.wantsChange(), t.changePicture},
		{t.wantsDrawing(), t.drawPicture},
		{t.officeFile() != "", t.readOffice},
		{t.aboutPDF(), t.readPDF},
		{tablePattern.MatchString(t.said) && !aboutSheet.MatchString(t.said), t.writeTable},
		{codePattern.MatchString(t.said), t.writeCode},
		{clock.MatchString(t.said), t.tellTime},
		{abilities.MatchString(t.said), t.describeAbilities},
		{capability.MatchString(t.said), t.describeGroups},
		{readFile.MatchString(t.said), t.readFileReply},
		{runCommand.MatchString(t.said), t.runCommandReply},
	}
	rules = append(rules, t.googleRules()...)
	for _, s := range accountTools() {
		rules = append(rules, rule{t.hasWord(s.words...), func() Reply { return t.useAccountTool(s) }})
	}
	return append(rules,
		rule{t.isRecall(), t.recall},
		rule{len(t.sentFiles) > 0, t.unsupportedFile},
		rule{modelOnlyPattern.MatchString(t.said), t.decline},
		rule{thanks.MatchString(t.said), func() Reply { return Reply{Text: "You are welcome."} }},
	)
}

// describeAbilities answers in the words of people.
func (t *turn) describeAbilities() Reply {
	said := t.introduce()
	if len(t.groups) > 0 {
		said.Text += "\n\n/tools shows what else you can ask for."
	}
	return said
}

func (t *turn) describeGroups() Reply {
	var b strings.Builder
	b.WriteString(t.introduce().Text)
	if len(t.groups) == 0 {
		return Reply{Text: b.String()}
	}
	fmt.Fprintf(&b, "\n\nTool groups that I load when they are needed (%d):", len(t.groups))
	for _, g := range t.groups {
		fmt.Fprintf(&b, "\n- **%s**: %s", g.name, g.description)
	}
	return Reply{Text: b.String()}
}

func (t *turn) tellTime() Reply {
	args := map[string]any{"format": "human_readable"}
	where := ""
	if m := zone.FindStringSubmatch(t.said); m != nil {
		args["timezone"] = m[1]
	} else if zone := cityZone(t.said, cityClock); zone != "" {
		args["timezone"] = zone
	}
	if args["timezone"] != nil {
		where = fmt.Sprintf(" in %s", args["timezone"])
	}
	return t.useTool("get_current_time", args, func(text string) string {
		return fmt.Sprintf("The clock%s says: %s", where, rewordForUser(text))
	})
}

func (t *turn) writeFileReply() Reply {
	m := writeFile.FindStringSubmatch(t.said)
	return t.useTool("write_file", map[string]any{"path": m[2], "content": m[1]}, func(text string) string {
		return fmt.Sprintf("`%s`: %s", m[2], rewordForUser(text))
	})
}

func (t *turn) readFileReply() Reply {
	path := readFile.FindStringSubmatch(t.said)[1]
	return t.useTool("read_file", map[string]any{"path": path}, func(text string) string {
		return fmt.Sprintf("`%s`:\n\n%s", path, shorten(rewordForUser(text), 2000))
	})
}

func (t *turn) runCommandReply() Reply {
	command := strings.TrimSpace(runCommand.FindStringSubmatch(t.said)[1])
	return t.useTool("exec", map[string]any{"command": command}, func(text string) string {
		if refusal := rewordForUser(text); refusal != strings.TrimSpace(text) {
			return refusal
		}
		return fmt.Sprintf("I ran `%s`:\n\n```\n%s\n```", command, shorten(text, 1500))
	})
}

func (t *turn) loadGroupReply() Reply {
	name := strings.ToLower(loadGroup.FindStringSubmatch(t.said)[1])
	return t.useTool("load_tool_group", map[string]any{"group_name": name}, func(text string) string { return rewordForUser(text) })
}

// useAccountTool answers with the result of an account tool. The result is shown unchanged, because
// these rules cannot read it.
func (t *turn) useAccountTool(s accountTool) Reply {
	return t.useGroupTool(s.group, s.tool, s.args, func(text string) string {
		return fmt.Sprintf("Your %s, as `%s` shows it:\n\n%s", s.label, s.tool, shorten(rewordForUser(text), 1500))
	})
}

func (t *turn) unsupportedFile() Reply {
	return Reply{Text: fmt.Sprintf("I got `%s`. Without an AI I can look into PDFs and office files only.", t.sentFiles[len(t.sentFiles)-1])}
}

// shorten shortens a text to about n bytes, without splitting a character.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return strings.TrimSpace(s[:n]) + " …"
}
