// Package config has the settings of the program: it reads them from the file and the
// environment, and refuses what does not fit.
package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"
	"go.yaml.in/yaml/v3"

	"oneclaw/bridge"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/turn"
	"oneclaw/internal/budget"
	"oneclaw/internal/database"
	"oneclaw/internal/models"
	"oneclaw/internal/redact"
	"oneclaw/internal/telemetry"
	"oneclaw/internal/workspace"
	"oneclaw/toolgroups/browser"
	"oneclaw/toolgroups/core"
	"oneclaw/toolgroups/mcp"
	"oneclaw/toolgroups/search"
)

// Config is every setting. The YAML file gives the values, the environment overrides
// them, and what neither names keeps its default.
type Config struct {
	DataConfig `yaml:",inline"`
	PortConfig `yaml:",inline"`
	Timezone   string `yaml:"timezone" env:"ONECLAW_TIMEZONE"`

	Platforms      `yaml:",inline"`
	Model          models.Own   `yaml:"model"`
	Access         AccessConfig `yaml:"access"`
	Tools          ToolsConfig  `yaml:"tools"`
	Log            LogConfig    `yaml:"log"`
	Google         GoogleConfig `yaml:"google"`
	MCP            mcp.Config   `yaml:"mcp"`
	SpendingConfig `yaml:",inline"`
	Limits         bridge.Crowd `yaml:"limits"`
	ApprovalConfig `yaml:",inline"`

	AnswerConfig `yaml:",inline"`

	program `yaml:"-"`
}

// program is what all parts of a running program share.
type program struct {
	// LogLevel is what is logged now: it may change while the program runs.
	LogLevel *slog.LevelVar
	Outside  Outside
	Taps     taps // nil where no tap listens
	// Redact masks the secrets of all settings, and those that are added later.
	Redact *redact.Redactor
	// Errors are the last warnings and errors of the log.
	Errors *telemetry.Ring
	from   origins
}

// DataConfig says where data are kept, and the key that encrypts tokens in them.
type DataConfig struct {
	DataDir  string           `yaml:"data_dir" env:"ONECLAW_DATA_DIR"`
	CacheDir string           `yaml:"cache_dir" env:"ONECLAW_CACHE_DIR"`
	Store    database.Address `yaml:"store" env:"ONECLAW_STORE"`
	// StorePassword is that of the store's address, where it has none.
	StorePassword redact.Secret `yaml:"store_password" env:"ONECLAW_STORE_PASSWORD"`
	// StorePasswordFile is read again for each connection, so that it can change.
	StorePasswordFile string        `yaml:"-"`
	SecretKey         redact.Secret `yaml:"secret_key" env:"ONECLAW_SECRET_KEY"`
	// ExportJudged lets the operator export conversations that people judged. They are told.
	ExportJudged bool `yaml:"export_judged" env:"ONECLAW_EXPORT_JUDGED"`
	// BackupRecipients are public keys of age, for which backups are sealed.
	BackupRecipients []string `yaml:"backup_recipients" env:"ONECLAW_BACKUP_RECIPIENTS"`
	bridge.Ages      `yaml:",inline"`
}

// PortConfig says where the bot listens, how others reach that, and whom the operator asks for
// a newer version.
type PortConfig struct {
	Listen     string `yaml:"listen" env:"ONECLAW_LISTEN"`
	PublicURL  string `yaml:"public_url" env:"ONECLAW_PUBLIC_URL"`
	ReleaseURL string `yaml:"release_url" env:"ONECLAW_RELEASE_URL"`
	// AdminTexts lets administrators read on their page what people and the bot wrote. Who
	// does is named in the chat and in the audit.
	AdminTexts bool `yaml:"admin_texts" env:"ONECLAW_ADMIN_TEXTS"`
}

// SpendingConfig says what models may use and what that costs.
type SpendingConfig struct {
	Budget BudgetConfig `yaml:"budget"`
	// Prices of models in dollars per million tokens, beside and in the place of those
	// that are known; see the package price.
	Prices budget.Table `yaml:"prices"`
}

// ApprovalConfig says which calls need the approval of a person.
type ApprovalConfig struct {
	Approvals []Rule `yaml:"approvals,omitempty"`
	// ApprovalTimeout is how long a call waits for it.
	ApprovalTimeout time.Duration `yaml:"approval_timeout" env:"ONECLAW_APPROVAL_TIMEOUT"`
}

// AccessConfig says who may talk to the bot.
type AccessConfig struct {
	Allow  []string `yaml:"allow" env:"ONECLAW_ALLOW"`
	Admins []string `yaml:"admins" env:"ONECLAW_ADMINS"`
}

