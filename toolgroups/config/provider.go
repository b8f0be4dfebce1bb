package config

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"oneclaw/internal/settings"
	"oneclaw/toolgroups"
)

func (f *Tools) listProviders(ctx context.Context, _ toolgroups.Call, _ noArgs) (string, error) {
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

type createProviderArgs struct {
	Name    string        `json:"name"`
	Type    settings.Type `json:"type"`
	BaseURL string        `json:"api_base_url"`
}

func (f *Tools) createProvider(ctx context.Context, _ toolgroups.Call, in createProviderArgs) (string, error) {
	p, err := f.cfg.Settings.Providers.Add(ctx, in.Name, in.Type, in.BaseURL)
	return fmt.Sprintf("Provider '%s' was added with the id %s. It is inactive and has no API key yet: "+
		"an administrator of the machine enters the key with `oneclaw provider key %s` (never in the chat); "+
		"then update_provider activates it.", p.Name, p.ID, p.ID), err
}

type updateProviderArgs struct {
	ID      string  `json:"provider_id"`
	Name    *string `json:"name"`
	BaseURL *string `json:"api_base_url"`
	Active  *bool   `json:"is_active"`
}

func (f *Tools) updateProvider(ctx context.Context, _ toolgroups.Call, in updateProviderArgs) (string, error) {
	before, after, err := f.cfg.Settings.Providers.Change(ctx, in.ID,
		settings.ProviderChange{Name: in.Name, BaseURL: in.BaseURL, Active: in.Active})
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

type providerIDArgs struct {
	ID string `json:"provider_id"`
}

func (f *Tools) deleteProvider(ctx context.Context, _ toolgroups.Call, in providerIDArgs) (string, error) {
	p, err := f.cfg.Settings.Providers.Delete(ctx, in.ID)
	return fmt.Sprintf("Provider '%s' was deleted with its models and its key.", p.Name), err
}

func (f *Tools) listModels(ctx context.Context, _ toolgroups.Call, in providerIDArgs) (string, error) {
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

// maxListedModels bounds the fetched models listed in a result.
const maxListedModels = 200

func (f *Tools) fetchModels(ctx context.Context, _ toolgroups.Call, in providerIDArgs) (string, error) {
	p, err := f.cfg.Settings.Providers.Get(ctx, in.ID)
	if err != nil {
		return "", err
	}
	if !p.HasKey {
		return "", toolgroups.Errorf(codeKeyRequired,
			"Provider '%s' has no API key. An administrator of the machine enters it with `oneclaw provider key %s`; it cannot be done in the chat.", p.Name, p.ID)
	}
	if f.cfg.FetchModels == nil {
		return "", toolgroups.Errorf(codeFetchFailed, "This bot cannot ask providers for their models. Use add_model.")
	}
	fetched, err := f.cfg.FetchModels(ctx, p)
	if err != nil {
		if ctx.Err() != nil {
			return "", err
		}
		return "", toolgroups.Errorf(codeFetchFailed, "The API of provider '%s' did not give its models: %s", p.Name, err)
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
		if i == maxListedModels {
			fmt.Fprintf(&b, "\n… and %d more, see list_models", len(models)-i)
			break
		}
		b.WriteString("\n- " + m.ID)
	}
	return b.String(), nil
}

type modelArgs struct {
	Provider    string `json:"provider_id"`
	Model       string `json:"model_id"`
	DisplayName string `json:"display_name"`
}

func (in modelArgs) ref() settings.Ref {
	return settings.Ref{Provider: in.Provider, Model: strings.TrimSpace(in.Model)}
}

func (f *Tools) setDefaultModel(ctx context.Context, _ toolgroups.Call, in modelArgs) (string, error) {
	// Get the model first, so that the error for an unknown model is not_found.
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

func (f *Tools) addModel(ctx context.Context, _ toolgroups.Call, in modelArgs) (string, error) {
	m, err := f.cfg.Settings.Models.Add(ctx, in.ref(), in.DisplayName)
	return fmt.Sprintf("Model '%s' was added.", m.ID), err
}

func (f *Tools) deleteModel(ctx context.Context, _ toolgroups.Call, in modelArgs) (string, error) {
	err := f.cfg.Settings.Models.Delete(ctx, in.ref())
	return fmt.Sprintf("Model '%s' was deleted.", in.ref().Model), err
}
