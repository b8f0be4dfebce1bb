// Package config has the program's settings. It reads them from the settings file and the environment,
// and validates them.
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

// Config has all settings. The environment overrides the YAML file; other settings have their defaults.
type Config struct {
	DataConfig `yaml:",inline"`
	PortConfig `yaml:",inline"`
	Timezone   string `yaml:"timezone" env:"ONECLAW_TIMEZONE"`

	Platforms `yaml:",inline"`
	Model     models.OwnModel `yaml:"model"`
	Models    modelsConfig    `yaml:"models"`
	// Images configures the model that makes pictures.
	Images         models.ImageSettings `yaml:"images"`
	Access         AccessConfig         `yaml:"access"`
	Tools          toolsConfig          `yaml:"tools"`
	Log            logConfig            `yaml:"log"`
	Google         GoogleConfig         `yaml:"google"`
	MCP            mcp.Config           `yaml:"mcp"`
	SpendingConfig `yaml:",inline"`
	Limits         bridge.Concurrency `yaml:"limits"`
	Background     turn.Background    `yaml:"background"`
	ApprovalConfig `yaml:",inline"`

	AnswerConfig `yaml:",inline"`

	program `yaml:"-"`
}

// program has values that all components of a running program share.
type program struct {
	// LogLevel is the current log level, which may change while the program runs.
	LogLevel *slog.LevelVar
	Runtime  Runtime
	// Warnings are lines about settings that are ignored.
	Warnings []string
	// Redact masks the secrets in all settings, and secrets that are added later.
	Redact *redact.Redactor
	// Errors has the most recent warnings and errors from the log.
	Errors *telemetry.Ring
	// SecretFile is the settings file if it contains secrets, else empty.
	SecretFile     string
	settingOrigins origins
}

// modelsConfig chooses the models for some kinds of work.
type modelsConfig struct {
	ByKind models.ByKind `yaml:"by_kind"`
}

// DataConfig configures where data is stored, and the key that encrypts tokens in it.
type DataConfig struct {
	DataDir  string           `yaml:"data_dir" env:"ONECLAW_DATA_DIR"`
	CacheDir string           `yaml:"cache_dir" env:"ONECLAW_CACHE_DIR"`
	Store    database.Address `yaml:"store" env:"ONECLAW_STORE"`
	// StorePassword is the password for the store, if its address has none.
	StorePassword redact.Secret `yaml:"store_password" env:"ONECLAW_STORE_PASSWORD"`
	// StorePasswordFile is read for each connection, so that it can change.
	StorePasswordFile string        `yaml:"-"`
	SecretKey         redact.Secret `yaml:"secret_key" env:"ONECLAW_SECRET_KEY"`
	// BackupRecipients are the age public keys for which backups are encrypted.
	BackupRecipients []string `yaml:"backup_recipients" env:"ONECLAW_BACKUP_RECIPIENTS"`
	bridge.Retention `yaml:",inline"`
}

// PortConfig configures the port, its external address, and the address for update checks.
type PortConfig struct {
	Listen     string `yaml:"listen" env:"ONECLAW_LISTEN"`
	PublicURL  string `yaml:"public_url" env:"ONECLAW_PUBLIC_URL"`
	ReleaseURL string `yaml:"release_url" env:"ONECLAW_RELEASE_URL"`
	// AdminTexts lets administrators read messages on their pages. Each access is announced in the chat
	// and recorded in the audit log.
	AdminTexts bool `yaml:"admin_texts" env:"ONECLAW_ADMIN_TEXTS"`
}

// SpendingConfig has the budgets and prices.
type SpendingConfig struct {
	Budget BudgetConfig `yaml:"budget"`
	// Prices are prices in dollars per million tokens, by model. They extend and override the built-in
	// prices; see package budget.
	Prices budget.PriceTable `yaml:"prices"`
}

// ApprovalConfig configures which calls need approval.
type ApprovalConfig struct {
	Approvals []Rule `yaml:"approvals,omitempty"`
	// ApprovalTimeout is how long a call waits for approval.
	ApprovalTimeout time.Duration `yaml:"approval_timeout" env:"ONECLAW_APPROVAL_TIMEOUT"`
	// ApprovalHosts are the hosts whose addresses the bot opens without asking, whoever wrote them;
	// *.example.com stands for the hosts below.
	ApprovalHosts []string `yaml:"approval_hosts" env:"ONECLAW_APPROVAL_HOSTS"`
}

// AccessConfig configures who may talk to the bot.
type AccessConfig struct {
	Allow  []string `yaml:"allow" env:"ONECLAW_ALLOW"`
	Admins []string `yaml:"admins" env:"ONECLAW_ADMINS"`
}

