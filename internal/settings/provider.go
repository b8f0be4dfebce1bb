package settings

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strings"

	"oneclaw/internal/wording"
	"oneclaw/storage"
)

// Type is the API of a provider.
type Type string

// The types.
const (
	TypeOpenAI    Type = "OPENAI"
	TypeAnthropic Type = "ANTHROPIC"
	TypeGemini    Type = "GEMINI"
)

// PresetID is the id of the program's own provider.
const PresetID = "preset"

// maxURL bounds an address in bytes.
const maxURL = 2048

// Provider is a server with language models.
type Provider struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Type    Type   `json:"type"`
	BaseURL string `json:"base_url"`
	// Active is set if the provider's models may be used.
	Active bool `json:"active"`
	// Preset is set for the program's own provider.
	Preset bool `json:"-"`
	// HasKey is set if an API key was entered, and always for the program's own provider.
	HasKey bool `json:"-"`
}

func (p *Provider) check() error {
	if err := checkName("name", p.Name); err != nil {
		return err
	}
	switch p.Type {
	case TypeOpenAI, TypeAnthropic, TypeGemini:
	default:
		return refuse(Invalid, "The type must be one of %s, %s, %s.", TypeOpenAI, TypeAnthropic, TypeGemini)
	}
	_, err := parseOrigin(p.BaseURL)
	return err
}

// parseOrigin returns the scheme, host and port of a base URL, to which the key is bound.
func parseOrigin(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil || len(address) > maxURL || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" ||
		u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", refuse(Invalid, "The base URL must look like https://host/v1, without user, query or fragment.")
	}
	return u.Scheme + "://" + strings.ToLower(u.Host), nil
}

// Providers stores providers, and lists them together with the program's own.
type Providers struct{ *records }

// readPreset returns the program's own provider with stored changes.
func (s Providers) readPreset(ctx context.Context) (Provider, error) {
	p := s.cfg.Preset.provider()
	r, exists, err := get[Provider](ctx, s.records, providerPrefix+PresetID)
	if exists {
		p.applyStored(r)
	}
	return p, err
}

// applyStored applies stored changes to the program's own provider.
func (p *Provider) applyStored(r Provider) { p.Name, p.Active = cmp.Or(r.Name, p.Name), r.Active }

func providerNotFound(id string) error {
	return refuse(NotFound, "There is no provider '%s'. list_providers shows those there are.", shorten(id))
}

// shorten clips a user's text for use in an error message.
func shorten(text string) string { return wording.Clip(text, 64) }

// Get returns the provider with an id. If there is none, or the stored one is invalid, the error is an
// [*Error] with the reason [NotFound].
func (s Providers) Get(ctx context.Context, id string) (Provider, error) {
	if id == PresetID && s.cfg.Preset.Type != "" {
		return s.readPreset(ctx)
	}
	if !isValidID(id) || id == PresetID {
		return Provider{}, providerNotFound(id)
	}
	p, exists, err := get[Provider](ctx, s.records, providerPrefix+id)
	if err != nil {
		return Provider{}, err
	}
	if !exists || !s.logIfInvalid(providerPrefix+id, p.check()) {
		return Provider{}, providerNotFound(id)
	}
	p.ID = id
	_, p.HasKey, err = s.read(ctx, keyPrefix+id)
	return p, err
}

// List returns all providers, the program's own first, then by name.
func (s Providers) List(ctx context.Context) ([]Provider, error) {
	stored, err := list[Provider](ctx, s.records, providerPrefix)
	if err != nil {
		return nil, err
	}
	delete(stored, PresetID)
	maps.DeleteFunc(stored, func(id string, p Provider) bool { return !s.logIfInvalid(providerPrefix+id, p.check()) })
	for id, p := range stored {
		p.ID = id
		if _, p.HasKey, err = s.read(ctx, keyPrefix+id); err != nil {
			return nil, err
		}
		stored[id] = p
	}
	all := sortByName(stored, func(p Provider) (name, id string) { return p.Name, p.ID })
	if s.cfg.Preset.Type == "" {
		return all, nil
	}
	own, err := s.readPreset(ctx)
	return slices.Insert(all, 0, own), err
}

// Add stores a new provider, inactive and without a key.
func (s Providers) Add(ctx context.Context, name string, kind Type, baseURL string) (Provider, error) {
	p := Provider{ID: newID("provider"), Name: strings.TrimSpace(name), Type: kind, BaseURL: cleanURL(baseURL)}
	if err := p.check(); err != nil {
		return Provider{}, err
	}
	names, err := s.listNames(ctx, providerPrefix)
	if err != nil {
		return Provider{}, err
	}
	if n := len(names); n >= maxProviders {
		return Provider{}, refuse(Full, "There are %d providers, no more are possible. Delete one first.", n)
	}
	return p, s.put(ctx, providerPrefix+p.ID, p, storage.Absent)
}

func cleanURL(address string) string { return strings.TrimRight(strings.TrimSpace(address), "/") }

