package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"oneclaw/bridge/provenance"
	"oneclaw/internal/config"
	"oneclaw/internal/connections"
	"oneclaw/internal/models"
	"oneclaw/internal/readable"
	"oneclaw/internal/rescue"
	"oneclaw/internal/retry"
	"oneclaw/internal/sandbox"
	"oneclaw/internal/settings"
	"oneclaw/internal/wording"
	"oneclaw/storage"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/background"
	"oneclaw/toolgroups/browser"
	configtools "oneclaw/toolgroups/config"
	"oneclaw/toolgroups/core"
	"oneclaw/toolgroups/documents"
	"oneclaw/toolgroups/google"
	"oneclaw/toolgroups/images"
	"oneclaw/toolgroups/jstools"
	"oneclaw/toolgroups/mcp"
	"oneclaw/toolgroups/memory"
	"oneclaw/toolgroups/pdf"
	"oneclaw/toolgroups/questions"
	"oneclaw/toolgroups/schedule"
	"oneclaw/toolgroups/skills"
)

// catalogue owns the program's tools. Only the catalogue replaces the registry, when a switch, a user
// tool or an MCP server changes the tools.
type catalogue struct {
	log       *slog.Logger
	settings  *settings.Settings
	vault     *settings.Vault
	core      []toolgroups.Tool
	groups    []toolgroups.Group
	pdf       *pdf.PDF
	userTools *jstools.Tools
	mcp       *mcp.Client
	// connections has the commands for accounts, and the MCP servers added in chats.
	connections *connections.Handler
	google      *google.Google
	skills      *skills.Library
	memory      *memory.Memory
	reader      *readable.Reader // shared by all tools that read pages
	browser     *browser.Browser
	schedule    *schedule.Schedule

	logLevel *slog.LevelVar

	buildMu  sync.Mutex
	registry atomic.Pointer[toolgroups.Registry]
}

// newCatalogue builds all tools. Expensive components start with their first call. submit is called with
// the runs of scheduled tasks, tell with notices to administrators; nameOf returns the names of people, platformZone the
// time zones that platforms know; tasks returns the runner of background tasks, which need not exist yet.
func newCatalogue(cfg config.Config, store storage.Store, files *storedFiles, m *models.Models, submit func(context.Context, schedule.Run) error, nameOf func(user string) string, platformZone func(ctx context.Context, user string) string, tasks func() background.Tasks, tell func(ctx context.Context, key, text string) error, log *slog.Logger) (*catalogue, error) {
	private, err := cfg.AllowPrivate()
	if err != nil {
		return nil, err
	}
	c := &catalogue{log: log, settings: m.Settings, vault: m.Vault, logLevel: cfg.LogLevel}
	if c.reader, err = readable.NewReader(log); err != nil {
		return nil, err
	}
	zone := zoneOf(m.Settings, cfg.Zone())
	if err := c.addKnowledge(cfg, store, private, zone); err != nil {
		return nil, err
	}
	personal := func(ctx context.Context, scope toolgroups.Scope) string {
		if scope.Outsider {
			return "" // the facts are the owner's
		}
		return cmp.Or(c.memory.ZoneOf(ctx, scope), platformZone(ctx, scope.User))
	}
	locate := func(ctx context.Context, scope toolgroups.Scope) *time.Location {
		if found, err := wording.LoadZone(personal(ctx, scope)); err == nil {
			return found
		}
		return zone()
	}
	exec := cfg.Tools.Exec
	exec.MaxTotalMemory, exec.DataDir = cfg.Tools.ExecMemoryMiB<<20, cfg.DataDir
	basics, err := core.New(core.Config{
		Location: locate, Now: cfg.Runtime.Now, AllowPrivate: private, Resolver: cfg.Runtime.Resolver, History: history{store: store, memory: c.memory}, Logger: log,
		Reader: c.reader, CacheDir: cfg.CachePath(),
		Exec: exec,
	})
	if err != nil {
		return nil, fmt.Errorf("core tools: %w", err)
	}
	c.core = append(c.core, basics...)
	if c.pdf, err = pdf.New(pdf.Config{CacheDir: cfg.CachePath(), Now: cfg.Runtime.Now, Logger: log}); err != nil {
		return nil, fmt.Errorf("pdf tools: %w", err)
	}
	if c.schedule, err = schedule.New(schedule.Config{
		Store: store, Submit: submit, Location: zone, ZoneOf: personal, Now: cfg.Runtime.Now, Logger: log, NameOf: nameOf, Identify: c.identify, Hosts: provenance.Hosts,
	}); err != nil {
		return nil, fmt.Errorf("scheduled tasks: %w", err)
	}
	if err := c.addConfig(m); err != nil {
		return nil, err
	}
	if err := c.addDocuments(); err != nil {
		return nil, err
	}
	remembered, err := c.memory.Group()
	if err != nil {
		return nil, fmt.Errorf("memory tools: %w", err)
	}
	inBackground, err := background.Group(background.Config{Tasks: tasks, Registry: c.Registry, FindModel: m.FindForTask, Now: cfg.Runtime.Now})
	if err != nil {
		return nil, fmt.Errorf("background tasks: %w", err)
	}
	asking, err := questions.Group()
	if err != nil {
		return nil, fmt.Errorf("questions: %w", err)
	}
	c.groups = append(c.groups, c.schedule.Group(), remembered, inBackground, asking)
	if c.google, err = OpenGoogle(cfg, store, c.reader, locate, c.log); err != nil {
		return nil, err
	}
	if err := c.addUserTools(cfg, files.toolSync(), m.Vault, private); err != nil {
		return nil, err
	}
	if err := c.addGoogle(cfg); err != nil {
		return nil, err
	}
	if err := c.addWebSearch(cfg, m, private); err != nil {
		return nil, err
	}
	if err := c.addImages(cfg, m); err != nil {
		return nil, err
	}
	if err := c.addServers(cfg, store, private, tell); err != nil {
		return nil, err
	}
	if err := c.userTools.Reload(); err != nil { // all reserved names are known only now
		return nil, fmt.Errorf("user tools: %w", err)
	}
	return c, c.rebuild(context.Background())
}

