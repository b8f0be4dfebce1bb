package settings

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode"
)

// Source is the origin of a model in the list.
type Source string

// The sources.
const (
	// SourceDynamic: the provider's API lists it.
	SourceDynamic Source = "DYNAMIC"
	// SourcePreset: the model is the program's own.
	SourcePreset Source = "PRESET"
	// SourceManual: an administrator has added the model.
	SourceManual Source = "MANUAL"
)

// Model is a language model of a provider.
type Model struct {
	Provider string `json:"-"`
	ID       string `json:"id"`
	Name     string `json:"name,omitempty"`
	// ContextTokens is the size of its context; 0 if unknown.
	ContextTokens int    `json:"context_tokens,omitempty"`
	Source        Source `json:"source"`
}

// Ref identifies a model by its provider's id and its own.
type Ref struct {
	Provider string `json:"provider,omitempty"`
	Model    string `json:"model,omitempty"`
}

// String returns provider/model; "" for the zero value.
func (r Ref) String() string {
	if r == (Ref{}) {
		return ""
	}
	return r.Provider + "/" + r.Model
}

// ParseRef parses provider/model. The id of a model may contain slashes.
func ParseRef(text string) (Ref, error) {
	provider, model, found := strings.Cut(strings.TrimSpace(text), "/")
	if !found || provider == "" || model == "" {
		return Ref{}, refuse(Invalid, "A model is named as provider_id/model_id, for example %s/gpt-5-mini.", PresetID)
	}
	return Ref{provider, model}, nil
}

// maxModelID bounds the id of a model in bytes.
const maxModelID = 256

func checkModelID(id string) error {
	if id == "" || len(id) > maxModelID || strings.ContainsFunc(id, func(r rune) bool {
		return unicode.IsControl(r) || unicode.IsSpace(r) || r == unicode.ReplacementChar
	}) {
		return refuse(Invalid, "The id of a model must have 1 to %d characters and no spaces.", maxModelID)
	}
	return nil
}

// Models stores the models of all providers.
type Models struct {
	*records
	providers Providers
}

// List returns the models of a provider, sorted by id.
func (s Models) List(ctx context.Context, provider string) ([]Model, error) {
	if _, err := s.providers.Get(ctx, provider); err != nil {
		return nil, err
	}
	return s.listModels(ctx, provider)
}

func (s Models) listModels(ctx context.Context, provider string) ([]Model, error) {
	kept, _, err := get[[]Model](ctx, s.records, modelsPrefix+provider)
	if err != nil {
		return nil, err
	}
	models := slices.Clone(kept)
	if provider == PresetID && s.cfg.Preset.Type != "" {
		models = slices.DeleteFunc(models, func(m Model) bool { return m.ID == s.cfg.Preset.Model })
		models = append(models, Model{ID: s.cfg.Preset.Model, Source: SourcePreset})
	}
	for i := range models {
		models[i].Provider = provider
		models[i].Name = cmp.Or(models[i].Name, models[i].ID)
		models[i].ContextTokens = cmp.Or(models[i].ContextTokens, ContextTokens(models[i].ID))
	}
	slices.SortFunc(models, func(a, b Model) int { return cmp.Compare(a.ID, b.ID) })
	return models, nil
}

// Get returns a model of a provider.
func (s Models) Get(ctx context.Context, ref Ref) (Model, error) {
	models, err := s.List(ctx, ref.Provider)
	if err != nil {
		return Model{}, err
	}
	i := slices.IndexFunc(models, func(m Model) bool { return m.ID == ref.Model })
	if i < 0 {
		return Model{}, refuse(NotFound, "No model '%s' at provider '%s'. list_models shows which there are; add_model and fetch_models add some.",
			shorten(ref.Model), shorten(ref.Provider))
	}
	return models[i], nil
}

