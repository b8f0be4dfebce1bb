// Package moving reads the folders in which other bots (OpenClaw, Hermes Agent) keep their data, and takes
// over what is text and has a place here: memory, skills, schedules and MCP servers.
//
// Nothing runs, nothing is sent, and no user gets access: schedules arrive paused, skills and servers
// switched off. Ids are derived from those of the other bot, so that
// an import leaves alone what an earlier one has taken over.
package moving

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"oneclaw/bridge/access"
	"oneclaw/bridge/chats"
	"oneclaw/internal/connections"
	"oneclaw/internal/settings"
	"oneclaw/internal/wording"
	"oneclaw/storage"
	disk "oneclaw/storage/folder"
	"oneclaw/toolgroups/memory"
	"oneclaw/toolgroups/schedule"
	"oneclaw/toolgroups/skills"
)

// Bounds of a [Line], in characters.
const (
	maxShown  = 80
	maxReason = 300
)

// Mark says what became of a thing.
type Mark string

// The marks: of a thing that is taken over, of one that is here already, and of one that is not taken over.
const (
	Taken Mark = "+"
	Known Mark = "="
	Left  Mark = "-"
)

// Line says what became of one thing.
type Line struct {
	Kind Kind
	Name string
	Mark Mark
	// Text says how it was taken over, or why not.
	Text string
}

// Mover takes over what was found.
type Mover struct {
	Store    storage.KV
	Memory   *memory.Memory
	Schedule *schedule.Schedule
	Settings *settings.Settings
	// SkillsDir is the folder of skills.
	SkillsDir string
	// For is the user who gets memory and schedules, platform:id. Empty means the bot's owner.
	For string
	Now func() time.Time
	// DryRun makes [Mover.Take] change nothing, and return what it would do.
	DryRun bool
}

// Take takes over what was found. It returns a line for each thing, by kinds. After an error it can be
// repeated.
func (m Mover) Take(ctx context.Context, found *Found) ([]Line, error) {
	var lines []Line
	for _, take := range []func(context.Context, *Found) ([]Line, error){
		m.takeNotes, m.takeSkills, m.takeSchedules, m.takeServers,
	} {
		more, err := take(ctx, found)
		if lines = append(lines, more...); err != nil {
			return lines, err
		}
	}
	lines = append(lines, found.Left...)
	order := []Kind{KindMemory, KindSkill, KindSchedule, KindServer, KindOther}
	slices.SortStableFunc(lines, func(a, b Line) int { return slices.Index(order, a.Kind) - slices.Index(order, b.Kind) })
	return lines, nil
}

// lineOf returns the line of a thing that was taken over unless there is a reason against it. known are
// the reasons which say that it is here already.
func lineOf(kind Kind, name, text string, reason error, known ...error) Line {
	line := Line{Kind: kind, Name: wording.OneLine(name, maxShown), Mark: Taken, Text: text}
	switch {
	case slices.ContainsFunc(known, func(k error) bool { return errors.Is(reason, k) }):
		line.Mark, line.Text = Known, reason.Error()
	case reason != nil:
		line.Mark, line.Text = Left, wording.OneLine(reason.Error(), maxReason)
	}
	return line
}

// errNoOwner is the reason why memory and schedules are left.
var errNoOwner = errors.New("whose is it? Claim the bot first (oneclaw claim), or name a person: --for telegram:123")

// findOwner returns who gets memory and schedules, and the direct chat with that person.
func (m Mover) findOwner(ctx context.Context) (user string, chat chats.Chat, err error) {
	user, chat, err = access.FindUser(ctx, m.Store, m.For)
	if err != nil {
		return "", chat, err
	}
	if user == "" {
		user = m.For
	}
	if same, err := chats.ParseChat(user); err == nil && chat == (chats.Chat{}) && same.Platform == "telegram" {
		chat = same // a direct chat has the id of the user
	}
	return user, chat, nil
}

func (m Mover) takeNotes(ctx context.Context, found *Found) (lines []Line, err error) {
	user, _, err := m.findOwner(ctx)
	if err != nil {
		return nil, err
	}
	var all []memory.Note
	for _, file := range found.Notes {
		if user == "" {
			lines = append(lines, lineOf(KindMemory, file.Name, "", errNoOwner))
		}
		all = append(all, file.Notes...)
	}
	if user == "" || len(all) == 0 {
		return lines, nil
	}
	reasons, err := m.Memory.Import(ctx, user, all, !m.DryRun)
	if err != nil {
		return nil, err
	}
	for _, file := range found.Notes {
		own := reasons[:len(file.Notes)]
		reasons = reasons[len(file.Notes):]
		for _, reason := range []error{nil, memory.ErrDuplicate, memory.ErrFull, memory.ErrInvalid} {
			count := 0
			for _, one := range own {
				if errors.Is(one, reason) {
					count++
				}
			}
			if count > 0 {
				line := lineOf(KindMemory, file.Name, "for "+user, reason, memory.ErrDuplicate)
				line.Text = wording.Plural(count, "note", "notes") + ": " + line.Text
				lines = append(lines, line)
			}
		}
	}
	return lines, nil
}

