package models

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"oneclaw/internal/settings"
)

// kinds returns the names of the models by the kind of work.
func (k ByKind) kinds() []kindModel {
	return []kindModel{{"deep", k.Deep}, {"schedules", k.Schedules}, {"webhooks", k.Webhooks}, {"background", k.Background}, {"summaries", k.Summaries}}
}

type kindModel struct{ kind, model string }

// KindModel is a model of [ByKind].
type KindModel struct {
	// Name is its name in the settings, Settings are the settings that name it.
	Name     string
	Settings []string
	// Client sends requests to it, without a fallback; nil if Err says why there is none.
	Client Client
	Err    error

	provider settings.Provider
}

// KindModels returns the models of ByKind, each once. It sends no requests.
func (m *Models) KindModels(ctx context.Context) []KindModel {
	var all []KindModel
	for _, one := range m.ByKind.kinds() {
		if one.model == "" {
			continue
		}
		setting := "models.by_kind." + one.kind
		if i := slices.IndexFunc(all, func(k KindModel) bool { return k.Name == one.model }); i >= 0 {
			all[i].Settings = append(all[i].Settings, setting)
			continue
		}
		k := KindModel{Name: one.model, Settings: []string{setting}}
		route, err := m.findRoute(ctx, one.model)
		if err == nil {
			k.provider = route.Provider
			k.Client, err = m.newClient(ctx, route, false)
		}
		k.Err = err
		all = append(all, k)
	}
	return all
}

// KindReport is what the providers say about a model of [ByKind].
type KindReport struct {
	// Settings are the settings that name the model.
	Settings []string
	// Facts describe the model. Advice says what to change, and is empty if nothing is wrong.
	Facts, Advice string
	// Broken says that the model cannot be asked at all.
	Broken bool
}

// CheckKinds asks the providers about the models of ByKind, free of charge. It also reports if no model
// can be asked at all, unless the own one lacks its key: whoever looks at that model says so.
func (m *Models) CheckKinds(ctx context.Context) []KindReport {
	var all []KindReport
	if usable, err := m.Settings.Providers.AnyUsable(ctx, ""); err == nil && !usable && !m.Own.LacksKey() {
		all = append(all, KindReport{Settings: []string{"providers"}, Advice: noModelRemedy, Broken: true})
	}
	for _, k := range m.KindModels(ctx) {
		facts, advice := m.checkKind(ctx, k)
		all = append(all, KindReport{Settings: k.Settings, Facts: facts, Advice: advice, Broken: k.Err != nil})
	}
	return all
}

func (m *Models) checkKind(ctx context.Context, k KindModel) (facts, advice string) {
	if k.Err != nil {
		return "", fmt.Sprintf("%s: %v", k.Name, k.Err)
	}
	listed, err := m.List(ctx, k.provider)
	if err != nil {
		return "", fmt.Sprintf("%s: its provider lists no models, so the rest shows in use: %v", k.Name, err)
	}
	ref, _ := settings.ParseRef(k.Name) // the setting was validated
	if !slices.ContainsFunc(listed, func(one settings.Model) bool { return strings.TrimPrefix(one.ID, "models/") == ref.Model }) {
		return "", fmt.Sprintf("%s is none of the %d models of its provider", k.Name, len(listed))
	}
	known, err := k.Client.CurrentFacts(ctx)
	if err != nil {
		return "", fmt.Sprintf("%s: what it can do could not be asked: %v", k.Name, err)
	}
	return k.Name + ": " + DescribeFacts(known), ContextAdvice(k.Name, known)
}

// LogAdvice asks the provider about the program's own model, and logs what an operator should change about
// it and about the models of ByKind. It returns no error: the models are needed only when a message comes.
func (m *Models) LogAdvice(ctx context.Context) error {
	for _, k := range m.KindModels(ctx) {
		if k.Err != nil {
			m.Logger.Warn("a model of models.by_kind cannot be asked: oneclaw doctor says more", "setting", strings.Join(k.Settings, ", "), "model", k.Name, "err", k.Err)
		}
	}
	route, err := m.Settings.Chats.Route(ctx, settings.Ref{Provider: settings.PresetID, Model: m.Own.Name})
	if err != nil {
		return nil // without a key there is no model to ask about
	}
	client, err := m.newClient(ctx, route, false)
	if err != nil {
		return nil // the first message says why
	}
	m.refreshFacts(ctx, client)
	if advice := ContextAdvice(m.Own.Name, client.Facts()); advice != "" {
		m.Logger.Warn("the model is of limited use", "advice", advice)
	}
	return nil
}
