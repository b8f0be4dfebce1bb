package moving

import (
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"oneclaw/toolgroups/memory"
	"oneclaw/toolgroups/schedule"
)

// skillFile is the file of a skill.
const skillFile = "SKILL.md"

func isAbsent(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// openClawWorkspaces are the folders in which OpenClaw's default agent has its files.
var openClawWorkspaces = []string{"workspace", "workspace-main", "workspace.default"}

// openClawLeft says why parts of OpenClaw's folder are left.
var openClawLeft = map[string]string{
	"agents":       leftSessions,
	"browser":      leftOwn,
	"credentials":  leftPeople,
	"cron":         leftSchedules,
	"devices":      leftOwn,
	"extensions":   leftPrograms,
	"hooks":        leftPrograms,
	"identity":     leftOwn,
	"logs":         leftOwn,
	"media":        "files of conversations; send the bot those that it shall have",
	"plugins":      leftPrograms,
	"sandbox":      leftOwn,
	"sessions":     leftSessions,
	"state":        "a database with conversations, pairings, keys and schedules, which is not read",
	".env":         leftKeys,
	"AGENTS.md":    leftCharacter,
	"BOOTSTRAP.md": leftCharacter,
	"HEARTBEAT.md": "what its agent looked after: ask the bot for a schedule",
	"IDENTITY.md":  leftCharacter,
	"SOUL.md":      leftCharacter,
	"TOOLS.md":     "notes about its tools, which are others here",
}

// openClawAreas says why parts of openclaw.json are left.
var openClawAreas = map[string]string{"accessGroups": leftPeople, "channels": leftPeople, "commands": leftPeople, "env": leftKeys, "models": leftKeys, "secrets": leftKeys}

// openClaw is the folder of an OpenClaw, while it is read.
type openClaw struct {
	*Found

	dir    *folder
	config areas
}

// readOpenClaw reads the folder of an OpenClaw, such as ~/.openclaw, its workspace, if that is elsewhere, and
// the schedules that it has printed, if any. It changes nothing there. The error says why nothing could be read.
func readOpenClaw(dir, workspace *folder, schedules []byte) (*Found, error) {
	c := openClaw{Found: &Found{}, dir: dir}
	name, err := c.readConfig()
	if err != nil {
		return nil, err
	}
	c.leaveAreas(c.config, openClawAreas)
	c.readServers()
	c.readSchedules(schedules)
	c.readSkills(c.dir, "skills")
	var at string
	if workspace != nil {
		workspace.size, workspace.entries = dir.size, dir.entries
		c.readWorkspace(workspace, ".")
	} else if at = c.findWorkspace(); at != "" {
		c.readWorkspace(c.dir, at)
	}
	c.leaveRest(c.dir, ".", openClawLeft, []string{name, "skills", at})
	return c.Found, nil
}

// readConfig reads openclaw.json, or the file of an earlier name.
func (c *openClaw) readConfig() (name string, err error) {
	for _, name = range []string{"openclaw.json", "clawdbot.json", "moltbot.json"} {
		var data []byte
		if data, err = c.dir.file(name); isAbsent(err) {
			continue
		}
		if err == nil {
			data, err = toJSON(data)
		}
		if err == nil {
			err = json.Unmarshal(data, &c.config)
		}
		if err != nil {
			return "", errors.New(name + ": " + err.Error())
		}
		return name, nil
	}
	return "", errors.New("there is no openclaw.json in it: name the folder that OpenClaw keeps its data in, such as ~/.openclaw")
}

func (c *openClaw) readServers() {
	var servers map[string]serverConfig
	c.leaveError(KindServer, "mcp.servers", c.config.decode(&servers, "mcp", "servers"))
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		c.addServer(name, servers[name])
	}
}

// openClawJob is a job of OpenClaw's scheduler.
type openClawJob struct {
	ID       word `json:"id"`
	Name     word `json:"name"`
	Schedule struct {
		Kind, At, Expr, TZ word
		EveryMs            float64
	} `json:"schedule"`
	Payload struct {
		Kind, Text, Message word
	} `json:"payload"`
	Delivery struct {
		Mode, Channel, To word
	} `json:"delivery"`
	// DeclarationKey is set for jobs that OpenClaw or its extensions have made for themselves, Trigger for those
	// that run only when a script says so.
	DeclarationKey word            `json:"declarationKey"`
	Trigger        json.RawMessage `json:"trigger"`
}

// plan returns when a job runs.
func (j openClawJob) plan() (schedule.Plan, error) {
	switch s := j.Schedule; s.Kind {
	case "at":
		return planAt(string(s.At), "UTC")
	case "every":
		return planEvery(time.Duration(min(s.EveryMs, 1e12)) * time.Millisecond)
	case "cron":
		return planCron(string(s.Expr), string(s.TZ))
	}
	return schedule.Plan{}, errors.New("its kind of schedule is not known here")
}