// usable reports whether models of the provider can be asked.
func (s Providers) usable(ctx context.Context, p Provider) (bool, error) {
	switch {
	case !p.Active, !p.HasKey, p.Preset && s.cfg.Preset.LacksKey:
		return false, nil
	case p.Preset:
		return true, nil
	}
	models, _, err := get[[]Model](ctx, s.records, modelsPrefix+p.ID)
	return len(models) > 0, err
}

// AnyUsable reports whether models of any provider can be asked, except those of the one with an id.
func (s Providers) AnyUsable(ctx context.Context, except string) (bool, error) {
	all, err := s.List(ctx)
	if err != nil {
		return false, err
	}
	for _, p := range all {
		if p.ID == except {
			continue
		}
		if ok, err := s.usable(ctx, p); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// checkOthers returns an error if a provider that can be asked is the only one: nobody would be answered
// without it.
func (s Providers) checkOthers(ctx context.Context, p Provider) error {
	ok, err := s.usable(ctx, p)
	if !ok || err != nil {
		return err
	}
	others, err := s.AnyUsable(ctx, p.ID)
	if others || err != nil {
		return err
	}
	return refuse(Protected, "Provider '%s' is the only one that can be asked, so nobody would be answered any more. Make another one usable first: active, with a key and a model.", p.Name)
}

// ProviderChange is a change of a provider; nil leaves a field unchanged.
type ProviderChange struct {
	Name    *string
	BaseURL *string
	Active  *bool
}

// Change changes a provider and returns it as it was before and after. If the base URL moves to another
// server, the key is deleted, so that it is never sent to a server for which it was not entered. For the
// program's own provider, the base URL cannot be changed.
func (s Providers) Change(ctx context.Context, id string, c ProviderChange) (before, after Provider, err error) {
	s.records.usable.Lock()
	defer s.records.usable.Unlock()
	if before, err = s.Get(ctx, id); err != nil {
		return before, before, err
	}
	if c.Active != nil && !*c.Active {
		if err := s.checkOthers(ctx, before); err != nil {
			return before, before, err
		}
	}
	if before.Preset {
		return s.changePreset(ctx, c)
	}
	if c.BaseURL != nil {
		from, _ := parseOrigin(before.BaseURL)
		if to, err := parseOrigin(cleanURL(*c.BaseURL)); err == nil && from != to { // its key will go
			if err := s.checkOthers(ctx, before); err != nil {
				return before, before, err
			}
		}
	}
	moved := false
	err = update(ctx, s.records, providerPrefix+id, func(value *Provider, exists bool) error {
		if !exists {
			return providerNotFound(id)
		}
		value.ID, value.HasKey = id, before.HasKey
		before, after = *value, *value
		after.apply(c)
		if err := after.check(); err != nil {
			return err
		}
		from, _ := parseOrigin(before.BaseURL)
		to, err := parseOrigin(after.BaseURL)
		if moved = from != to; moved && before.HasKey {
			// Delete the key first, so that a crash cannot leave the key with the new address.
			after.HasKey = false
			err = errors.Join(err, s.remove(ctx, keyPrefix+id))
		}
		*value = after
		return err
	})
	return before, after, err
}

func (p *Provider) apply(c ProviderChange) {
	if c.Name != nil {
		p.Name = strings.TrimSpace(*c.Name)
	}
	if c.BaseURL != nil {
		p.BaseURL = cleanURL(*c.BaseURL)
	}
	if c.Active != nil {
		p.Active = *c.Active
	}
}

func (s Providers) changePreset(ctx context.Context, c ProviderChange) (before, after Provider, err error) {
	err = update(ctx, s.records, providerPrefix+PresetID, func(kept *Provider, exists bool) error {
		if before = s.cfg.Preset.provider(); exists {
			before.applyStored(*kept)
		}
		after = before
		after.apply(c)
		if err := after.check(); err != nil {
			after = before
			return err
		}
		if after.BaseURL != cleanURL(before.BaseURL) {
			after = before
			return refuse(Protected, "The base URL of this provider is set where the program is started and cannot be changed here.")
		}
		after.BaseURL = before.BaseURL
		*kept = Provider{Name: after.Name, Active: after.Active}
		return nil
	})
	return before, after, err
}

// Delete deletes a provider with its key and its models.
func (s Providers) Delete(ctx context.Context, id string) (Provider, error) {
	s.records.usable.Lock()
	defer s.records.usable.Unlock()
	p, err := s.Get(ctx, id)
	if err != nil {
		return p, err
	}
	if p.Preset {
		return p, refuse(Protected, "Provider '%s' is set where the program is started and cannot be deleted. It can be switched off with update_provider.", p.Name)
	}
	if err := s.checkOthers(ctx, p); err != nil {
		return p, err
	}
	// Delete the provider itself last, so that an interrupted deletion can be repeated.
	for _, key := range []string{keyPrefix + id, modelsPrefix + id, providerPrefix + id} {
		if err := s.remove(ctx, key); err != nil {
			return p, err
		}
	}
	return p, nil
}