// toolsConfig configures how tools are offered to the model and what they may do.
type toolsConfig struct {
	Routing string `yaml:"routing" env:"ONECLAW_ROUTING"`
	// ToolSearch configures the modes search and auto.
	ToolSearch search.Config   `yaml:"tool_search"`
	WebSearch  webSearchConfig `yaml:"web_search"`
	// AllowPrivate lists private address ranges that http tools may reach, such as 192.168.1.0/24.
	AllowPrivate []string `yaml:"allow_private" env:"ONECLAW_TOOLS_ALLOW_PRIVATE"`
	// Exec configures the exec tool, which runs commands.
	Exec core.ExecConfig `yaml:",inline"`
	// BrowserMemoryMiB bounds the memory of all processes of the browser.
	BrowserMemoryMiB int64 `yaml:"browser_memory_mib" env:"ONECLAW_TOOLS_BROWSER_MEMORY_MIB"`
	// ExecMemoryMiB bounds the memory of all processes of a command, WorkspaceMiB the files of one
	// owner. DiskReserveMiB is the disk space that tools must leave free.
	ExecMemoryMiB  int64 `yaml:"exec_memory_mib" env:"ONECLAW_TOOLS_EXEC_MEMORY_MIB"`
	WorkspaceMiB   int64 `yaml:"workspace_mib" env:"ONECLAW_TOOLS_WORKSPACE_MIB"`
	DiskReserveMiB int64 `yaml:"disk_reserve_mib" env:"ONECLAW_TOOLS_DISK_RESERVE_MIB"`
	// Files is where workspaces, skills and user tools are stored: in the data directory ("local"), in
	// the store ("store"), or in a folder that replicas share (its path).
	Files string `yaml:"files" env:"ONECLAW_TOOLS_FILES"`
}

// logConfig configures the log and traces.
type logConfig struct {
	Level  string `yaml:"level" env:"ONECLAW_LOG_LEVEL"`
	Format string `yaml:"format" env:"ONECLAW_LOG_FORMAT"`
	// TraceTexts adds messages to traces, with secrets masked.
	TraceTexts bool `yaml:"trace_texts" env:"ONECLAW_TRACE_TEXTS"`
}

// GoogleConfig configures the operator's OAuth client and service account.
type GoogleConfig struct {
	ClientID     string        `yaml:"client_id" env:"GOOGLE_CLIENT_ID"`
	ClientSecret redact.Secret `yaml:"client_secret" env:"GOOGLE_CLIENT_SECRET"`
	APIURL       string        `yaml:"api_url" env:"GOOGLE_API_URL"`
	// ServiceAccount is the key file of a service account with domain-wide delegation. Subjects are the
	// addresses that the account impersonates, by user (telegram:123).
	ServiceAccount string            `yaml:"service_account" env:"GOOGLE_SERVICE_ACCOUNT"`
	Subjects       map[string]string `yaml:"subjects"`
	// Listed says when Google's tool groups are listed: "always", or "configured": only if a client or a
	// service account is set.
	Listed string `yaml:"listed" env:"ONECLAW_GOOGLE_LISTED"`
}

// ListedAlways lists Google's tool groups even if no client is set. The default, listedConfigured,
// lists them if a client or a service account is set.
const (
	ListedAlways     = "always"
	listedConfigured = "configured"
)

// IsListed reports whether Google's tool groups are listed.
func (c GoogleConfig) IsListed() bool {
	return c.Listed == ListedAlways || c.ClientID != "" || c.ServiceAccount != ""
}

// Default returns the default settings.
func Default() Config {
	cfg := Config{
		program:        program{Runtime: DefaultRuntime()},
		DataConfig:     DataConfig{DataDir: "./data", Store: database.Bolt, Retention: bridge.Retention{AuditDays: bridge.DefaultAuditDays}},
		PortConfig:     PortConfig{Listen: "127.0.0.1:8787"},
		SpendingConfig: SpendingConfig{Budget: BudgetConfig{GuestTokens: defaultGuestTokens}},
		Google:         GoogleConfig{Listed: listedConfigured},
		Model:          models.OwnModel{BaseURL: "https://api.openai.com/v1", Name: "gpt-5-mini"},
		Tools: toolsConfig{
			Routing: "groups", BrowserMemoryMiB: browser.DefaultMaxMemory >> 20, ExecMemoryMiB: core.DefaultMaxTotalMemory >> 20,
			WorkspaceMiB: workspace.DefaultQuota >> 20, DiskReserveMiB: workspace.DefaultReserve >> 20,
			WebSearch: defaultWebSearch(),
		},
		Background:     turn.Background{Tokens: turn.DefaultTaskTokens, Timeout: turn.DefaultTaskTimeout},
		Log:            logConfig{Level: "info"},
		ApprovalConfig: ApprovalConfig{ApprovalTimeout: interact.ApprovalTimeout},
		AnswerConfig: AnswerConfig{
			AnswerLimits: outbox.AnswerLimits{MaxParts: outbox.DefaultMaxParts}, Options: turn.Options{PictureTokens: turn.DefaultPictureTokens}, Previews: true, Steering: true,
		},
	}
	for _, platform := range cfg.All {
		platform.Default()
	}
	return cfg
}

