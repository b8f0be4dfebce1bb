package settings

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"oneclaw/storage"
)

// sealPurpose keeps what is sealed here apart from what others seal with the secret.
const sealPurpose = "oneclaw settings v1"

// Vault reads secrets. It belongs to what calls providers and runs user tools, and to
// the command line; no tool is given one.
type Vault struct{ settings *Settings }

// keyPlace binds a key to the server that it was entered for.
func keyPlace(p Provider) (string, error) {
	server, err := origin(p.BaseURL)
	return keyPrefix + p.ID + "\n" + server, err
}

// Key returns the API key of a provider, which may be empty where its server wants
// none; a refusal for [NotFound] where none was entered.
func (v *Vault) Key(ctx context.Context, p Provider) (string, error) {
	s := v.settings
	if p.ID == PresetID && s.cfg.Preset.Type != "" {
		return s.cfg.Preset.Key, nil
	}
	entry, err := s.kv.Get(ctx, keyPrefix+p.ID)
	if errors.Is(err, storage.ErrNotFound) {
		return "", refuse(NotFound, "Provider '%s' has no API key. An administrator enters it with: oneclaw provider key %s", p.Name, p.ID)
	}
	if err != nil {
		return "", fmt.Errorf("settings: read the key of provider %s: %w", p.ID, err)
	}
	place, err := keyPlace(p)
	if err != nil {
		return "", err
	}
	key, err := s.seal.Open(place, entry.Value)
	if err != nil {
		return "", fmt.Errorf("settings: key of provider %s, bound to its server: %w; enter it again with: oneclaw provider key %s", p.ID, err, p.ID)
	}
	s.reveal(string(key))
	return string(key), nil
}

// Reveal gives all keys and variables to [Config.Revealed]. One that can not be read is
// logged and left out.
func (v *Vault) Reveal(ctx context.Context) error {
	s := v.settings
	providers, err := s.Providers(ctx)
	if err != nil {
		return err
	}
	for _, p := range providers {
		if _, err := v.Key(ctx, p); err != nil && !Is(err, NotFound) {
			s.log.Warn("key of a provider can not be read", "provider", p.ID, "err", err)
		}
	}
	names, err := s.VariableNames(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, err := v.Variables(ctx, []string{name}); err != nil {
			s.log.Warn("variable can not be read", "variable", name, "err", err)
		}
	}
	return nil
}

func (s *Settings) reveal(secret string) {
	if s.cfg.Revealed != nil && secret != "" {
		s.cfg.Revealed(secret)
	}
}

// SetKey stores the API key of a provider. An empty one says that its server wants
// none.
func (v *Vault) SetKey(ctx context.Context, provider, key string) error {
	s := v.settings
	p, err := s.Provider(ctx, provider)
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
	place, err := keyPlace(p)
	if err != nil {
		return err
	}
	if _, err := s.kv.Put(ctx, keyPrefix+p.ID, s.seal.Seal(place, []byte(key)), storage.Any); err != nil {
		return fmt.Errorf("settings: write the key of provider %s: %w", p.ID, err)
	}
	s.reveal(key)
	return nil
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// Variables returns the values of those of the named variables that there are.
func (v *Vault) Variables(ctx context.Context, names []string) (map[string]string, error) {
	s := v.settings
	values := map[string]string{}
	for _, name := range names {
		if !variableName.MatchString(name) {
			continue
		}
		entry, err := s.kv.Get(ctx, variablePrefix+name)
		if errors.Is(err, storage.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("settings: read variable %s: %w", name, err)
		}
		value, err := s.seal.Open(variablePrefix+name, entry.Value)
		if err != nil {
			return nil, fmt.Errorf("settings: variable %s: %w; set it again", name, err)
		}
		values[name] = string(value)
		s.reveal(string(value))
	}
	return values, nil
}

// VariableNames returns the names of all variables, sorted.
func (s *Settings) VariableNames(ctx context.Context) ([]string, error) {
	names := map[string]bool{}
	for entry, err := range s.kv.List(ctx, storage.Range{Prefix: variablePrefix}) {
		if err != nil {
			return nil, fmt.Errorf("settings: list variables: %w", err)
		}
		names[strings.TrimPrefix(entry.Key, variablePrefix)] = true
	}
	return slices.Sorted(maps.Keys(names)), nil
}

// SetVariable stores a variable. Its value can be read from the [Vault] alone.
func (s *Settings) SetVariable(ctx context.Context, name, value string) error {
	if err := checkVariable(name); err != nil {
		return err
	}
	if len(value) > MaxVariable || strings.ContainsRune(value, 0) {
		return refuse(Invalid, "The value of %s is longer than %d bytes or holds a zero byte.", name, MaxVariable)
	}
	names, err := s.VariableNames(ctx)
	if err != nil {
		return err
	}
	if len(names) >= MaxVariables && !slices.Contains(names, name) {
		return refuse(Full, "There are %d variables, no more are possible. Delete one first.", len(names))
	}
	if _, err := s.kv.Put(ctx, variablePrefix+name, s.seal.Seal(variablePrefix+name, []byte(value)), storage.Any); err != nil {
		return fmt.Errorf("settings: write variable %s: %w", name, err)
	}
	s.reveal(value)
	return nil
}

// DeleteVariable deletes a variable. One that there is not is no error.
func (s *Settings) DeleteVariable(ctx context.Context, name string) error {
	if err := checkVariable(name); err != nil {
		return err
	}
	return s.remove(ctx, variablePrefix+name)
}

func checkVariable(name string) error {
	if !variableName.MatchString(name) {
		return refuse(Invalid, "The name of a variable must match %s.", variableName)
	}
	return nil
}
