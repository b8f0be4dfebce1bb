package moving

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"oneclaw/internal/wording"
	"oneclaw/toolgroups/memory"
	"oneclaw/toolgroups/schedule"
)

// hermesLeft says why parts of Hermes' folder are left.
var hermesLeft = map[string]string{
	".env":          leftKeys,
	"auth.json":     leftKeys,
	"backups":       leftOwn,
	"cache":         leftOwn,
	"cron":          leftSchedules,
	"gateway":       leftOwn,
	"hooks":         leftPrograms,
	"logs":          leftOwn,
	"mcp-tokens":    "sign-ins of the other bot: people sign in again with /connect",
	"pairing":       leftPeople,
	"platforms":     leftPeople,
	"plugins":       leftPrograms,
	"profiles":      "each profile is a folder of its own: import it like this one",
	"scripts":       leftPrograms,
	"sessions":      leftSessions,
	"SOUL.md":       leftCharacter,
	"state.db":      leftSessions,
	"hermes-agent":  leftPrograms,
	"image_cache":   leftOwn,
	"audio_cache":   leftOwn,
	"sandboxes":     leftOwn,
	"state.db-wal":  leftSessions,
	"state.db-shm":  leftSessions,
	"gateway.pid":   leftOwn,
	"gateway.lock":  leftOwn,
	"memory_backup": leftOwn,
}

// hermesAreas says why parts of config.yaml are left.
var hermesAreas = map[string]string{"custom_providers": leftKeys, "model": leftKeys, "providers": leftKeys}

// hermes is the folder of a Hermes Agent, while it is read.
type hermes struct {
	*Found

	dir    *folder
	config areas
	zone   word
}

// readHermes reads the folder of a Hermes Agent, such as ~/.hermes, and a file with its schedules, if any. It
// changes nothing there. The error says why nothing could be read.
func readHermes(dir *folder, schedules []byte) (*Found, error) {
	h := hermes{Found: &Found{}, dir: dir}
	data, err := h.dir.file("config.yaml")
	if isAbsent(err) {
		return nil, errors.New("there is no config.yaml in it: name the folder that Hermes Agent keeps its data in, such as ~/.hermes")
	}
	var faults map[string]error
	if err == nil {
		h.config, faults, err = parseYAML(data)
	}
	if err != nil {
		return nil, errors.New("config.yaml: " + err.Error())
	}
	for _, name := range slices.Sorted(maps.Keys(faults)) {
		h.leaveError(KindOther, name, faults[name])
	}
	h.leaveAreas(h.config, hermesAreas)
	h.leaveError(KindSchedule, "timezone", h.config.decode(&h.zone, "timezone"))
	h.readServers()
	h.readSchedules(schedules)
	h.addNotes(h.dir, "memories/USER.md", memory.SectionProfile)
	h.addNotes(h.dir, "memories/MEMORY.md", memory.SectionNotes)
	h.readSkills()
	used := []string{"config.yaml", "memories", "skills"}
	if schedules != nil {
		used = append(used, "cron")
	}
	h.leaveRest(h.dir, ".", hermesLeft, used)
	return h.Found, nil
}

func (h *hermes) readServers() {
	var servers map[string]serverConfig
	h.leaveError(KindServer, "mcp_servers", h.config.decode(&servers, "mcp_servers"))
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		h.addServer(name, servers[name])
	}
}

// hermesJob is a job of Hermes' scheduler.
type hermesJob struct {
	ID       word `json:"id"`
	Name     word `json:"name"`
	Prompt   word `json:"prompt"`
	Script   word `json:"script"`
	NoAgent  bool `json:"no_agent"`
	Deliver  word `json:"deliver"`
	Timezone word `json:"timezone"`
	Schedule struct {
		Kind    word    `json:"kind"`
		Expr    word    `json:"expr"`
		RunAt   word    `json:"run_at"`
		Minutes float64 `json:"minutes"`
	} `json:"schedule"`
}

// plan returns when a job runs.
func (j hermesJob) plan(zone word) (schedule.Plan, error) {
	zone = cmp.Or(j.Timezone, zone)
	switch s := j.Schedule; s.Kind {
	case "once":
		return planAt(string(s.RunAt), string(zone))
	case "interval":
		return planEvery(time.Duration(min(s.Minutes, 1e9)) * time.Minute)
	case "cron":
		return planCron(string(s.Expr), string(zone))
	}
	return schedule.Plan{}, errors.New("its kind of schedule is not known here")
}

// readSchedules reads Hermes' file of schedules.
func (h *hermes) readSchedules(data []byte) {
	if data == nil {
		return
	}
	var file struct {
		Jobs []json.RawMessage `json:"jobs"`
	}
	h.leaveError(KindSchedule, "--schedules", json.Unmarshal(data, &file))
	for _, raw := range file.Jobs {
		var j hermesJob
		if err := json.Unmarshal(raw, &j); err != nil {
			h.leave(KindSchedule, string(j.ID), "%v", err)
			continue
		}
		plan, reason := j.plan(h.zone)
		if j.Script != "" || j.NoAgent {
			reason = errors.New("it runs a program, not a request to the bot")
		}
		s := foundSchedule{Seed: "hermes/" + string(j.ID), Name: string(j.Name), Prompt: string(j.Prompt), Plan: plan}
		if strings.Contains(string(j.Deliver), ":") {
			s.Target = string(j.Deliver)
		}
		h.addSchedule(s, reason)
	}
}

// maxDepth bounds the folders of categories above a skill.
const maxDepth = 3

// readSkills reads the skills, except those that come with Hermes.
func (h *hermes) readSkills() {
	bundled := map[string]bool{}
	data, err := h.dir.file("skills/.bundled_manifest")
	h.leaveError(KindSkill, "skills/.bundled_manifest", err)
	for line := range strings.Lines(string(data)) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), ":")
		bundled[name] = true
	}
	count := 0
	h.walkSkills("skills", maxDepth, func(dir, name string) bool {
		if bundled[name] {
			count++
			return true
		}
		return h.readSkill(h.dir, dir+"/"+name)
	})
	if count > 0 {
		h.leave(KindSkill, "skills that come with Hermes", "%s of Hermes' own", wording.Plural(count, "skill", "skills"))
	}
}

// walkSkills calls visit for each folder, and enters those for which it returns false.
func (h *hermes) walkSkills(dir string, depth int, visit func(dir, name string) bool) {
	names, err := h.dir.names(dir)
	h.leaveError(KindSkill, dir, err)
	for _, name := range names {
		if strings.HasPrefix(name, ".") {
			continue
		}
		info, err := h.dir.check(dir + "/" + name)
		switch {
		case err != nil:
			h.leaveError(KindSkill, dir+"/"+name, err)
		case info.IsDir() && !visit(dir, name) && depth > 1:
			h.walkSkills(dir+"/"+name, depth-1, visit)
		}
	}
}
