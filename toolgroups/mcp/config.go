package mcp

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"oneclaw/internal/guard"
	"oneclaw/internal/redact"
	"oneclaw/toolgroups"
)

// Server configures one server, reached by Command or by URL, and the tools that it offers.
type Server struct {
	// Command starts a server that uses its standard input and output.
	Command string `yaml:"command,omitempty"`
	// Args are the arguments of Command.
	Args Arguments `yaml:"args,omitempty"`
	// Env are environment variables for Command. "${NAME}" in a value stands for a variable of the bot.
	// Besides Env and PassEnv, Command sees only PATH and HOME.
	Env map[string]redact.Secret `yaml:"env,omitempty"`
	// PassEnv names the variables of the bot that Command sees too.
	PassEnv []string `yaml:"pass_env,omitempty"`
	// Dir is the working directory of Command. Empty means the bot's.
	Dir string `yaml:"dir,omitempty"`

	// URL is the address of a server with streamable HTTP, or with the older HTTP+SSE.
	URL string `yaml:"url,omitempty"`
	// Headers are sent with each request to URL, with "${NAME}" as in Env.
	Headers map[string]redact.Secret `yaml:"headers,omitempty"`
	// Auth is "oauth" if each user signs in to a personal account with /connect. If empty, only
	// Headers authenticate.
	Auth string `yaml:"auth,omitempty"`
	// ClientID and ClientSecret belong to a client that was registered by hand, for servers at which
	// the bot cannot register itself. ClientSecret may contain "${NAME}".
	ClientID     string        `yaml:"client_id,omitempty"`
	ClientSecret redact.Secret `yaml:"client_secret,omitempty"`
	// Issuer is the authorization server at which ClientID was registered. No other is used. Empty means
	// the one that the server names, for ClientID the one that it named first.
	Issuer string `yaml:"issuer,omitempty"`
	// Scopes are the permissions to request. None means those that the server names.
	Scopes []string `yaml:"scopes,omitempty"`
	// AllowPrivate permits a private address for the host of URL. It is not needed for private
	// addresses themselves and for names such as mcp or mcp.internal.
	AllowPrivate bool `yaml:"allow_private,omitempty"`

	// Include are patterns (path.Match) of the tools to offer. None means all.
	Include []string `yaml:"include,omitempty"`
	// Exclude are patterns of tools not to offer, even if Include matches them.
	Exclude []string `yaml:"exclude,omitempty"`
	// Description is the group's line in the prompt. Empty means the first sentence of the server's
	// own instructions.
	Description string `yaml:"description,omitempty"`
	// Role is the lowest role that may load the group: "user" (or empty), "admin" or "owner".
	Role string `yaml:"role,omitempty"`
	// Trust says how far to trust the server's annotations: with "hints" (the default) a tool is
	// Consequential unless it is read-only or marked as not destructive; with "none" every tool is
	// Consequential; with "full" every tool that is not read-only counts as Changes.
	Trust string `yaml:"trust,omitempty"`
	// ReadOnly are patterns of tools that are read-only whatever the server says.
	ReadOnly []string `yaml:"read_only,omitempty"`

	// Timeout bounds one call. 0 means a minute.
	Timeout time.Duration `yaml:"timeout,omitempty"`
	// StartTimeout bounds starting the server and reading its tools. 0 means 30 seconds.
	StartTimeout time.Duration `yaml:"start_timeout,omitempty"`

	// addedInChat is true for a server that an administrator, not the operator, added in a chat.
	addedInChat bool
}

// Arguments are the arguments of a program. Marshalling masks possible secrets.
type Arguments []string

// MarshalYAML returns the arguments with all but the names of flags masked.
func (a Arguments) MarshalYAML() (any, error) {
	var all []string
	for _, arg := range a {
		if flag, _, ok := strings.Cut(arg, "="); ok && strings.HasPrefix(arg, "-") {
			arg = flag + "=" + redact.Mask
		} else if !strings.HasPrefix(arg, "-") {
			arg = redact.Mask
		}
		all = append(all, arg)
	}
	return all, nil
}

// secrets returns the arguments that look secret, by their flag or their value.
func (a Arguments) secrets() []string {
	var out []string
	flag := ""
	for _, arg := range a {
		isFlag := strings.HasPrefix(arg, "-")
		name, value, assigned := strings.Cut(arg, "=")
		switch {
		case isFlag && !assigned:
			flag = arg
			continue
		case !isFlag:
			name, value = flag, arg
		}
		flag = ""
		if secretNamePattern.MatchString(name) || looksSecret(value) {
			out = append(out, value)
		}
	}
	return out
}