// reason returns why a job has no place here.
func (j openClawJob) reason() error {
	switch {
	case j.DeclarationKey != "":
		return errors.New("it is a job of the other bot itself")
	case len(j.Trigger) > 0 && string(j.Trigger) != "null":
		return errors.New("a script of the other bot decides whether it runs: ask the bot for a schedule, with the condition in words")
	case j.Payload.Kind != "agentTurn" && j.Payload.Kind != "systemEvent":
		return errors.New("it runs a program, not a request to the bot")
	}
	return nil
}

// readSchedules reads what OpenClaw prints as its schedules.
func (c *openClaw) readSchedules(data []byte) {
	if data == nil {
		c.leave(KindSchedule, "schedules", "OpenClaw keeps them in a database: run 'openclaw cron list --all --json > schedules.json', and import again with --schedules schedules.json")
		return
	}
	var file struct {
		Jobs    []json.RawMessage `json:"jobs"`
		HasMore bool              `json:"hasMore"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		c.leave(KindSchedule, "--schedules", "it is not what 'openclaw cron list --all --json' prints: %v", err)
		return
	}
	if file.HasMore {
		c.leave(KindSchedule, "--schedules", "it is the first page of the list: OpenClaw has more schedules than these %d", len(file.Jobs))
	}
	for _, raw := range file.Jobs {
		var j openClawJob
		if err := json.Unmarshal(raw, &j); err != nil {
			c.leave(KindSchedule, string(j.ID), "%v", err)
			continue
		}
		plan, reason := j.plan()
		s := foundSchedule{Seed: "openclaw/" + string(j.ID), Name: string(j.Name), Prompt: string(cmp.Or(j.Payload.Message, j.Payload.Text)), Plan: plan}
		if j.Delivery.To != "" {
			s.Target = strings.Trim(string(j.Delivery.Channel+":"+j.Delivery.To), ":")
		}
		c.addSchedule(s, cmp.Or(j.reason(), reason))
	}
}

// findWorkspace returns the folder of the default agent's files.
func (c *openClaw) findWorkspace() string {
	var at word
	c.leaveError(KindMemory, "agents.defaults.workspace", c.config.decode(&at, "agents", "defaults", "workspace"))
	for _, name := range openClawWorkspaces {
		if at != "" && !strings.HasSuffix(strings.TrimRight(string(at), "/"), "/"+name) {
			continue
		}
		if info, err := c.dir.check(name); err == nil && info.IsDir() {
			return name
		} else if err != nil {
			c.leaveError(KindMemory, name, err)
		}
	}
	if at != "" {
		c.leave(KindMemory, string(at), "the workspace is not in this folder: name it with --workspace")
	}
	return ""
}

// readWorkspace reads memory and skills of an agent.
func (c *openClaw) readWorkspace(from *folder, dir string) {
	c.addNotes(from, dir+"/USER.md", memory.SectionProfile)
	c.addNotes(from, dir+"/MEMORY.md", memory.SectionNotes)
	days, err := from.names(dir + "/memory")
	c.leaveError(KindMemory, dir+"/memory", err)
	for _, day := range days {
		if strings.HasSuffix(day, ".md") {
			c.addNotes(from, dir+"/memory/"+day, memory.SectionNotes)
		} else {
			c.leave(KindMemory, dir+"/memory/"+day, "it is not a file of notes")
		}
	}
	c.readSkills(from, dir+"/skills")
	c.readSkills(from, dir+"/.agents/skills")
	c.leaveRest(from, dir, openClawLeft, []string{"USER.md", "MEMORY.md", "memory", "skills", ".agents", ".git", ".openclaw"})
}

// readSkills reads the skills in a folder.
func (c *openClaw) readSkills(from *folder, dir string) {
	names, err := from.names(dir)
	c.leaveError(KindSkill, dir, err)
	for _, name := range names {
		c.readSkill(from, dir+"/"+name)
	}
}

// leaveRest notes each entry of a folder that is not in used as left, with the reason if that is known.
func (f *Found) leaveRest(from *folder, dir string, reasons map[string]string, used []string) {
	names, err := from.names(dir)
	f.leaveError(KindOther, dir, err)
	for _, name := range names {
		if !slices.Contains(used, name) {
			reason := cmp.Or(reasons[name], "there is no place for it here")
			if strings.HasPrefix(name, "workspace") {
				reason = "the files of another agent: name them with --workspace"
			}
			f.leave(KindOther, strings.TrimPrefix(dir+"/"+name, "./"), "%s", reason)
		}
	}
}