// Add adds a model manually.
func (s Models) Add(ctx context.Context, ref Ref, name string) (Model, error) {
	m := Model{Provider: ref.Provider, ID: strings.TrimSpace(ref.Model), Name: strings.TrimSpace(name), Source: SourceManual}
	if err := checkModelID(m.ID); err != nil {
		return m, err
	}
	if m.Name != "" {
		if err := checkName("display name", m.Name); err != nil {
			return m, err
		}
	}
	if _, err := s.providers.Get(ctx, ref.Provider); err != nil {
		return m, err
	}
	return m, update(ctx, s.records, modelsPrefix+ref.Provider, func(models *[]Model, _ bool) error {
		preset := ref.Provider == PresetID && m.ID == s.cfg.Preset.Model
		if preset || slices.ContainsFunc(*models, func(o Model) bool { return o.ID == m.ID }) {
			return refuse(Exists, "Provider '%s' already has a model '%s'.", ref.Provider, m.ID)
		}
		if len(*models) >= MaxModels {
			return refuse(Full, "Provider '%s' has %d models, no more are kept.", ref.Provider, len(*models))
		}
		*models = append(*models, m)
		return nil
	})
}

// Delete deletes a model that was added manually.
func (s Models) Delete(ctx context.Context, ref Ref) error {
	s.usable.Lock()
	defer s.usable.Unlock()
	m, err := s.Get(ctx, ref)
	if err != nil {
		return err
	}
	if m.Source != SourceManual {
		return refuse(Protected, "Model '%s' is %s; only models added by hand can be deleted.", m.ID, m.Source)
	}
	if all, err := s.List(ctx, ref.Provider); err != nil {
		return err
	} else if len(all) == 1 {
		p, err := s.providers.Get(ctx, ref.Provider)
		if err == nil {
			err = s.providers.checkOthers(ctx, p)
		}
		if err != nil {
			return err
		}
	}
	return update(ctx, s.records, modelsPrefix+ref.Provider, func(models *[]Model, _ bool) error {
		*models = slices.DeleteFunc(*models, func(o Model) bool { return o.ID == ref.Model })
		return nil
	})
}

// Replace replaces the models that were fetched from the provider's API before, and keeps those added
// manually. It leaves out models with an invalid id, and those beyond [MaxModels]. It returns the number
// of fetched models that were stored.
func (s Models) Replace(ctx context.Context, provider string, fetched []Model) (int, error) {
	s.usable.Lock()
	defer s.usable.Unlock()
	p, err := s.providers.Get(ctx, provider)
	if err != nil {
		return 0, err
	}
	kept := 0
	err = update(ctx, s.records, modelsPrefix+provider, func(models *[]Model, _ bool) error {
		all := slices.DeleteFunc(*models, func(m Model) bool { return m.Source != SourceManual })
		seen := map[string]bool{}
		for _, m := range all {
			seen[m.ID] = true
		}
		kept = 0
		for _, m := range fetched {
			if len(all) >= MaxModels {
				s.log.Warn("too many models, leaving out those beyond the limit", "provider", provider, "limit", MaxModels, "models", len(fetched))
				break
			}
			if seen[m.ID] || checkModelID(m.ID) != nil {
				continue
			}
			if checkName("name", m.Name) != nil {
				m.Name = ""
			}
			seen[m.ID] = true
			all = append(all, Model{ID: m.ID, Name: m.Name, ContextTokens: max(0, m.ContextTokens), Source: SourceDynamic})
			kept++
		}
		if *models = all; len(all) == 0 {
			return s.providers.checkOthers(ctx, p)
		}
		return nil
	})
	return kept, err
}

// contextSizes are the published context sizes of models, by prefixes of their names. The longest prefix
// wins.
var contextSizes = []struct {
	prefix string
	tokens int
}{
	{"gpt-4.1", 1_047_576},
	{"gpt-4o", 128_000},
	{"gpt-5", 400_000},
	{"gpt-5-chat", 128_000},
	{"gpt-5.1-chat", 128_000},
	{"gpt-5.2-chat", 128_000},
	{"gpt-5.3-chat", 128_000},
	{"o1", 200_000},
	{"o1-mini", 128_000},
	{"o3", 200_000},
	{"o4-mini", 200_000},
	{"claude-", 200_000},
	{"gemini-2.", 1_048_576},
	{"gemini-3", 1_048_576},
	{"deepseek-chat", 128_000},
	{"deepseek-reasoner", 128_000},
}

// ContextTokens returns the context size of a model with a known name, otherwise 0. It ignores a vendor
// prefix (openai/gpt-4o).
func ContextTokens(model string) int {
	name := model[strings.LastIndexByte(model, '/')+1:]
	longest, tokens := -1, 0
	for _, w := range contextSizes {
		if strings.HasPrefix(name, w.prefix) && len(w.prefix) > longest {
			longest, tokens = len(w.prefix), w.tokens
		}
	}
	return tokens
}