const (
	// ConfigName is the name of the settings file in the data directory.
	ConfigName = "oneclaw.yaml"
	// FileVariable is the environment variable that names another settings file.
	FileVariable = "ONECLAW_CONFIG"
)

// Load reads the file, then the environment. If file is empty, Load reads the one that [FileVariable] names,
// or the one in the data directory, if it exists. Secrets are masked in the error.
func Load(file string, environ []string) (Config, error) {
	cfg, err := load(file, environ)
	return cfg, cfg.Redact.Error(redact.MaskAddressesIn(err))
}

func load(file string, environ []string) (Config, error) {
	cfg := Default()
	environment, err := readSecretFiles(env.ToMap(environ))
	if err != nil {
		return cfg, err
	}
	if dir := environment["ONECLAW_DATA_DIR"]; dir != "" {
		cfg.DataDir = dir
	}
	file = cmp.Or(file, environment[FileVariable])
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
		inFile := cfg
		inFile.MCP.LookupEnv = func(string) (string, bool) { return "", false } // a variable's value is not in the file
		if slices.ContainsFunc(inFile.secrets(), func(secret string) bool { return secret != "" }) {
			cfg.SecretFile = file
		}
	case named:
		return cfg, fmt.Errorf("settings file (--config, ONECLAW_CONFIG) cannot be read: %w", err)
	case !errors.Is(err, fs.ErrNotExist):
		return cfg, fmt.Errorf("settings file in the data directory (ONECLAW_DATA_DIR) cannot be read: %w", err)
	}
	// An empty variable counts as missing, because compose files and units often set empty ones.
	for name, value := range environment {
		if value == "" {
			delete(environment, name)
		}
	}
	cfg.dropGoneVariables(environment)
	if err := checkVariables(environment); err != nil {
		return cfg, err
	}
	if err := env.ParseWithOptions(&cfg, env.Options{Environment: environment}); err != nil {
		return cfg, environmentError(err)
	}
	cfg.recordOrigins(data, environment)
	if cfg.settingOrigins["tools.routing"] == "" {
		cfg.Tools.Routing = string(cfg.Tools.ToolSearch.DefaultRouting())
	}
	cfg.replaceRouting()
	cfg.publish()
	cfg.Redact = redact.New(cfg.secrets()...)
	if err := cfg.Check(); err != nil {
		return cfg, err
	}
	cfg.StorePasswordFile = environment["ONECLAW_STORE_PASSWORD_FILE"]
	cfg.Errors = telemetry.NewRing(cfg.Redact.Text)
	cfg.LogLevel = new(slog.LevelVar)
	cfg.LogLevel.Set(ParseLevel(cfg.Log.Level))
	return cfg, nil
}

type setting struct {
	Key, variable string // the names in the file and in the environment; variable may be empty
	field         string
	value         reflect.Value
}

// isSecret reports whether a setting may contain a secret, which is masked and may be read from a file.
func (s setting) isSecret() bool {
	kind := s.value.Type()
	return kind == reflect.TypeFor[redact.Secret]() || kind == reflect.TypeFor[database.Address]() || kind == reflect.TypeFor[models.Headers]()
}

// Type returns the type of the value.
func (s setting) Type() reflect.Type { return s.value.Type() }

func (s setting) isDuration() bool { return s.value.Type() == reflect.TypeFor[time.Duration]() }

// Settings returns all settings, in the order of the fields.
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
				// A block with its own UnmarshalYAML is one setting.
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

// AllowPrivate returns the private address ranges that http tools may reach.
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

// CachePath returns the folder for files that can be recreated, such as compiled code.
func (c Config) CachePath() string { return cmp.Or(c.CacheDir, filepath.Join(c.DataDir, "cache")) }

// secrets returns the values that must be masked: settings of type [redact.Secret], values for MCP
// servers, and possible secrets in addresses.
func (c *Config) secrets() []string {
	var values []string
	for _, s := range c.Settings() {
		// Not all values for MCP servers, and not all headers, are secret; their Secrets methods return those
		// that are.
		if s.value.Type() != reflect.TypeOf(c.MCP.Servers) && s.value.Type() != reflect.TypeFor[models.Headers]() {
			values = append(values, secretsIn(s.value)...)
		}
	}
	return slices.Concat(values, c.Store.Secrets(), c.MCP.Secrets(), c.Model.Headers.Secrets(), c.addressSecrets())
}

// Place returns the location of the database.
func (c DataConfig) Place() database.Place {
	return database.Place{Dir: c.DataDir, Address: c.Store, Password: string(c.StorePassword), PasswordFile: c.StorePasswordFile, Secret: string(c.SecretKey)}
}
