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
	"agents":       "conversations and sign-ins stay; of it, only keys are read",
	"browser":      "the other bot's browser",
	"devices":      "the other bot's own apps",
	"extensions":   "programs of the other bot",
	"hooks":        "programs of the other bot",
	"identity":     "the other bot's own keys",
	"logs":         "what the other bot did",
	"media":        "files of conversations; send the bot those that it shall have",
	"plugins":      "programs of the other bot",
	"sandbox":      "what the other bot did",
	"sessions":     "conversations stay with the other bot",
	"state":        "a database, in which versions from June 2026 on keep schedules, pairings and keys: write the schedules to cron/jobs.json with 'openclaw cron list --all --json', and import again",
	"AGENTS.md":    "instructions of its agent: an agent here gets instructions with create_agent",
	"BOOTSTRAP.md": "instructions of its agent: an agent here gets instructions with create_agent",
	"HEARTBEAT.md": "what its agent looked after: ask the bot for a schedule",
	"IDENTITY.md":  "its name and character: an agent here gets them with create_agent",
	"SOUL.md":      "its character: an agent here gets it with create_agent",
	"TOOLS.md":     "notes about its tools, which are others here",
}

// openClaw is the folder of an OpenClaw, while it is read.
type openClaw struct {
	*Found

	dir    *folder
	config areas
	env    map[string]string
}

