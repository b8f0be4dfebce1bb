package app

import (
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

	"oneclaw/internal/config"
	"oneclaw/internal/connections"
	"oneclaw/internal/models"
	"oneclaw/internal/readable"
	"oneclaw/internal/rescue"
	"oneclaw/internal/retry"
	"oneclaw/internal/sandbox"
	"oneclaw/internal/settings"
	"oneclaw/storage"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/browser"
	configtools "oneclaw/toolgroups/config"
	"oneclaw/toolgroups/core"
	"oneclaw/toolgroups/documents"
	"oneclaw/toolgroups/google"
	"oneclaw/toolgroups/jstools"
	"oneclaw/toolgroups/mcp"
	"oneclaw/toolgroups/memory"
	"oneclaw/toolgroups/pdf"
	"oneclaw/toolgroups/schedule"
	"oneclaw/toolgroups/skills"
)

// catalogue owns the tools of the program, and is the only one that replaces the registry, when
// a switch, a user tool or an MCP server changes the tools.
type catalogue struct {
	log      *slog.Logger
	settings *settings.Settings
	core     []toolgroups.Tool
	groups   []toolgroups.Group
	pdf      *pdf.PDF
	user     *jstools.Tools
	mcp      *mcp.Client
	// connections has the commands for accounts, and the servers added in chats.
	connections *connections.Handler
	google      *google.Google
	skills      *skills.Library
	memory      *memory.Memory
	reader      *readable.Reader // shared by all tools that read pages
	browser     *browser.Browser
	schedule    *schedule.Schedule

	logLevel *slog.LevelVar

	building sync.Mutex
	registry atomic.Pointer[toolgroups.Registry]
}

// newCatalogue builds every tool; expensive parts start with their first call. submit gets the
// runs of scheduled tasks, tell what administrators have to know.
func newCatalogue(cfg config.Config, store storage.Store, files *keptFiles, m *models.Models, submit func(context.Context, schedule.Run) error, tell func(ctx context.Context, key, text string) error, log *slog.Logger) (*catalogue, error) {
	private, err := cfg.AllowPrivate()
	if err != nil {
		return nil, err
	}
	c := &catalogue{log: log, settings: m.Settings, logLevel: cfg.LogLevel}
	if c.reader, err = readable.NewReader(log); err != nil {
		return nil, err
	}
	if err := c.addKnowledge(cfg, store, private); err != nil {
		return nil, err
	}
	exec := cfg.Tools.Exec
	exec.MaxTotalMemory = cfg.Tools.ExecMemoryMiB << 20
	basics, err := core.New(core.Config{
		Location: cfg.Zone(), Now: cfg.Outside.Now, AllowPrivate: private, Resolver: cfg.Outside.Resolver, History: History{Store: store, Memory: c.memory}, Logger: log,
		Reader: c.reader, CacheDir: cfg.CachePath(),
		Exec: exec,
	})
	if err != nil {
		return nil, fmt.Errorf("core tools: %w", err)
	}
	c.core = append(c.core, basics...)
	if c.pdf, err = pdf.New(pdf.Config{CacheDir: cfg.CachePath(), Logger: log}); err != nil {
		return nil, fmt.Errorf("pdf tools: %w", err)
	}
	if c.schedule, err = schedule.New(schedule.Config{
		Store: store, Submit: submit, Location: zoneOf(m.Settings, cfg.Zone()), Now: cfg.Outside.Now, Logger: log,
	}); err != nil {
		return nil, fmt.Errorf("scheduled tasks: %w", err)
	}
	if err := c.addConfig(m); err != nil {
		return nil, err
	}
	if err := c.addDocuments(); err != nil {
		return nil, err
	}
	c.groups = append(c.groups, c.schedule.Group())
	if err := c.addUserTools(cfg, files.syncTools(), m.Vault, private); err != nil {
		return nil, err
	}
	if err := c.addGoogle(cfg, store); err != nil {
		return nil, err
	}
	if err := c.addWebSearch(cfg, m, private); err != nil {
		return nil, err
	}
	if err := c.addServers(cfg, store, private, tell); err != nil {
		return nil, err
	}
	return c, c.rebuild(context.Background())
}

