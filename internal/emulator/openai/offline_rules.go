package openai

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
)

var (
	greeting         = regexp.MustCompile(`(?i)^(hi|hello|hey|hiya|howdy|good (morning|afternoon|evening|day)|/start)\b[^a-z]*(there|bot|oneclaw)?\W*$`)
	thanks           = regexp.MustCompile(`(?i)^(thanks|thank you|thx|great|perfect|cool|ok|okay|bye|goodbye)\b.{0,40}$`)
	remember         = regexp.MustCompile(`(?is)\bremember(?:\s+(?:that|this|the following))?[\s:,]+(.{2,500}?)[.!]*$`)
	loadGroup        = regexp.MustCompile(`(?i)\bload\s+(?:the\s+)?(?:tool\s+)?(?:group\s+)?["'` + "`" + `]?([a-z][\w-]*)["'` + "`" + `]?(?:\s+(?:tools?|group))*\W*$`)
	inBackground     = regexp.MustCompile(`(?is)^(?:please\s+)?in the background[\s,:]+(.+)$`)
	backgroundResult = regexp.MustCompile(`(?s)^\[The background task "([^"\n]*)" is done\.[^\n]*\n(.*)\n\[End of the result\.\]`)
	resultQuote      = regexp.MustCompile(`(?m)^(?:> ?| )`)
	runCommand       = regexp.MustCompile("(?is)^(?:please )?run\\s+(?:the command\\s+)?[\"'`]?(.+?)[\"'`]?$")
	zone             = regexp.MustCompile(`\b([A-Z][A-Za-z]+/[A-Z][A-Za-z_]+)\b`)
	clock            = regexp.MustCompile(`(?i)\b(what(?:'s| is)? the (?:current )?(?:time|date)|what(?:'s| is)? (?:time|day|date) is it|time is it|(?:what|which) (?:day|date) is (?:it|today)|current (?:time|date)|today's date|what(?:'s| is)? today)\b`)
	otherTime        = regexp.MustCompile(`(?i)\b(?:tomorrow|yesterday|next|last|ago|was|were|will|until|till|in (?:` + numberWord + `)\s+\w+|difference|between|open|close[sd]?|starts?|begins?|if|when)\b`)
	whoAmI           = regexp.MustCompile(`(?i)^\W*(?:who|what) are you\W*$|\bintroduce yourself\b|\bare you (?:really |actually )?(?:an? |the )?(?:real|human|person|robot|bot|machine|computer|ai|chatgpt|gpt|claude)\b`)
	abilities        = regexp.MustCompile(`(?i)^\W*(?:(?:hey|hi|hello|so|and|ok)\W+)*(?:what (?:all )?(?:can|do) you (?:actually |really |all )?do|help(?: me)?|explain yourself|what (?:can|could|should) i (?:ask|do|try|say)[^.]{0,20})(?: for me| here)?\W*$`)
	capability       = regexp.MustCompile(`(?i)\b(list (your |the |all )?(tool )?groups|(which|what) (tools|groups|tool groups)|tool groups)\b`)
)

// rule is a kind of request: what is found of it in a message, or nil, and the function that answers it.
type rule struct {
	found  []string
	answer func(found []string) string
}

// on is a rule for what a pattern finds, if a condition holds as well.
func on(pattern *regexp.Regexp, said string, also bool, answer func(found []string) string) rule {
	if !also {
		return rule{}
	}
	return rule{pattern.FindStringSubmatch(said), answer}
}

// when is a rule for what a condition tells.
func when(matches bool, answer func() string) rule {
	if !matches {
		return rule{}
	}
	return rule{[]string{""}, func([]string) string { return answer() }}
}

// say is an answer in fixed words.
func say(text string) func() string { return func() string { return text } }