// addKnowledge adds the tools for skills, memory and the browser.
func (c *catalogue) addKnowledge(cfg config.Config, store storage.KV, private []netip.Prefix, zone func() *time.Location) (err error) {
	if c.skills, err = skills.New(skills.Config{Dir: filepath.Join(cfg.FilesDir(), "skills"), Logger: c.log}); err != nil {
		return fmt.Errorf("skills: %w", err)
	}
	if c.memory, err = memory.New(memory.Config{Store: store, Now: cfg.Runtime.Now, Zone: zone, Logger: c.log, HandleDamaged: newDeadLetters(cfg, store, c.log).AddDamaged}); err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	if c.browser, err = browser.New(browser.Config{AllowPrivate: private, Resolver: cfg.Runtime.Resolver, Now: cfg.Runtime.Now, MaxMemory: cfg.Tools.BrowserMemoryMiB << 20, Reader: c.reader, Logger: c.log}); err != nil {
		return fmt.Errorf("browser: %w", err)
	}
	for _, build := range []func() (toolgroups.Tool, error){c.skills.Tool, c.memory.Tool, c.browser.Tool} {
		tool, err := build()
		if err != nil {
			return err
		}
		c.core = append(c.core, tool)
	}
	return nil
}

func (c *catalogue) addConfig(m *models.Models) error {
	family, err := configtools.New(configtools.Config{
		Settings: c.settings, Registry: c.Registry, FetchModels: m.List, Skills: c.skills, OnSwitch: c.rebuild,
	})
	if err != nil {
		return fmt.Errorf("config tools: %w", err)
	}
	c.groups = append(c.groups, family.Group(), c.pdf.Group())
	c.core = append(c.core, family.CreateAgent())
	return nil
}

func (c *catalogue) addDocuments() error {
	family, err := documents.New(c.log)
	if err != nil {
		return err
	}
	group, err := family.Group()
	if err != nil {
		return fmt.Errorf("documents: %w", err)
	}
	c.groups = append(c.groups, group)
	return nil
}

// addImages adds the group images if a model is set.
func (c *catalogue) addImages(cfg config.Config, m *models.Models) error {
	maker, err := cfg.ImageMaker(m, c.log)
	if err != nil || maker == nil {
		return err
	}
	group, err := images.New(maker, cfg.Runtime.Now).Group()
	if err != nil {
		return fmt.Errorf("images: %w", err)
	}
	c.groups = append(c.groups, group)
	return nil
}

