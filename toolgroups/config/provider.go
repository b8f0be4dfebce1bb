package config

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"oneclaw/internal/settings"
	"oneclaw/toolgroups"
)

func (f *Family) listProviders(ctx context.Context, _ toolgroups.Call, _ none) (string, error) {
	providers, err := f.cfg.Settings.Providers.List(ctx)
	if err != nil {
		return "", err
	}
	if len(providers) == 0 {
		return "There are no providers. create_provider adds one.", nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d providers:", len(providers))
	for _, p := range providers {
		fmt.Fprintf(&b, "\n- %s\n  id: %s, type: %s, base URL: %s, active: %s, pre-configured: %s, key present: %s",
			p.Name, p.ID, p.Type, p.BaseURL, yesNo(p.Active), yesNo(p.Preset), yesNo(p.HasKey))
	}
	return b.String(), nil
}

type createProvider struct {
	Name string        `json:"name"`
	Type settings.Type `json:"type"`
	URL  string        `json:"api_base_url"`
}

func (f *Family) createProvider(ctx context.Context, _ toolgroups.Call, in createProvider) (string, error) {
	p, err := f.cfg.Settings.Providers.Add(ctx, in.Name, in.Type, in.URL)
	return fmt.Sprintf("Provider '%s' was added with the id %s. It is inactive and has no API key yet: "+
		"an administrator of the machine enters the key with `oneclaw provider key %s` (never in the chat); "+
		"then update_provider activates it.", p.Name, p.ID, p.ID), err
}

type updateProvider struct {
	ID     string  `json:"provider_id"`
	Name   *string `json:"name"`
	URL    *string `json:"api_base_url"`
	Active *bool   `json:"is_active"`
}

func (f *Family) updateProvider(ctx context.Context, _ toolgroups.Call, in updateProvider) (string, error) {
	before, after, err := f.cfg.Settings.Providers.Change(ctx, in.ID,
		settings.ProviderChange{Name: in.Name, BaseURL: in.URL, Active: in.Active})
	if err != nil {
		return "", err
	}
	var changed []string
	note := func(field, from, to string) {
		if from != to {
			changed = append(changed, fmt.Sprintf("- %s: %s -> %s", field, from, to))
		}
	}
	note("name", before.Name, after.Name)
	note("base URL", before.BaseURL, after.BaseURL)
	note("active", yesNo(before.Active), yesNo(after.Active))
	if len(changed) == 0 {
		return fmt.Sprintf("Nothing about provider '%s' was changed: it is already like that.", after.Name), nil
	}
	text := fmt.Sprintf("Provider '%s' was changed:\n%s", after.Name, strings.Join(changed, "\n"))
	switch {
	case before.HasKey && !after.HasKey:
		text += "\nIts API key was dropped, because it was entered for another server. It has to be entered again with `oneclaw provider key " + after.ID + "`."
	case after.Active && !after.HasKey:
		text += "\nIt has no API key yet, so it cannot be used: `oneclaw provider key " + after.ID + "`."
	}
	return text, nil
}

type providerID struct {
	ID string `json:"provider_id"`
}

func (f *Family) deleteProvider(ctx context.Context, _ toolgroups.Call, in providerID) (string, error) {
	p, err := f.cfg.Settings.Providers.Delete(ctx, in.ID)
	return fmt.Sprintf("Provider '%s' was deleted with its models and its key.", p.Name), err
}

func (f *Family) listModels(ctx context.Context, _ toolgroups.Call, in providerID) (string, error) {
	p, err := f.cfg.Settings.Providers.Get(ctx, in.ID)
	if err != nil {
		return "", err
	}
	models, err := f.cfg.Settings.Models.List(ctx, in.ID)
	if err != nil {
		return "", err
	}
	if len(models) == 0 {
		return fmt.Sprintf("No models of provider '%s' are known. fetch_models asks its API, add_model adds one by hand.", p.Name), nil
	}
	byDefault, err := f.cfg.Settings.Values.Get(ctx, settings.SettingDefaultModel)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d models of provider '%s':", len(models), p.Name)
	for _, m := range models {
		fmt.Fprintf(&b, "\n- %s", m.ID)
		if m.Name != m.ID {
			fmt.Fprintf(&b, " (%s)", m.Name)
		}
		fmt.Fprintf(&b, ": %s", m.Source)
		if m.ContextTokens > 0 {
			fmt.Fprintf(&b, ", context of %d tokens", m.ContextTokens)
		}
		if byDefault == (settings.Ref{Provider: in.ID, Model: m.ID}).String() {
			b.WriteString(", default")
		}
	}
	return b.String(), nil
}

// maxNamed bounds the fetched models in a result.
const maxNamed = 200

func (f *Family) fetchModels(ctx context.Context, _ toolgroups.Call, in providerID) (string, error) {
	p, err := f.cfg.Settings.Providers.Get(ctx, in.ID)
	if err != nil {
		return "", err
	}
	if !p.HasKey {
		return "", toolgroups.Errorf(CodeKeyRequired,
			"Provider '%s' has no API key. An administrator of the machine enters it with `oneclaw provider key %s`; it cannot be done in the chat.", p.Name, p.ID)
	}
	if f.cfg.Models == nil {
		return "", toolgroups.Errorf(CodeFetchFailed, "This bot cannot ask providers for their models. Use add_model.")
	}
	fetched, err := f.cfg.Models(ctx, p)
	if err != nil {
		if ctx.Err() != nil {
			return "", err
		}
		return "", toolgroups.Errorf(CodeFetchFailed, "The API of provider '%s' did not give its models: %s", p.Name, err)
	}
	n, err := f.cfg.Settings.Models.Replace(ctx, in.ID, fetched)
	if err != nil {
		return "", err
	}
	models, err := f.cfg.Settings.Models.List(ctx, in.ID)
	if err != nil {
		return "", err
	}
	models = slices.DeleteFunc(models, func(m settings.Model) bool { return m.Source != settings.SourceDynamic })
	var b strings.Builder
	fmt.Fprintf(&b, "Provider '%s' has %d models:", p.Name, n)
	for i, m := range models {
		if i == maxNamed {
			fmt.Fprintf(&b, "\n… and %d more, see list_models", len(models)-i)
			break
		}
		b.WriteString("\n- " + m.ID)
	}
	return b.String(), nil
}

type modelID struct {
	Provider string `json:"provider_id"`
	Model    string `json:"model_id"`
	Name     string `json:"display_name"`
}

func (in modelID) ref() settings.Ref {
	return settings.Ref{Provider: in.Provider, Model: strings.TrimSpace(in.Model)}
}

func (f *Family) setDefaultModel(ctx context.Context, _ toolgroups.Call, in modelID) (string, error) {
	// Checked first, so that an unknown model is not_found instead of an invalid value.
	m, err := f.cfg.Settings.Models.Get(ctx, in.ref())
	if err == nil {
		err = f.cfg.Settings.Values.Set(ctx, settings.SettingDefaultModel, in.ref().String())
	}
	if err != nil {
		return "", err
	}
	p, err := f.cfg.Settings.Providers.Get(ctx, in.Provider)
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf("'%s' of provider '%s' is now the default model.", m.Name, p.Name)
	if !p.Active || !p.HasKey {
		text += " It cannot be used yet: the provider is inactive or has no API key. Until then another model answers."
	}
	return text, nil
}

func (f *Family) addModel(ctx context.Context, _ toolgroups.Call, in modelID) (string, error) {
	m, err := f.cfg.Settings.Models.Add(ctx, in.ref(), in.Name)
	return fmt.Sprintf("Model '%s' was added.", m.ID), err
}

func (f *Family) deleteModel(ctx context.Context, _ toolgroups.Call, in modelID) (string, error) {
	err := f.cfg.Settings.Models.Delete(ctx, in.ref())
	return fmt.Sprintf("Model '%s' was deleted.", in.ref().Model), err
}