// ToolsConfig says how tools reach the model and what they may do.
type ToolsConfig struct {
	Routing string `yaml:"routing" env:"ONECLAW_ROUTING"`
	// ToolSearch sets the details of the modes search and auto.
	ToolSearch search.Config   `yaml:"tool_search"`
	WebSearch  WebSearchConfig `yaml:"web_search"`
	// AllowPrivate lists address ranges that http tools may reach although they are
	// not public, such as 192.168.1.0/24.
	AllowPrivate []string `yaml:"allow_private" env:"ONECLAW_TOOLS_ALLOW_PRIVATE"`
	// Exec says how commands run.
	Exec core.ExecConfig `yaml:",inline"`
	// BrowserMemoryMiB bounds the memory of all processes of the browser together.
	BrowserMemoryMiB int64 `yaml:"browser_memory_mib" env:"ONECLAW_TOOLS_BROWSER_MEMORY_MIB"`
	// ExecMemoryMiB bounds the memory of all processes of a command together, WorkspaceMiB
	// the files of one owner; DiskReserveMiB is what tools leave free of the disk.
	ExecMemoryMiB  int64 `yaml:"exec_memory_mib" env:"ONECLAW_TOOLS_EXEC_MEMORY_MIB"`
	WorkspaceMiB   int64 `yaml:"workspace_mib" env:"ONECLAW_TOOLS_WORKSPACE_MIB"`
	DiskReserveMiB int64 `yaml:"disk_reserve_mib" env:"ONECLAW_TOOLS_DISK_RESERVE_MIB"`
	// Files says where workspaces, skills and user tools are kept: in the data directory
	// ("local"), in the store ("store"), or in a folder that replicas share (its path).
	Files string `yaml:"files" env:"ONECLAW_TOOLS_FILES"`
}

// LogConfig says what is logged and how.
type LogConfig struct {
	Level  string `yaml:"level" env:"ONECLAW_LOG_LEVEL"`
	Format string `yaml:"format" env:"ONECLAW_LOG_FORMAT"`
	// TraceTexts has traces hold what was said, with secrets masked.
	TraceTexts bool `yaml:"trace_texts" env:"ONECLAW_TRACE_TEXTS"`
}

// GoogleConfig is the operator's OAuth client.
type GoogleConfig struct {
	ClientID     string        `yaml:"client_id" env:"GOOGLE_CLIENT_ID"`
	ClientSecret redact.Secret `yaml:"client_secret" env:"GOOGLE_CLIENT_SECRET"`
	APIURL       string        `yaml:"api_url" env:"GOOGLE_API_URL"`
	// ServiceAccount is the key file of a service account with domain-wide delegation;
	// Subjects are the addresses for which it acts, by user (telegram:123).
	ServiceAccount string            `yaml:"service_account" env:"GOOGLE_SERVICE_ACCOUNT"`
	Subjects       map[string]string `yaml:"subjects"`
	// Listed says when the groups of Google stand in the listing: configured or always.
	Listed string `yaml:"listed" env:"ONECLAW_GOOGLE_LISTED"`
}

// ListedAlways lists the groups of Google without a client, too; the default lists them with
// one, or with a service account.
const (
	ListedAlways     = "always"
	listedConfigured = "configured"
)

// Shown reports whether the groups of Google are listed.
func (c GoogleConfig) Shown() bool {
	return c.Listed == ListedAlways || c.ClientID != "" || c.ServiceAccount != ""
}

// Default returns the settings where none are set.
func Default() Config {
	cfg := Config{
		program:        program{Outside: Standard()},
		DataConfig:     DataConfig{DataDir: "./data", Store: database.Bolt, Ages: bridge.Ages{AuditDays: bridge.DefaultAuditDays}},
		PortConfig:     PortConfig{Listen: "127.0.0.1:8787"},
		SpendingConfig: SpendingConfig{Budget: BudgetConfig{GuestTokens: defaultGuestTokens}},
		Google:         GoogleConfig{Listed: listedConfigured},
		Model:          models.Own{BaseURL: "https://api.openai.com/v1", Name: "gpt-5-mini"},
		Tools: ToolsConfig{
			Routing: "groups", BrowserMemoryMiB: browser.DefaultMaxMemory >> 20, ExecMemoryMiB: core.DefaultMaxTotalMemory >> 20,
			WorkspaceMiB: workspace.DefaultQuota >> 20, DiskReserveMiB: workspace.DefaultReserve >> 20,
			WebSearch: defaultWebSearch(),
		},
		Log:            LogConfig{Level: "info"},
		ApprovalConfig: ApprovalConfig{ApprovalTimeout: interact.ApprovalTimeout},
		AnswerConfig: AnswerConfig{
			Sizes: outbox.Sizes{MaxParts: outbox.DefaultMaxParts}, Manners: turn.Manners{PictureTokens: turn.DefaultPictureTokens}, Previews: true, Steering: true,
		},
	}
	for _, platform := range cfg.All {
		platform.Default()
	}
	return cfg
}

// ConfigName is the settings file in the data directory.
const ConfigName = "oneclaw.yaml"

// Load reads the file, then the environment. Where no file is named, the one in
// the data directory is read if it is there. Its error has the secrets masked that are in what
// it quotes.
func Load(file string, environ []string) (Config, error) {
	cfg, err := load(file, environ)
	return cfg, cfg.Redact.Error(redact.AddressesIn(err))
}

