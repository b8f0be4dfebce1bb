package openai

import (
	"fmt"
	"regexp"
	"strings"
)

var (
	greeting   = regexp.MustCompile(`(?i)^(hi|hello|hey|hiya|howdy|good (morning|afternoon|evening|day)|/start)\b[^a-z]*(there|bot|oneclaw)?\W*$`)
	thanks     = regexp.MustCompile(`(?i)^(thanks|thank you|thx|great|perfect|cool|ok|okay|bye|goodbye)\b.{0,40}$`)
	remember   = regexp.MustCompile(`(?is)\bremember(?:\s+(?:that|this|the following))?[\s:,]+(.{2,500}?)[.!]*$`)
	loadGroup  = regexp.MustCompile(`(?i)\bload\s+(?:the\s+)?(?:tool\s+)?(?:group\s+)?["'` + "`" + `]?([a-z][\w-]*)["'` + "`" + `]?(?:\s+(?:tools?|group))*\W*$`)
	runCommand = regexp.MustCompile("(?is)^(?:please )?run\\s+(?:the command\\s+)?[\"'`]?(.+?)[\"'`]?$")
	zone       = regexp.MustCompile(`\b([A-Z][A-Za-z]+/[A-Z][A-Za-z_]+)\b`)
	clock      = regexp.MustCompile(`(?i)\b(what(?:'s| is)? the (?:current )?(?:time|date)|what(?:'s| is)? (?:time|day|date) is it|time is it|(?:what|which) (?:day|date) is (?:it|today)|current (?:time|date)|today's date|what(?:'s| is)? today)\b`)
	otherTime  = regexp.MustCompile(`(?i)\b(?:tomorrow|yesterday|next|last|ago|was|were|will|until|till|in (?:` + numberWord + `)\s+\w+|difference|between|open|close[sd]?|starts?|begins?|if|when)\b`)
	whoAmI     = regexp.MustCompile(`(?i)^\W*(?:who|what) are you\W*$|\bintroduce yourself\b|\bare you (?:really |actually )?(?:an? |the )?(?:real|human|person|robot|bot|machine|computer|ai|chatgpt|gpt|claude)\b`)
	abilities  = regexp.MustCompile(`(?i)^\W*(?:(?:hey|hi|hello|so|and|ok)\W+)*(?:what (?:all )?(?:can|do) you (?:actually |really |all )?do|help(?: me)?|explain yourself|what (?:can|could|should) i (?:ask|do|try|say)[^.]{0,20})(?: for me| here)?\W*$`)
	capability = regexp.MustCompile(`(?i)\b(list (your |the |all )?(tool )?groups|(which|what) (tools|groups|tool groups)|tool groups)\b`)
)

// rules returns the rules in the order in which they are tried.
func (t *turn) rules() []rule {
	_, groupFound := t.groupFor()
	recalls := t.isRecall()
	// What is quoted is passed on, and is no wish.
	bare := quotation.ReplaceAllString(t.said, "")
	rules := []rule{
		{reminderRun.MatchString(t.said), t.remindNow},
		{backgroundResult.MatchString(t.said), t.tellResult},
		{inBackground.MatchString(t.said), t.startInBackground},
		{strings.Contains(t.said, Unheard) || aboutVoice.MatchString(t.said), t.hearNothing},
		{greeting.MatchString(t.said), func() Reply { return Reply{Text: "Hello! " + t.introduce().Text} }},
		{whoAmI.MatchString(t.said), t.introduce},
		{abilities.MatchString(t.said), t.describeAbilities},
		{t.calculates(), t.calculate},
		{clockThere.MatchString(t.said), t.compareClocks},
		{t.countsDays(), t.countDays},
		{onDate.MatchString(t.said) && weekdayAsked.MatchString(onDate.ReplaceAllString(t.said, "")), t.tellWeekday},
		{waitsFor.MatchString(t.said), t.decline},
		{cancelPattern.MatchString(bare) || t.last.task != "" && cancelsThat.MatchString(bare), t.cancelReminders},
		{corrected(t.before, t.asked, t.said) != "", t.correct},
		{asksForReminder(bare), t.scheduleReminder},
		{saveContact.MatchString(t.said) && lastContact(t.given, t.whole) != "", t.keepContact},
		{asksToRemember(t.said), t.remember},
		{cityZone(t.said, livesIn) != "", func() Reply { return t.note(strings.TrimSpace(strings.TrimRight(t.said, ".! "))) }},
		{forgetPattern.MatchString(strings.TrimSpace(t.said)), t.forget},
		{writeFile.MatchString(t.said) || makeFile.MatchString(t.said), t.writeFileReply},
		{len(t.written) > 0 && sendFile.MatchString(t.said), t.sendText},
		{listAdd.MatchString(t.said) && t.listName() != "", t.addToList},
		{t.dropsFromList(), t.dropFromList},
		{listShow.MatchString(t.said) && t.listName() != "", t.showList},
		{loadGroup.MatchString(t.said), t.loadGroupReply},
		{t.wantsTableFile(), t.writeTableFile},
		{t.wantsChange(), t.changePicture},
		{t.wantsDrawing(), t.drawPicture},
		{t.wantsPage(), t.readAddress},
		{t.officeFile() != "", func() Reply { return t.readOffice(t.officeFile()) }},
		{t.aboutPDF(), t.readPDF},
		{tablePattern.MatchString(t.said) && rowsPattern.MatchString(t.said), t.writeTable},
		{clock.MatchString(bare) && !otherTime.MatchString(bare), t.tellTime},
		{capability.MatchString(t.said), t.describeGroups},
		{listTasks.MatchString(bare), t.listReminders},
		{filesKnown.MatchString(bare), t.listFiles},
		{readFile.MatchString(t.said), t.readFileReply},
		{runCommand.MatchString(t.said), t.runCommandReply},
	}
	rules = append(rules, t.googleRules()...)
	return append(rules,
		rule{groupFound, t.lookUp},
		rule{recalls && (recallAll.MatchString(t.said) || !t.asksOfGiven()), t.recall},
		rule{(recalls || question.MatchString(t.said) && len(contentWords(t.said)) > 1) && closestNote(t.said, t.notes) != "", t.recall},
		rule{t.asksOfGiven(), t.answerGiven},
		rule{len(t.sentFiles) > 0, func() Reply { return t.unsupportedFile(t.sentFiles[len(t.sentFiles)-1]) }},
		rule{thanks.MatchString(t.said), func() Reply { return Reply{Text: "You are welcome."} }},
		rule{t.receipt() != "", func() Reply { return Reply{Text: t.receipt()} }},
	)
}

// Unheard is the transcript of a recording by a server that cannot hear: the model says so.
const Unheard = "[The words cannot be heard without a real model.]"

var aboutVoice = regexp.MustCompile(`(?i)\b(?:voice (?:message|note|memo)|recording)\b`)

func (t *turn) hearNothing() Reply {
	return Reply{Text: "I cannot hear what is said in a recording without a real model: " + setKey}
}

// introduce says in two lines who the bot is and what it can do.
func (t *turn) introduce() Reply {
	return Reply{Text: "I am OneClaw. The bot is the real one; its answers here come from rules, not from an AI.\n" + t.abilities()}
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

func (t *turn) unsupportedFile(file string) Reply {
	return Reply{Text: fmt.Sprintf("I got `%s`. Without an AI I can look into PDFs and office files only.", file)}
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