// addKnowledge adds memory, history and the tools that look things up.
func (c *catalogue) addKnowledge(cfg config.Config, store storage.KV, private []netip.Prefix) (err error) {
	if c.skills, err = skills.New(skills.Config{Dir: filepath.Join(cfg.FilesDir(), "skills"), Logger: c.log}); err != nil {
		return fmt.Errorf("skills: %w", err)
	}
	if c.memory, err = memory.New(memory.Config{Store: store, Now: cfg.Outside.Now, Logger: c.log, Damaged: asidesIn(cfg, store, c.log).Damaged}); err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	if c.browser, err = browser.New(browser.Config{AllowPrivate: private, Resolver: cfg.Outside.Resolver, Now: cfg.Outside.Now, MaxMemory: cfg.Tools.BrowserMemoryMiB << 20, Reader: c.reader, Logger: c.log}); err != nil {
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
		Settings: c.settings, Registry: c.Registry, Models: m.List, Switched: c.rebuild,
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

func (c *catalogue) addUserTools(cfg config.Config, sync func(context.Context) error, vault *settings.Vault, private []netip.Prefix) error {
	engine, err := sandbox.NewEngine(sandbox.EngineConfig{Logger: c.log})
	if err != nil {
		return fmt.Errorf("javascript: %w", err)
	}
	c.user, err = jstools.New(jstools.Config{
		Dir: filepath.Join(cfg.FilesDir(), "tools"), Sync: sync, Engine: engine, Reserved: c.reserved, Changed: c.changed,
		Env: func(ctx context.Context, _ toolgroups.Scope, name string) (string, bool, error) {
			values, err := vault.Variables(ctx, []string{name})
			value, ok := values[name]
			return value, ok, err
		},
		AllowPrivate: private, Resolver: cfg.Outside.Resolver, Location: cfg.Zone(), Now: cfg.Outside.Now, Logger: c.log,
	})
	if err != nil {
		return fmt.Errorf("user tools: %w", err)
	}
	eval, err := c.user.Eval()
	if err != nil {
		return fmt.Errorf("user tools: %w", err)
	}
	group, err := c.user.Group()
	if err != nil {
		return fmt.Errorf("user tools: %w", err)
	}
	c.core = append(c.core, eval)
	c.groups = append(c.groups, group)
	return nil
}

func (c *catalogue) addGoogle(cfg config.Config, store storage.KV) (err error) {
	if c.google, err = OpenGoogle(cfg, store, c.reader, c.log); err != nil {
		return err
	}
	if !cfg.Google.Shown() {
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
	servers := cfg.MCP
	servers.Resolver, servers.Now, servers.AllowPrivate = cfg.Outside.Resolver, cfg.Outside.Now, private
	servers.DataDir, servers.Taken, servers.Changed, servers.Logger = cfg.DataDir, c.reserved(), c.changed, c.log
	servers.Accounts = mcp.AccountsConfig{KV: store, SecretKey: key, PublicURL: cfg.PublicURL, LocalURL: "http://" + cfg.Listen}
	if c.mcp, err = mcp.New(servers); err != nil {
		return fmt.Errorf("mcp: %w", err)
	}
	c.connections = connections.New(connections.Config{Google: c.google, Servers: c.mcp, Store: store, Tell: tell, Now: cfg.Outside.Now, Logger: c.log})
	return c.connections.Load(context.Background())
}

// reserved returns the names of built-in tools.
func (c *catalogue) reserved() []string {
	names := append(toolgroups.ReservedNames(), toolgroups.LoadToolGroup)
	for _, t := range c.core {
		names = append(names, t.Name)
	}
	for _, g := range c.groups {
		names = append(names, g.Name)
		for _, t := range g.Tools {
			names = append(names, t.Name)
		}
	}
	return names
}

// Registry returns the current registry.
func (c *catalogue) Registry() *toolgroups.Registry { return c.registry.Load() }

// changed rebuilds the registry after a change for which no caller waits.
func (c *catalogue) changed() {
	if c.registry.Load() == nil {
		return // the first build is in progress
	}
	if err := c.rebuild(context.Background()); err != nil {
		c.log.Error("tools are left as they were", "err", err)
	}
}

// rebuild makes a new registry of the current tools. A group from outside that conflicts with
// others is left out; the built-in ones never conflict.
func (c *catalogue) rebuild(ctx context.Context) error {
	c.building.Lock()
	defer c.building.Unlock()
	tools, groups, err := c.settings.Switches.Off(ctx)
	if err != nil {
		return fmt.Errorf("read switches: %w", err)
	}
	userCore, userGroups := c.user.Tools()
	cfg := toolgroups.RegistryConfig{Core: slices.Concat(c.core, userCore), Groups: c.groups, DisabledTools: tools, DisabledGroups: groups}
	registry, err := c.extend(cfg, append(userGroups, c.mcp.Groups()...))
	if err != nil {
		return err
	}
	c.registry.Store(registry)
	return nil
}

// extend makes a registry with groups from outside: with all of them or, only if that fails
// (because building takes time), by adding one after the other.
func (c *catalogue) extend(cfg toolgroups.RegistryConfig, outside []toolgroups.Group) (*toolgroups.Registry, error) {
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

// run watches the sources of tools from outside until ctx ends. A change that cannot be read is
// tried again; the tools stay unchanged meanwhile.
func (c *catalogue) run(ctx context.Context) error {
	var work sync.WaitGroup
	defer work.Wait()
	for what, run := range map[string]func(context.Context){
		"the tools of users": c.user.Watch, "looking for MCP servers": c.mcp.Discover, "MCP servers that are added": c.connections.Run,
	} {
		work.Go(func() {
			_ = rescue.Loop(ctx, c.log, what, func(ctx context.Context) error { run(ctx); return nil }) // it returns no error
		})
	}
	for ctx.Err() == nil {
		err := c.settings.Follow(ctx, c.follow)
		if err == nil {
			return nil
		}
		c.log.Error("settings cannot be followed, trying again", "err", err)
		_ = retry.Wait(ctx, 10*time.Second) // the loop checks ctx
	}
	return nil
}

func (c *catalogue) follow(ctx context.Context, area settings.Area) error {
	if area == settings.AreaValues || area == settings.AreaAll {
		c.setLevel(ctx)
	}
	if area == settings.AreaSwitches || area == settings.AreaAll {
		return c.rebuild(ctx)
	}
	return nil
}

// setLevel applies the log level of the settings.
func (c *catalogue) setLevel(ctx context.Context) {
	name, err := c.settings.Values.Get(ctx, settings.SettingLogLevel)
	if err == nil && name != "" && c.logLevel != nil {
		c.logLevel.Set(config.Level(name))
	}
}

// Close ends what tools have started.
func (c *catalogue) Close() error {
	return errors.Join(c.pdf.Close(), c.mcp.Close(), c.browser.Close())
}