// maxSkills bounds the skills in the folder.
const maxSkills = 100

// Reasons why a skill is left.
var (
	errKnown      = errors.New("is there already")
	errOtherSkill = errors.New("there is another skill of that name")
	errManySkills = fmt.Errorf("there are %d skills already, which is the limit", maxSkills)
)

func (m Mover) takeSkills(ctx context.Context, found *Found) (lines []Line, err error) {
	present, err := os.ReadDir(m.SkillsDir)
	if err != nil && !isAbsent(err) {
		return nil, fmt.Errorf("read the folder of skills: %w", err)
	}
	count := len(present)
	for _, skill := range found.Skills {
		path := filepath.Join(m.SkillsDir, skill.Name, skillFile)
		reason := error(nil)
		switch content, err := os.ReadFile(path); {
		case err == nil && bytes.Equal(content, skill.Content):
			reason = errKnown
		case err == nil, skills.IsBuiltin(skill.Name):
			reason = errOtherSkill
		case !isAbsent(err):
			return lines, fmt.Errorf("read a skill: %w", err)
		case count >= maxSkills:
			reason = errManySkills
		default:
			count++
		}
		if reason == nil && !m.DryRun {
			if err := m.storeSkill(ctx, skill, path); err != nil {
				return lines, err
			}
		}
		lines = append(lines, lineOf(KindSkill, skill.Name, skill.Remark, reason, errKnown))
	}
	return lines, nil
}

// storeSkill stores a skill, switched off before it is there.
func (m Mover) storeSkill(ctx context.Context, skill foundSkill, path string) error {
	if err := m.Settings.Switches.SetSkill(ctx, skill.Name, false); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("make the folder of a skill: %w", err)
	}
	if err := errors.Join(disk.Sync(m.SkillsDir), disk.Replace(path, skill.Content)); err != nil {
		return fmt.Errorf("write a skill: %w", err)
	}
	return nil
}

func (m Mover) takeSchedules(ctx context.Context, found *Found) (lines []Line, err error) {
	user, chat, err := m.findOwner(ctx)
	if err != nil {
		return nil, err
	}
	reason := error(nil)
	if user == "" {
		reason = errNoOwner
	} else if chat == (chats.Chat{}) {
		reason = fmt.Errorf("the direct chat with %s is not known: they have to write to the bot first", user)
	}
	var tasks []schedule.Task
	for _, s := range found.Schedules {
		if reason != nil {
			lines = append(lines, lineOf(KindSchedule, s.Name, "", reason))
			continue
		}
		tasks = append(tasks, schedule.Task{
			ID: stableID(s.Seed, user), Owner: user, Chat: chat.String(), User: user, Direct: true, Name: s.Name, Prompt: s.Prompt, Plan: s.Plan,
		})
	}
	reasons, err := m.Schedule.Import(ctx, tasks, !m.DryRun)
	if err != nil {
		return lines, err
	}
	for i, reason := range reasons {
		text := tasks[i].Plan.String()
		if target := found.Schedules[i].Target; target != "" && target != chat.String() {
			text += "; its answers went to " + wording.OneLine(target, maxShown) + ", and will come to " + chat.String()
		}
		lines = append(lines, lineOf(KindSchedule, tasks[i].Name, text, reason, schedule.ErrKnown))
	}
	return lines, nil
}

func (m Mover) takeServers(ctx context.Context, found *Found) (lines []Line, err error) {
	var offers []connections.Offer
	for _, s := range found.Servers {
		offers = append(offers, connections.Offer{Name: s.Name, URL: s.URL, OfferedAt: m.Now()})
	}
	reasons, err := connections.ImportOffers(ctx, m.Store, offers, !m.DryRun)
	for i, reason := range reasons {
		lines = append(lines, lineOf(KindServer, offers[i].Name, wording.OneLine(offers[i].Host(), maxShown), reason, connections.ErrKnown))
	}
	return lines, err
}