func (c *catalogue) addUserTools(cfg config.Config, sync func(context.Context) error, vault *settings.Vault, private []netip.Prefix) error {
	engine, err := sandbox.NewEngine(sandbox.EngineConfig{Logger: c.log})
	if err != nil {
		return fmt.Errorf("javascript: %w", err)
	}
	c.userTools, err = jstools.New(jstools.Config{
		Dir: filepath.Join(cfg.FilesDir(), "tools"), Sync: sync, Engine: engine, ReservedNames: c.reservedNames, OtherNames: c.serverNames, OnChange: c.handleChange,
		Env: func(ctx context.Context, _ toolgroups.Scope, name string) (string, bool, error) {
			values, err := vault.Variables(ctx, []string{name})
			value, ok := values[name]
			return value, ok, err
		},
		Google: c.google, AllowPrivate: private, Resolver: cfg.Runtime.Resolver, Location: zoneOf(c.settings, cfg.Zone()), Now: cfg.Runtime.Now, Logger: c.log,
	})
	if err != nil {
		return fmt.Errorf("user tools: %w", err)
	}
	eval, err := c.userTools.EvalTool()
	if err != nil {
		return fmt.Errorf("user tools: %w", err)
	}
	group, err := c.userTools.ManagementGroup()
	if err != nil {
		return fmt.Errorf("user tools: %w", err)
	}
	c.core = append(c.core, eval)
	c.groups = append(c.groups, group)
	return nil
}

func (c *catalogue) addGoogle(cfg config.Config) error {
	if !cfg.Google.IsListed() {
		return nil
	}
	groups, err := c.google.Groups()
	if err != nil {
		return fmt.Errorf("google tools: %w", err)
	}
	c.groups = append(c.groups, groups...)
	return nil
}

func (c *catalogue) addServers(cfg config.Config, store storage.KV, private []netip.Prefix, tell func(ctx context.Context, key, text string) error) error {
	key, err := cfg.Place().SecretKey(context.Background(), store)
	if err != nil {
		return err
	}
	catalogue, err := connections.ReadCatalogue(cfg.MCP.Catalogue)
	if err != nil {
		return err
	}
	servers := cfg.MCP
	servers.Resolver, servers.Now, servers.AllowPrivate = cfg.Runtime.Resolver, cfg.Runtime.Now, private
	servers.TakenNames, servers.OnChange, servers.Logger = c.reservedNames(), c.handleChange, c.log
	servers.Accounts = mcp.AccountsConfig{KV: store, SecretKey: key, PublicURL: cfg.PublicURL, LocalURL: cfg.LocalURL(), KnownAddresses: catalogue.Addresses()}
	if c.mcp, err = mcp.New(servers); err != nil {
		return fmt.Errorf("mcp: %w", err)
	}
	c.connections = connections.New(connections.Config{Catalogue: catalogue, Google: c.google, Servers: c.mcp, Store: store, NotifyAdmins: tell, Now: cfg.Runtime.Now, Logger: c.log})
	return c.connections.Load(context.Background())
}

// reservedNames returns the names of built-in tools and groups, which other tools may not use.
func (c *catalogue) reservedNames() []string {
	return append(append(toolgroups.ReservedNames(), toolgroups.LoadToolGroup), allNames(c.core, c.groups)...)
}

// serverNames returns the names of the tools and groups of MCP servers.
func (c *catalogue) serverNames() []string { return allNames(nil, c.mcp.Groups()) }

// allNames returns the names of tools and groups.
func allNames(core []toolgroups.Tool, groups []toolgroups.Group) []string {
	names := toolgroups.Names(core)
	for _, g := range groups {
		names = append(append(names, g.Name), toolgroups.Names(g.Tools)...)
	}
	return names
}

// identify reports whether a tool or a group of the current registry has a name, and which MCP server it is of.
func (c *catalogue) identify(name string) (server string, known bool) {
	_, isTool := c.Registry().Tool(name)
	_, isGroup := c.Registry().Group(name)
	group := name
	if isTool {
		group, _ = c.Registry().GroupOf(name)
	}
	for _, st := range c.mcp.Status() {
		if st.Group == group {
			server = st.Identity()
		}
	}
	return server, isTool || isGroup
}

// Registry returns the current registry.
func (c *catalogue) Registry() *toolgroups.Registry { return c.registry.Load() }

// handleChange rebuilds the registry after a change in the background, and logs errors.
func (c *catalogue) handleChange() {
	if c.registry.Load() == nil {
		return // the first build is in progress
	}
	if err := c.rebuild(context.Background()); err != nil {
		c.log.Error("cannot rebuild the tool registry, keeping the old one", "err", err)
	}
}