// rules returns the rules in the order in which they are tried.
func (t *turn) rules() []rule { //nolint:cyclop // A table.
	said, trimmed := t.said, strings.TrimSpace(t.said)
	// What is quoted is passed on, and is no wish.
	bare := quotation.ReplaceAllString(said, "")
	named, office, recalls, last := t.listName() != "", t.officeFile(), t.isRecall(), ""
	if len(t.sentFiles) > 0 {
		last = t.sentFiles[len(t.sentFiles)-1]
	}
	writes := tablePattern.MatchString(said) && rowsPattern.MatchString(said)
	return []rule{
		on(reminderRun, said, true, func(m []string) string { return "⏰ Reminder: " + strings.TrimSpace(m[1]) }),
		on(backgroundResult, said, true, func(m []string) string {
			return fmt.Sprintf("From the background, %s:\n\n%s", m[1], resultQuote.ReplaceAllString(m[2], ""))
		}),
		on(inBackground, said, true, t.startInBackground),
		on(askMe, trimmed, true, t.askQuestion),
		when(askLikes.MatchString(said), t.askWhatTheyLike),
		when(strings.Contains(said, Unheard) || aboutVoice.MatchString(said), say("I cannot hear what is said in a recording without a real model: "+setKey)),
		when(greeting.MatchString(said), say("Hello! "+t.introduce())),
		when(whoAmI.MatchString(said), t.introduce),
		when(abilities.MatchString(said), t.describeAbilities),
		on(percentage, trimmed, true, t.percent),
		{unitsIn(said), t.convert},
		{sumIn(said), t.calculate},
		on(clockThere, said, true, t.compareClocks),
		{dayCounted(said), t.countDays},
		when(onDate.MatchString(said) && weekdayAsked.MatchString(onDate.ReplaceAllString(said, "")), t.tellWeekday),
		when(waitsFor.MatchString(said), t.decline),
		when(cancelPattern.MatchString(bare) || t.last.task != "" && cancelsThat.MatchString(bare), t.cancelReminders),
		{corrected(t.before, t.asked, said), t.correct},
		when(asksForReminder(bare), t.scheduleReminder),
		on(saveContact, trimmed, lastContact(t.given, t.whole) != "", t.keepContact),
		when(asksToRemember(said), t.remember),
		when(cityZone(said, livesIn) != "", func() string { return t.note(strings.TrimRight(trimmed, ".! ")) }),
		on(forgetPattern, trimmed, true, t.forget),
		on(makeFile, said, true, func(m []string) string { return t.writeFile(m[1], m[2]+m[3]) }),
		on(writeFile, said, true, func(m []string) string { return t.writeFile(m[2], m[1]) }),
		when(len(t.written) > 0 && sendFile.MatchString(said), t.sendText),
		on(listAdd, said, named, t.addToList),
		on(listDrop, said, named && listNamed.MatchString(t.whole), t.dropFromList),
		when(listShow.MatchString(said) && named, t.showList),
		on(loadGroup, said, true, t.loadGroup),
		when(t.wantsTableFile(), t.writeTableFile),
		on(changePattern, said, t.picture != "" && t.can("images", "edit_image"), t.changePicture),
		on(drawPattern, said, !barsPattern.MatchString(said) && t.can("images", "generate_image"), t.drawPicture),
		when(t.wantsPage(), t.readAddress),
		when(office != "", func() string { return t.readOffice(office) }),
		when(t.aboutPDF(), t.readPDF),
		when(writes, say(cmp.Or(t.tableText(), rowsText))),
		when(clock.MatchString(bare) && !otherTime.MatchString(bare), t.tellTime),
		when(capability.MatchString(said), t.describeGroups),
		when(listTasks.MatchString(bare), t.listReminders),
		when(filesKnown.MatchString(bare), t.listFiles),
		on(readFile, said, true, func(m []string) string {
			return fmt.Sprintf("`%s`:\n\n%s", m[1], shorten(rewordForUser(t.use("read_file", map[string]any{"path": m[1]})), 2000))
		}),
		on(runCommand, said, true, t.run),
		when(deleteSpam.MatchString(said), t.trashSpam),
		when(sendMail.MatchString(said) && t.can("google_gmail", "gmail_send"), t.sendEmail),
		when(aboutMail.MatchString(said) && looks.MatchString(said), t.listEmails),
		when(addEvent.MatchString(said) && t.can("google_calendar", "calendar_create_event"), t.createEvent),
		when(aboutDays.MatchString(said) && looks.MatchString(said), t.listEvents),
		when(aboutSheet.MatchString(said) && looks.MatchString(said), t.readSheet),
		{t.groupFor(), t.lookUp},
		when(recalls && (recallAll.MatchString(said) || !t.asksOfGiven()), t.recall),
		when((recalls || question.MatchString(said) && len(contentWords(said)) > 1) && closestNote(said, t.notes) != "", t.recall),
		when(t.asksOfGiven(), t.answerGiven),
		when(last != "", say(unsupported(last))),
		when(thanks.MatchString(said), say("You are welcome.")),
		when(t.receipt() != "", t.receipt),
	}
}

// Unheard is the transcript of a recording by a server that cannot hear: the model says so.
const Unheard = "[The words cannot be heard without a real model.]"

var aboutVoice = regexp.MustCompile(`(?i)\b(?:voice (?:message|note|memo)|recording)\b`)

// introduce says in two lines who the bot is and what it can do.
func (t *turn) introduce() string {
	return "I am OneClaw. The bot is the real one; its answers here come from rules, not from an AI.\n" + t.abilities()
}

// describeAbilities answers in the words of people.
func (t *turn) describeAbilities() string {
	if len(t.groups) == 0 {
		return t.introduce()
	}
	return t.introduce() + "\n\n/tools shows what else you can ask for."
}

func (t *turn) describeGroups() string {
	text := t.introduce()
	if len(t.groups) > 0 {
		text += fmt.Sprintf("\n\nTool groups that I load when they are needed (%d):", len(t.groups))
	}
	for _, g := range t.groups {
		text += fmt.Sprintf("\n- **%s**: %s", g.name, g.description)
	}
	return text
}

func (t *turn) startInBackground(m []string) string {
	task := strings.TrimSpace(m[1])
	title := shorten(task, 60)
	return t.do("background", "start_background_task", map[string]any{"task": task, "title": title}, "Started ", "start that",
		"I work on it in the background: "+strings.TrimRight(title, ".")+". We can go on meanwhile; the result comes here.")
}

func (t *turn) run(m []string) string {
	command := strings.TrimSpace(m[1])
	text := t.use("exec", map[string]any{"command": command})
	if refusal := rewordForUser(text); refusal != text {
		return refusal
	}
	return fmt.Sprintf("I ran `%s`:\n\n```\n%s\n```", command, shorten(text, 1500))
}

func (t *turn) loadGroup(m []string) string {
	name := strings.ToLower(m[1])
	text, tried := t.loadResult(name)
	if !tried {
		t.stopFor(call(loadTool, map[string]any{"group_name": name}))
	}
	return rewordForUser(text)
}

func unsupported(file string) string {
	return fmt.Sprintf("I got `%s`. Without an AI I can look into PDFs and office files only.", file)
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