func load(file string, environ []string) (Config, error) {
	cfg := Default()
	environment, err := secretsFromFiles(env.ToMap(environ))
	if err != nil {
		return cfg, err
	}
	if dir := environment["ONECLAW_DATA_DIR"]; dir != "" {
		cfg.DataDir = dir
	}
	named := file != ""
	if !named {
		file = filepath.Join(cfg.DataDir, ConfigName)
	}
	data, err := os.ReadFile(file)
	switch {
	case err == nil:
		if err := DecodeConfig(data, &cfg); err != nil {
			return cfg, fmt.Errorf("settings file %s: %w", file, err)
		}
	case named:
		return cfg, fmt.Errorf("settings file (--config) cannot be read: %w", err)
	case !errors.Is(err, fs.ErrNotExist):
		return cfg, fmt.Errorf("settings file in the data directory (ONECLAW_DATA_DIR) cannot be read: %w", err)
	}
	// An empty variable is no setting: compose files and units leave them behind.
	for name, value := range environment {
		if value == "" {
			delete(environment, name)
		}
	}
	if err := unknownVariable(environment); err != nil {
		return cfg, err
	}
	if err := env.ParseWithOptions(&cfg, env.Options{Environment: environment}); err != nil {
		return cfg, environmentError(err)
	}
	cfg.note(data, environment)
	if cfg.from["tools.routing"] == "" {
		cfg.Tools.Routing = string(cfg.Tools.ToolSearch.Default())
	}
	cfg.publish()
	cfg.Redact = redact.New(cfg.secrets()...)
	if err := cfg.Check(); err != nil {
		return cfg, err
	}
	cfg.StorePasswordFile = environment["ONECLAW_STORE_PASSWORD_FILE"]
	cfg.Errors = telemetry.NewRing(cfg.Redact.Text)
	cfg.LogLevel = new(slog.LevelVar)
	cfg.LogLevel.Set(Level(cfg.Log.Level))
	return cfg, nil
}

type setting struct {
	Key, variable string // in the file, and in the environment if it is there
	field         string
	value         reflect.Value
}

// secret reports whether a setting may hold a secret: it is masked, and may be in a file.
func (s setting) secret() bool {
	return s.value.Type() == reflect.TypeFor[redact.Secret]() || s.value.Type() == reflect.TypeFor[database.Address]()
}

// Type is that of its value.
func (s setting) Type() reflect.Type { return s.value.Type() }

func (s setting) duration() bool { return s.value.Type() == reflect.TypeFor[time.Duration]() }

// Settings are all values, in their order.
func (c *Config) Settings() []setting {
	var all []setting
	var walk func(v reflect.Value, prefix string)
	walk = func(v reflect.Value, prefix string) {
		for field, value := range v.Fields() {
			key, option, _ := strings.Cut(field.Tag.Get("yaml"), ",")
			switch {
			case option == "inline":
				walk(value, prefix)
			case key == "-" || key == "":
			default:
				known := len(all)
				// A block that reads itself is one setting.
				if _, own := reflect.TypeAssert[yaml.Unmarshaler](value.Addr()); value.Kind() == reflect.Struct && !own {
					walk(value, prefix+key+".")
				}
				if len(all) == known {
					all = append(all, setting{prefix + key, field.Tag.Get("env"), field.Name, value})
				}
			}
		}
	}
	walk(reflect.ValueOf(c).Elem(), "")
	return all
}

// AllowPrivate are the address ranges that the operator opens to http tools.
func (c Config) AllowPrivate() ([]netip.Prefix, error) {
	var prefixes []netip.Prefix
	for _, text := range c.Tools.AllowPrivate {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("setting tools.allow_private (ONECLAW_TOOLS_ALLOW_PRIVATE): %q is no address range such as 192.168.1.0/24", text)
		}
		prefixes = append(prefixes, prefix)
	}
	return prefixes, nil
}

// CachePath holds what can be made again, such as compiled code.
func (c Config) CachePath() string { return cmp.Or(c.CacheDir, filepath.Join(c.DataDir, "cache")) }

// secrets lists the values that must never be shown: every one of type [redact.Secret], what
// MCP servers are given, and what may be secret in addresses.
func (c *Config) secrets() []string {
	var values []string
	for _, s := range c.Settings() {
		// Of what servers are given, not all is secret: they say which.
		if s.value.Type() != reflect.TypeOf(c.MCP.Servers) {
			values = append(values, secretsIn(s.value)...)
		}
	}
	return slices.Concat(values, []string{c.Store.Password()}, c.MCP.Secrets(), c.inAddresses())
}

// Place is where the database is.
func (c DataConfig) Place() database.Place {
	return database.Place{Dir: c.DataDir, Address: c.Store, Password: string(c.StorePassword), PasswordFile: c.StorePasswordFile, Secret: string(c.SecretKey)}
}