// rebuild builds a new registry from the current tools. It leaves out the tools of an MCP server whose
// names are taken, and a group of user tools or of an MCP server that conflicts with other groups. Built-in
// groups never conflict.
func (c *catalogue) rebuild(ctx context.Context) error {
	c.buildMu.Lock()
	defer c.buildMu.Unlock()
	tools, groups, err := c.settings.Switches.ListOff(ctx)
	if err != nil {
		return fmt.Errorf("read switches: %w", err)
	}
	skillsOff, err := c.settings.Switches.ListSkillsOff(ctx)
	if err != nil {
		return fmt.Errorf("read switches: %w", err)
	}
	c.skills.SetOff(skillsOff)
	userCore, userGroups := c.userTools.Tools()
	cfg := toolgroups.RegistryConfig{Core: slices.Concat(c.core, userCore), Groups: c.groups, DisabledTools: tools, DisabledGroups: groups}
	registry, err := c.buildRegistry(cfg, append(userGroups, c.mcp.Groups()...))
	if err != nil {
		return err
	}
	c.registry.Store(registry)
	return nil
}

// buildRegistry builds a registry that includes groups of users and MCP servers. Only if building with
// all of them fails, it adds them one by one, which takes longer.
func (c *catalogue) buildRegistry(cfg toolgroups.RegistryConfig, outside []toolgroups.Group) (*toolgroups.Registry, error) {
	all := cfg
	all.Groups = slices.Concat(cfg.Groups, outside)
	if registry, err := toolgroups.NewRegistry(all); err == nil {
		return registry, nil
	}
	registry, err := toolgroups.NewRegistry(cfg)
	if err != nil {
		return nil, err
	}
	for _, group := range outside {
		taken := allNames(cfg.Core, cfg.Groups)
		group.Tools = slices.DeleteFunc(slices.Clone(group.Tools), func(t toolgroups.Tool) bool {
			if !slices.Contains(taken, t.Name) {
				return false
			}
			c.log.Error("tool left out: another one has its name", "tool", t.Name, "group", group.Name, "source", group.Source)
			return true
		})
		more := cfg
		more.Groups = append(slices.Clone(cfg.Groups), group)
		extended, err := toolgroups.NewRegistry(more)
		if err != nil {
			c.log.Error("tool group left out", "group", group.Name, "source", group.Source, "err", err)
			continue
		}
		cfg, registry = more, extended
	}
	return registry, nil
}

// run watches user tools, MCP servers and the settings until ctx ends. If a change cannot be applied, it
// retries, and the tools stay unchanged meanwhile.
func (c *catalogue) run(ctx context.Context) error {
	var work sync.WaitGroup
	defer work.Wait()
	for what, run := range map[string]func(context.Context){
		"the tools of users": c.userTools.Watch, "looking for MCP servers": c.mcp.Discover, "MCP servers that are added": c.connections.Run,
	} {
		work.Go(func() {
			_ = rescue.Loop(ctx, c.log, what, func(ctx context.Context) error { run(ctx); return nil }) // it returns no error
		})
	}
	for ctx.Err() == nil {
		err := c.settings.Follow(ctx, c.applyChange)
		if err == nil {
			return nil
		}
		c.log.Error("cannot watch the settings, retrying", "err", err)
		_ = retry.Wait(ctx, 10*time.Second) // the loop checks ctx
	}
	return nil
}

func (c *catalogue) applyChange(ctx context.Context, area settings.Area) error {
	if area == settings.AreaValues || area == settings.AreaAll {
		c.applyLogLevel(ctx)
	}
	if area == settings.AreaKeys || area == settings.AreaVariables || area == settings.AreaAll {
		// What another replica was told is masked here, too.
		if err := c.vault.ReportSecrets(ctx); err != nil {
			return err
		}
	}
	if area == settings.AreaSwitches || area == settings.AreaAll {
		return c.rebuild(ctx)
	}
	return nil
}

// applyLogLevel applies the log level in the settings.
func (c *catalogue) applyLogLevel(ctx context.Context) {
	name, err := c.settings.Values.Get(ctx, settings.SettingLogLevel)
	if err == nil && name != "" && c.logLevel != nil {
		c.logLevel.Set(config.ParseLevel(name))
	}
}

// Close stops the processes and connections that tools have started.
func (c *catalogue) Close() error {
	return errors.Join(c.pdf.Close(), c.mcp.Close(), c.browser.Close())
}