// AuthOAuth is the value of [Server].Auth for personal sign-ins.
const AuthOAuth = "oauth"

// The values of [Server].Trust.
const (
	TrustHints = "hints"
	TrustNone  = "none"
	TrustFull  = "full"
)

// maxTimeout bounds the times in settings.
const maxTimeout = 10 * time.Minute

var (
	serverNamePattern = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_-]{0,31}$`)
	envNamePattern    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	headerNamePattern = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
)

// Secrets returns the values that must never be shown: headers, client secrets, arguments and variables
// whose name or value looks secret, with ${NAME} replaced, and parts of addresses that look secret. Values
// that name a variable that is not set are left out.
func (c Config) Secrets() []string {
	lookup := c.LookupEnv
	if lookup == nil {
		lookup = os.LookupEnv
	}
	expand := func(value redact.Secret) string {
		text, missing := expandVariables(value, lookup)
		if missing != "" {
			return ""
		}
		return text
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(c.Servers)) {
		s := c.Servers[name]
		for _, value := range s.Headers {
			value := expand(value)
			out = append(append(out, value), strings.Fields(value)...)
		}
		out = append(out, pathSecrets(s.URL)...)
		out = append(append(out, expand(s.ClientSecret)), s.Args.secrets()...)
		for key, value := range s.Env {
			if value := expand(value); secretNamePattern.MatchString(key) || looksSecret(value) {
				out = append(out, value)
			}
		}
		for _, key := range s.PassEnv {
			if value, ok := lookup(key); ok && secretNamePattern.MatchString(key) {
				out = append(out, value)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(slices.DeleteFunc(out, func(v string) bool { return v == "" }))
}

// secretNamePattern matches the names of variables that are likely to contain a secret.
var secretNamePattern = regexp.MustCompile(`(?i)key|token|secret|pass|auth|cred|dsn|cookie|session|webhook|private`)

// looksSecret reports whether a value is long, has no separators and looks random.
func looksSecret(value string) bool {
	return len(value) >= 16 && !strings.ContainsAny(value, " /\\.:,") && strings.ContainsAny(value, "0123456789") &&
		strings.ContainsFunc(value, unicode.IsLetter)
}

// wordsPattern matches names such as langgraph-101-course, which answers must be able to contain.
var wordsPattern = regexp.MustCompile(`^(\pL+|\d+)([-_]+(\pL+|\d+))*$`)

// pathSecrets returns the parts of an address's path that look secret and are not words: with some services
// the address is the key.
func pathSecrets(address string) (out []string) {
	u, err := url.Parse(address)
	if err != nil {
		return nil // refused elsewhere
	}
	for part := range strings.SplitSeq(u.Path, "/") {
		if looksSecret(part) && !wordsPattern.MatchString(part) {
			out = append(out, part)
		}
	}
	return out
}

// expandVariables replaces ${NAME} with variables of the environment; missing is one that is not set.
func expandVariables(value redact.Secret, lookup func(string) (string, bool)) (text, missing string) {
	text = variablePattern.ReplaceAllStringFunc(string(value), func(ref string) string {
		found, ok := lookup(ref[2 : len(ref)-1])
		if !ok {
			missing = ref
		}
		return found
	})
	return text, missing
}

// Validate checks the servers without starting or contacting any. The error names the server and
// the field of every mistake.
func (c Config) Validate() error {
	var errs []error
	folded := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(c.Servers)) {
		if !serverNamePattern.MatchString(name) {
			errs = append(errs, fmt.Errorf("mcp: server %q: the name must match %s", name, serverNamePattern))
		}
		if other, ok := folded[strings.ToLower(name)]; ok {
			errs = append(errs, fmt.Errorf("mcp: server %q: the name differs from %q only in case", name, other))
		}
		folded[strings.ToLower(name)] = name
		if strings.EqualFold(name, "google") && c.Servers[name].Auth != "" {
			errs = append(errs, fmt.Errorf("mcp: server %q: auth: /connect google is for Google accounts; name the server otherwise", name))
		}
		for _, err := range c.Servers[name].faults() {
			errs = append(errs, fmt.Errorf("mcp: server %q: %w", name, err))
		}
	}
	if c.IdleTimeout < 0 || c.RetryDelay < 0 || c.MaxRetryDelay < 0 || c.MaxMessage < 0 {
		errs = append(errs, errors.New("mcp: a timeout or limit is negative"))
	}
	return errors.Join(errs...)
}

// faults returns the mistakes in the configuration of a server, each beginning with the field.
func (s Server) faults() []error {
	var errs []error
	switch {
	case s.Command == "" && s.URL == "":
		errs = append(errs, errors.New("command or url: give one of them"))
	case s.Command != "" && s.URL != "":
		errs = append(errs, errors.New("command and url: keep one of them"))
	case s.Command != "":
		errs = append(errs, s.commandFaults()...)
	default:
		errs = append(errs, s.urlFaults()...)
	}
	errs = append(errs, s.offerFaults()...)
	for field, d := range map[string]time.Duration{"timeout": s.Timeout, "start_timeout": s.StartTimeout} {
		if d < 0 || d > maxTimeout {
			errs = append(errs, fmt.Errorf("%s: %s is not between 0 and %s", field, d, maxTimeout))
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errs
}

// offerFaults checks the fields that decide which tools are offered to which users.
func (s Server) offerFaults() []error {
	var errs []error
	for field, patterns := range map[string][]string{"include": s.Include, "exclude": s.Exclude, "read_only": s.ReadOnly} {
		for _, p := range patterns {
			if _, err := path.Match(p, ""); err != nil || p == "" {
				errs = append(errs, fmt.Errorf("%s: %q is not a pattern such as get_*", field, p))
			}
		}
	}
	if _, ok := toolgroups.ParseRole(cmp.Or(s.Role, "user")); !ok {
		errs = append(errs, fmt.Errorf("role: %q is not user, admin or owner", s.Role))
	}
	if !slices.Contains([]string{"", TrustHints, TrustNone, TrustFull}, s.Trust) {
		errs = append(errs, fmt.Errorf("trust: %q is not hints, none or full", s.Trust))
	}
	return errs
}

func (s Server) commandFaults() []error {
	var errs []error
	if len(s.Headers) > 0 || s.AllowPrivate {
		errs = append(errs, errors.New("headers and allow_private: they need url"))
	}
	if s.Auth != "" {
		errs = append(errs, errors.New("auth: it needs url"))
	}
	for _, name := range slices.Concat(s.PassEnv, slices.Sorted(maps.Keys(s.Env))) {
		if !envNamePattern.MatchString(name) {
			errs = append(errs, fmt.Errorf("env and pass_env: %q is not a variable name", name))
		}
	}
	for _, text := range slices.Concat([]string{s.Command, s.Dir}, s.Args) {
		if strings.ContainsRune(text, 0) {
			errs = append(errs, errors.New("command, args and dir: they must not hold a zero byte"))
		}
	}
	return errs
}

// authFaults checks the fields of the sign-in.
func (s Server) authFaults() []error {
	var errs []error
	switch {
	case s.Auth != "" && s.Auth != AuthOAuth:
		errs = append(errs, fmt.Errorf("auth: %q is not oauth", s.Auth))
	case s.Auth == "" && (s.ClientID != "" || s.ClientSecret != "" || len(s.Scopes) > 0):
		errs = append(errs, errors.New("client_id, client_secret and scopes: they need auth: oauth"))
	case s.Issuer != "" && s.Auth == "":
		errs = append(errs, errors.New("issuer: it needs auth: oauth"))
	case s.ClientSecret != "" && s.ClientID == "":
		errs = append(errs, errors.New("client_secret: it needs client_id"))
	}
	for name := range s.Headers {
		if s.Auth != "" && strings.EqualFold(name, "Authorization") {
			errs = append(errs, errors.New("headers: with auth: oauth, Authorization is set for each user"))
		}
	}
	return errs
}

func (s Server) urlFaults() []error {
	errs := s.authFaults()
	if len(s.Args)+len(s.Env)+len(s.PassEnv) > 0 || s.Dir != "" {
		errs = append(errs, errors.New("args, env, pass_env and dir: they need command"))
	}
	if _, err := guard.ParseURL(s.URL); err != nil {
		errs = append(errs, fmt.Errorf("url: %w", err))
	}
	for name, value := range s.Headers {
		if !headerNamePattern.MatchString(name) {
			errs = append(errs, fmt.Errorf("headers: %q is not a header name", name))
		}
		if strings.ContainsAny(string(value), "\r\n\x00") {
			errs = append(errs, fmt.Errorf("headers: the value of %s must be one line", name))
		}
	}
	return errs
}

// matchesAny reports whether a name matches one of the patterns, which must be valid.
func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := path.Match(p, name)
		return ok && err == nil
	})
}

// offers reports whether a tool of the server is offered.
func (s Server) offers(tool string) bool {
	return (len(s.Include) == 0 || matchesAny(s.Include, tool)) && !matchesAny(s.Exclude, tool)
}
