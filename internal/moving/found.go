package moving

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"oneclaw/internal/wording"
	"oneclaw/toolgroups/memory"
	"oneclaw/toolgroups/schedule"
	"oneclaw/toolgroups/skills"
)

// Kind is a kind of things that are taken over.
type Kind string

// The kinds, in the order in which they are listed.
const (
	KindMemory   Kind = "memory"
	KindSkill    Kind = "skill"
	KindSchedule Kind = "schedule"
	KindServer   Kind = "MCP server"
	KindOther    Kind = "other"
)

// maxFound bounds the things of one kind.
const maxFound = 1_000

// Found is what the folder of another bot has.
type Found struct {
	Notes     []noteFile
	Skills    []foundSkill
	Schedules []foundSchedule
	Servers   []foundServer
	// Left are the things that cannot be taken over.
	Left []Line
}

// noteFile is a file of memory.
type noteFile struct {
	Name  string
	Notes []memory.Note
}

// foundSkill is a skill with its SKILL.md as the bot reads it.
type foundSkill struct {
	Name    string
	Content []byte
	Remark  string
}

// foundSchedule is a task without its owner. Seed makes its id, and Target is where its answers went.
type foundSchedule struct {
	Seed, Name, Prompt string
	Plan               schedule.Plan
	Target             string
}

type foundServer struct{ Name, URL string }

// Reasons why parts of another bot are left.
const (
	leftCharacter = "its instructions and character: an agent here gets them with create_agent"
	leftKeys      = "model providers and keys: set them with oneclaw setup, or ask the bot to make a provider"
	leftOwn       = "the other bot's own"
	leftPeople    = "who may talk to the bot, and its tokens: let people in with /people, and set tokens with oneclaw setup once the other bot has stopped"
	leftPrograms  = "programs of the other bot"
	leftSchedules = "name the file of its schedules with --schedules"
	leftSessions  = "conversations stay with the other bot"
)

// leave notes that a thing cannot be taken over.
func (f *Found) leave(kind Kind, name, format string, args ...any) {
	if len(f.Left) < maxFound {
		f.Left = append(f.Left, Line{Kind: kind, Name: wording.OneLine(name, maxShown), Mark: Left, Text: wording.OneLine(fmt.Sprintf(format, args...), maxReason)})
	}
}

// leaveError notes that a thing cannot be read. An absent one is not noted.
func (f *Found) leaveError(kind Kind, name string, err error) {
	if err != nil && !isAbsent(err) {
		f.leave(kind, name, "%v", err)
	}
}

// stableID returns an id that is the same in each import.
func stableID(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:10]
}

// leaveAreas notes the parts of a configuration that are left.
func (f *Found) leaveAreas(config areas, reasons map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(config)) {
		if reason := reasons[name]; reason != "" {
			f.leave(KindOther, name, "%s", reason)
		}
	}
}

// serverConfig is an MCP server as both bots write it.
type serverConfig struct {
	Command word            `json:"command"`
	URL     word            `json:"url"`
	Headers map[string]word `json:"headers"`
}

// addServer adds an MCP server.
func (f *Found) addServer(name string, s serverConfig) {
	switch {
	case s.URL == "" && s.Command == "":
		f.leave(KindServer, name, "it has neither an address nor a program")
	case s.URL == "":
		f.leave(KindServer, name, "it is a program of this machine: add it to mcp.servers in oneclaw.yaml")
	case len(s.Headers) > 0:
		f.leave(KindServer, name, "its requests have headers of their own: add it to mcp.servers in oneclaw.yaml, with the secrets as ${NAME}")
	case strings.ContainsAny(string(s.URL), "?#"):
		f.leave(KindServer, name, "its address may hold a key: add it to mcp.servers in oneclaw.yaml, with the key as ${NAME}")
	case strings.Contains(string(s.URL), "${"):
		f.leave(KindServer, name, "its address has variables in it: add it with /mcp add")
	case len(f.Servers) == maxFound:
		f.leave(KindServer, name, "there are more than %d servers", maxFound)
	default:
		f.Servers = append(f.Servers, foundServer{name, string(s.URL)})
	}
}

// addSkill adds the skill in a SKILL.md. beside is the number of other files in its folder.
func (f *Found) addSkill(source string, data []byte, beside int) {
	name, content, err := skills.Convert(data)
	if err == nil && slices.ContainsFunc(f.Skills, func(s foundSkill) bool { return s.Name == name }) {
		err = fmt.Errorf("another skill has the name %s", name)
	}
	if err == nil && len(f.Skills) == maxFound {
		err = fmt.Errorf("there are more than %d skills", maxFound)
	}
	if err != nil {
		f.leave(KindSkill, source, "%v", err)
		return
	}
	remark := ""
	if beside > 0 {
		remark = "without " + wording.Plural(beside, "other file", "other files") + " in its folder"
	}
	f.Skills = append(f.Skills, foundSkill{name, content, remark})
}

// readSkill reads the SKILL.md of a folder, and reports whether there is one.
func (f *Found) readSkill(from *folder, dir string) bool {
	data, err := from.file(dir + "/" + skillFile)
	if isAbsent(err) {
		return false
	}
	names, listed := from.names(dir)
	if err = cmp.Or(err, listed); err != nil {
		f.leave(KindSkill, dir, "%v", err)
		return true
	}
	f.addSkill(dir, data, len(names)-1)
	return true
}

// addSchedule adds a schedule, or leaves it for the reason.
func (f *Found) addSchedule(s foundSchedule, reason error) {
	s.Name = cmp.Or(s.Name, wording.OneLine(s.Prompt, 50))
	switch {
	case reason != nil:
		f.leave(KindSchedule, cmp.Or(s.Name, s.Seed), "%v", reason)
	case len(f.Schedules) == maxFound:
		f.leave(KindSchedule, s.Name, "there are more than %d schedules", maxFound)
	default:
		f.Schedules = append(f.Schedules, s)
	}
}

// momentLayouts are the forms of a time, beginning with those that have a zone.
var momentLayouts = []string{time.RFC3339, "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05.999999", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly}

// planAt returns the plan for one moment. A time without a zone is in the given one.
func planAt(text, zone string) (schedule.Plan, error) {
	for i, layout := range momentLayouts {
		at, err := time.Parse(layout, strings.TrimSpace(text))
		if err != nil {
			continue
		}
		if i < 2 {
			at, zone = at.UTC(), "UTC"
		}
		return schedule.Plan{Kind: schedule.OneTime, Date: at.Format(time.DateOnly), Hour: at.Hour(), Minute: at.Minute(), Zone: zone}, nil
	}
	return schedule.Plan{}, fmt.Errorf("its time is %q, which is no time", wording.OneLine(text, maxShown))
}

// planEvery returns the plan for an interval.
func planEvery(every time.Duration) (schedule.Plan, error) {
	if every < time.Minute {
		return schedule.Plan{}, fmt.Errorf("it runs every %s, and a minute is the shortest interval", every)
	}
	return schedule.Plan{Kind: schedule.Interval, EveryMinutes: int(every / time.Minute)}, nil
}

// planCron returns the plan for a cron expression. Six fields begin with seconds.
func planCron(expression, zone string) (schedule.Plan, error) {
	fields := strings.Fields(expression)
	if len(fields) == 6 {
		if fields[0] != "0" {
			return schedule.Plan{}, fmt.Errorf("its cron expression %q has seconds", wording.OneLine(expression, maxShown))
		}
		fields = fields[1:]
	}
	return schedule.Plan{Kind: schedule.Cron, Expression: strings.Join(fields, " "), Zone: zone}, nil
}