// readOpenClaw reads the folder of an OpenClaw, such as ~/.openclaw, and its workspace, if that is
// elsewhere. It changes nothing there. The error says why nothing could be read.
func readOpenClaw(dir, workspace *folder) (*Found, error) {
	c := openClaw{Found: &Found{}, dir: dir, env: map[string]string{}}
	name, err := c.readConfig()
	if err != nil {
		return nil, err
	}
	used := []string{name, ".env", "cron", "credentials", "skills"}
	c.readEnv()
	c.readModels()
	c.readChannels()
	c.readServers()
	c.readSchedules()
	c.readSkills(c.dir, "skills")
	var at string
	if workspace != nil {
		workspace.size, workspace.entries = dir.size, dir.entries
		c.readWorkspace(workspace, ".")
	} else if at = c.findWorkspace(); at != "" {
		c.readWorkspace(c.dir, at)
	}
	c.leaveRest(c.dir, ".", openClawLeft, append(used, at))
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

// readEnv reads the variables of OpenClaw: its .env, and those in the configuration.
func (c *openClaw) readEnv() {
	data, err := c.dir.file(".env")
	c.leaveError(KindOther, ".env", err)
	var inline map[string]json.RawMessage
	var vars map[string]word
	c.leaveError(KindOther, "env", errors.Join(c.config.decode(&inline, "env"), c.config.decode(&vars, "env", "vars")))
	for name, raw := range inline {
		var value word
		if json.Unmarshal(raw, &value) == nil {
			c.env[name] = string(value)
		}
	}
	for name, value := range vars {
		c.env[name] = string(value)
	}
	maps.Copy(c.env, parseEnv(data))
}

// readModels reads providers and keys.
func (c *openClaw) readModels() {
	var providers map[string]struct {
		BaseURL word   `json:"baseUrl"`
		API     word   `json:"api"`
		Key     secret `json:"apiKey"`
	}
	c.leaveError(KindProvider, "models.providers", c.config.decode(&providers, "models", "providers"))
	for _, id := range slices.Sorted(maps.Keys(providers)) {
		p := providers[id]
		c.addProvider("openclaw", providerConfig{id: id, url: string(p.BaseURL), api: string(p.API), key: p.Key}, c.env)
	}
	agents, err := c.dir.names("agents")
	c.leaveError(KindProvider, "agents", err)
	for _, agent := range agents {
		c.readProfiles("agents/" + agent + "/agent/auth-profiles.json")
	}
	c.addServices("openclaw", c.env)
	var model struct{ Primary word }
	var name word
	if c.config.decode(&name, "agents", "defaults", "model") != nil {
		_ = c.config.decode(&model, "agents", "defaults", "model") // neither form: there is none
	}
	if name = cmp.Or(name, model.Primary); name != "" {
		c.leave(KindProvider, "model "+string(name), "providers arrive switched off: switch one on and choose the model in a chat (/model)")
	}
}

// readProfiles reads the keys of an agent.
func (c *openClaw) readProfiles(name string) {
	data, err := c.dir.file(name)
	if err != nil {
		c.leaveError(KindProvider, name, err)
		return
	}
	var file struct {
		Profiles map[string]struct {
			Type     word   `json:"type"`
			Provider word   `json:"provider"`
			Key      secret `json:"key"`
		} `json:"profiles"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		c.leave(KindProvider, name, "%v", err)
		return
	}
	for _, id := range slices.Sorted(maps.Keys(file.Profiles)) {
		p := file.Profiles[id]
		if p.Type != "api_key" {
			c.leave(KindProvider, id, "it is a sign-in of the other bot, not a key")
			continue
		}
		c.addProvider("openclaw", providerConfig{id: string(p.Provider), key: p.Key}, c.env)
	}
}

// channelConfig is a channel of OpenClaw, or one of its accounts.
type channelConfig struct {
	BotToken      secret `json:"botToken"`
	AppToken      secret `json:"appToken"`
	AllowFrom     words  `json:"allowFrom"`
	AllowInGroups words  `json:"groupAllowFrom"`
	Direct        struct {
		AllowFrom words `json:"allowFrom"`
	} `json:"dm"`
}

// readChannels reads who may talk to the bot, in the configuration and by pairing.
func (c *openClaw) readChannels() {
	var owners words
	c.leaveError(KindPerson, "commands.ownerAllowFrom", c.config.decode(&owners, "commands", "ownerAllowFrom"))
	for _, owner := range owners {
		platform, id, named := strings.Cut(owner, ":")
		if !named {
			c.leave(KindPerson, owner, "it does not name a platform; /whoami shows people their ids")
			continue
		}
		c.addPerson(platform, id, "")
	}
	var channels map[string]json.RawMessage
	c.leaveError(KindPerson, "channels", c.config.decode(&channels, "channels"))
	for _, platform := range slices.Sorted(maps.Keys(channels)) {
		if platform == "defaults" {
			continue
		}
		var one struct {
			channelConfig

			Accounts map[string]channelConfig `json:"accounts"`
		}
		if err := json.Unmarshal(channels[platform], &one); err != nil {
			c.leave(KindPerson, "channels."+platform, "%v", err)
			continue
		}
		c.readChannel(platform, one.channelConfig)
		for _, account := range slices.Sorted(maps.Keys(one.Accounts)) {
			c.readChannel(platform, one.Accounts[account])
		}
	}
	files, err := c.dir.names("credentials")
	c.leaveError(KindPerson, "credentials", err)
	for _, name := range files {
		if platform, _, ok := strings.Cut(name, "-"); ok && strings.HasSuffix(name, "-allowFrom.json") {
			c.readPairing("credentials/"+name, platform)
		}
	}
}

func (c *openClaw) readChannel(platform string, one channelConfig) {
	for _, id := range slices.Concat(one.AllowFrom, one.Direct.AllowFrom, one.AllowInGroups) {
		c.addPerson(platform, id, "")
	}
	if one.BotToken != (secret{}) || one.AppToken != (secret{}) {
		c.leaveTokens("tokens of " + platform)
	}
}

// readPairing reads the people who were paired on a platform.
func (c *openClaw) readPairing(name, platform string) {
	data, err := c.dir.file(name)
	var file struct {
		AllowFrom words `json:"allowFrom"`
	}
	if err == nil {
		err = json.Unmarshal(data, &file)
	}
	c.leaveError(KindPerson, name, err)
	for _, id := range file.AllowFrom {
		c.addPerson(platform, id, "")
	}
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

func (c *openClaw) readSchedules() {
	const name = "cron/jobs.json"
	data, err := c.dir.file(name)
	if err != nil {
		c.leaveError(KindSchedule, name, err)
		return
	}
	var file struct {
		Jobs []json.RawMessage `json:"jobs"`
	}
	if data, err = toJSON(data); err == nil {
		err = json.Unmarshal(data, &file)
	}
	c.leaveError(KindSchedule, name, err)
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
		if j.Payload.Kind != "agentTurn" && j.Payload.Kind != "systemEvent" {
			reason = errors.New("it runs a program, not a request to the bot")
		}
		c.addSchedule(s, reason)
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
