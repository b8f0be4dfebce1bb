package settings

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"oneclaw/storage"
)

// sealPurpose separates the keys derived for settings from other uses of the secret key.
const sealPurpose = "oneclaw settings v1"

// Vault reads and stores secrets. It is used by code that calls providers or runs user tools, and by the
// command line. Tools have no access to it.
type Vault struct {
	*records
	providers Providers
	variables Variables
}

// Variables stores named values for user tools. Only the [Vault] can read the values.
type Variables struct{ *records }

// keyContext returns the context with which a key is sealed, which binds the key to its server.
func keyContext(p Provider) (string, error) {
	server, err := parseOrigin(p.BaseURL)
	return keyPrefix + p.ID + "\n" + server, err
}

// Key returns the API key of a provider, which may be empty for a server without authentication. If no
// key was entered, the error is an [*Error] with the reason [NotFound].
func (v *Vault) Key(ctx context.Context, p Provider) (string, error) {
	if p.ID == PresetID && v.cfg.Preset.Type != "" {
		return v.cfg.Preset.Key, nil
	}
	entry, exists, err := v.read(ctx, keyPrefix+p.ID)
	if err != nil {
		return "", err
	}
	if !exists {
		return "", refuse(NotFound, "Provider '%s' has no API key. An administrator enters it with: oneclaw provider key %s", p.Name, p.ID)
	}
	place, err := keyContext(p)
	if err != nil {
		return "", err
	}
	key, err := v.sealer.Open(place, entry.Value)
	if err != nil {
		return "", fmt.Errorf("settings: decrypt the key of provider %s: %w; enter it again with: oneclaw provider key %s", p.ID, err, p.ID)
	}
	v.reportSecret(string(key))
	return string(key), nil
}

// ReportSecrets passes all readable keys and variables to [Config.OnSecret].
func (v *Vault) ReportSecrets(ctx context.Context) error {
	providers, err := v.providers.List(ctx)
	if err != nil {
		return err
	}
	for _, p := range providers {
		if _, err := v.Key(ctx, p); err != nil && !Is(err, NotFound) {
			v.log.Warn("cannot read the key of a provider", "provider", p.ID, "err", err)
		}
	}
	names, err := v.variables.Names(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, err := v.Variables(ctx, []string{name}); err != nil {
			v.log.Warn("cannot read a variable", "variable", name, "err", err)
		}
	}
	return nil
}

func (r *records) reportSecret(secret string) {
	if r.cfg.OnSecret != nil && secret != "" {
		r.cfg.OnSecret(secret)
	}
}

// SetKey stores the API key of a provider. An empty key means that the provider requires none.
func (v *Vault) SetKey(ctx context.Context, provider, key string) error {
	p, err := v.providers.Get(ctx, provider)
	if err != nil {
		return err
	}
	if p.Preset {
		return refuse(Protected, "The key of this provider is set where the program is started (OPENAI_API_KEY).")
	}
	key = strings.TrimSpace(key)
	if len(key) > MaxKey || strings.ContainsFunc(key, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }) {
		return refuse(Invalid, "This is no API key: it is longer than %d bytes, or has spaces or line breaks in it.", MaxKey)
	}
	place, err := keyContext(p)
	if err != nil {
		return err
	}
	v.reportSecret(key)
	// Any: the key that was entered last wins.
	return v.write(ctx, keyPrefix+p.ID, v.sealer.Seal(place, []byte(key)), storage.Any)
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// Variables returns the values of the named variables that exist.
func (v *Vault) Variables(ctx context.Context, names []string) (map[string]string, error) {
	values := map[string]string{}
	for _, name := range names {
		if !variableName.MatchString(name) {
			continue
		}
		entry, exists, err := v.read(ctx, variablePrefix+name)
		if err != nil {
			return nil, err
		}
		if !exists {
			continue
		}
		value, err := v.sealer.Open(variablePrefix+name, entry.Value)
		if err != nil {
			return nil, fmt.Errorf("settings: variable %s: %w; set it again", name, err)
		}
		values[name] = string(value)
		v.reportSecret(string(value))
	}
	return values, nil
}

// Names returns the names of all variables, sorted.
func (v Variables) Names(ctx context.Context) ([]string, error) {
	return v.listNames(ctx, variablePrefix)
}

// Set stores a variable.
func (v Variables) Set(ctx context.Context, name, value string) error {
	if err := checkVariable(name); err != nil {
		return err
	}
	if len(value) > MaxVariable || strings.ContainsRune(value, 0) {
		return refuse(Invalid, "The value of %s is longer than %d bytes or holds a zero byte.", name, MaxVariable)
	}
	names, err := v.Names(ctx)
	if err != nil {
		return err
	}
	if len(names) >= maxVariables && !slices.Contains(names, name) {
		return refuse(Full, "There are %d variables, no more are possible. Delete one first.", len(names))
	}
	v.reportSecret(value)
	// Any: the value that was set last wins. Two concurrent calls can exceed maxVariables by one.
	return v.write(ctx, variablePrefix+name, v.sealer.Seal(variablePrefix+name, []byte(value)), storage.Any)
}

// Delete deletes a variable, if it exists.
func (v Variables) Delete(ctx context.Context, name string) error {
	if err := checkVariable(name); err != nil {
		return err
	}
	return v.remove(ctx, variablePrefix+name)
}

func checkVariable(name string) error {
	if !variableName.MatchString(name) {
		return refuse(Invalid, "The name of a variable must match %v.", variableName)
	}
	return nil
}
