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
	"auth.json":     "sign-ins of the other bot, which are no keys",
	"backups":       "copies of the other bot",
	"cache":         "what the other bot did",
	"gateway":       "what the other bot did",
	"hooks":         "programs of the other bot",
	"logs":          "what the other bot did",
	"mcp-tokens":    "sign-ins of the other bot: people sign in again with /connect",
	"plugins":       "programs of the other bot",
	"profiles":      "each profile is a folder of its own: import it like this one",
	"scripts":       "programs of the other bot",
	"sessions":      "conversations stay with the other bot",
	"SOUL.md":       "its character: an agent here gets it with create_agent",
	"state.db":      "conversations stay with the other bot",
	"hermes-agent":  "the other bot itself",
	"image_cache":   "what the other bot did",
	"audio_cache":   "what the other bot did",
	"sandboxes":     "what the other bot did",
	"state.db-wal":  "conversations stay with the other bot",
	"state.db-shm":  "conversations stay with the other bot",
	"gateway.pid":   "what the other bot did",
	"gateway.lock":  "what the other bot did",
	"memory_backup": "copies of the other bot",
}

// hermes is the folder of a Hermes Agent, while it is read.
type hermes struct {
	*Found

	dir    *folder
	config areas
	env    map[string]string
	zone   word
}

// readHermes reads the folder of a Hermes Agent, such as ~/.hermes. It changes nothing there. The error
// says why nothing could be read.
func readHermes(dir *folder) (*Found, error) {
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
	env, err := h.dir.file(".env")
	h.leaveError(KindOther, ".env", err)
	h.env = parseEnv(env)
	h.leaveError(KindSchedule, "timezone", h.config.decode(&h.zone, "timezone"))
	h.readModels()
	h.readPeople()
	h.readServers()
	h.readSchedules()
	h.addNotes(h.dir, "memories/USER.md", memory.SectionProfile)
	h.addNotes(h.dir, "memories/MEMORY.md", memory.SectionNotes)
	h.readSkills()
	h.leaveRest(h.dir, ".", hermesLeft, []string{"config.yaml", ".env", "memories", "skills", "cron", "pairing", "platforms"})
	return h.Found, nil
}

// hermesProvider is a provider of Hermes, by any of the names that its versions have given to the fields.
type hermesProvider struct {
	Name    word   `json:"name"`
	BaseURL word   `json:"base_url"`
	URL     word   `json:"url"`
	API     word   `json:"api"`
	APIMode word   `json:"api_mode"`
	Key     secret `json:"api_key"`
	KeyEnv  word   `json:"key_env"`
	KeyEnv2 word   `json:"api_key_env"`
}

func (h *hermes) addHermesProvider(id string, p hermesProvider) {
	url, api := cmp.Or(p.BaseURL, p.URL), p.APIMode
	if url == "" && strings.Contains(string(p.API), "://") {
		url = p.API
	}
	if variable := cmp.Or(p.KeyEnv, p.KeyEnv2); p.Key == (secret{}) && variable != "" {
		p.Key = secret{variable: string(variable)}
	}
	h.addProvider("hermes", providerConfig{id: id, url: string(url), api: string(api), key: p.Key}, h.env)
}

// readModels reads providers and keys.
func (h *hermes) readModels() {
	var byID map[string]hermesProvider
	h.leaveError(KindProvider, "providers", h.config.decode(&byID, "providers"))
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		h.addHermesProvider(id, byID[id])
	}
	var custom []hermesProvider
	h.leaveError(KindProvider, "custom_providers", h.config.decode(&custom, "custom_providers"))
	for _, p := range custom {
		h.addHermesProvider(cmp.Or(string(p.Name), string(p.BaseURL)), p)
	}
	var model struct {
		hermesProvider

		Default, Model, Provider word
	}
	var name word
	if h.config.decode(&name, "model") != nil {
		h.leaveError(KindProvider, "model", h.config.decode(&model, "model"))
	}
	if model.BaseURL != "" {
		h.addHermesProvider(cmp.Or(string(model.Provider), string(model.BaseURL)), model.hermesProvider)
	}
	h.addServices("hermes", h.env)
	if name = cmp.Or(name, model.Default, model.Model); name != "" {
		h.leave(KindProvider, "model "+string(name), "providers arrive switched off: switch one on and choose the model in a chat (/model)")
	}
}

// readPeople reads who may talk to the bot, from the environment and by pairing.
func (h *hermes) readPeople() {
	for _, name := range slices.Sorted(maps.Keys(h.env)) {
		platform, ok := strings.CutSuffix(name, "_ALLOWED_USERS")
		if !ok {
			if slices.Contains([]string{"TELEGRAM_BOT_TOKEN", "SLACK_BOT_TOKEN", "SLACK_APP_TOKEN"}, name) {
				h.leaveTokens(name)
			}
			continue
		}
		for id := range strings.SplitSeq(h.env[name], ",") {
			h.addPerson(strings.ToLower(platform), id, "")
		}
	}
	for _, dir := range []string{"platforms/pairing", "pairing"} {
		names, err := h.dir.names(dir)
		h.leaveError(KindPerson, dir, err)
		for _, name := range names {
			platform, ok := strings.CutSuffix(name, "-approved.json")
			if !ok {
				continue
			}
			var approved map[string]struct {
				Name word `json:"user_name"`
			}
			data, err := h.dir.file(dir + "/" + name)
			if err == nil {
				err = json.Unmarshal(data, &approved)
			}
			h.leaveError(KindPerson, dir+"/"+name, err)
			for _, id := range slices.Sorted(maps.Keys(approved)) {
				h.addPerson(platform, id, string(approved[id].Name))
			}
		}
	}
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

func (h *hermes) readSchedules() {
	const name = "cron/jobs.json"
	data, err := h.dir.file(name)
	if err != nil {
		h.leaveError(KindSchedule, name, err)
		return
	}
	var file struct {
		Jobs []json.RawMessage `json:"jobs"`
	}
	h.leaveError(KindSchedule, name, json.Unmarshal(data, &file))
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
