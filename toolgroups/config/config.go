// Package config is the group of tools with which an administrator configures the bot in a chat:
// providers, models, agents, settings, variables and switches. It also has the core tool
// create_agent, which every user may call.
//
// The tools change [settings.Settings]. They can neither read nor write API keys, and cannot
// read the values of variables: the package has no access to them. The tools that switch tools on
// cannot be switched off.
package config

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"oneclaw/internal/settings"
	"oneclaw/internal/wording"
	"oneclaw/toolgroups"
)

//go:embed *.json
var manifests embed.FS

// Error codes in addition to those of package toolgroups.
const (
	codeNotFound       = "not_found"
	codeKeyRequired    = "api_key_required"
	codeFetchFailed    = "fetch_failed"
	codeAddFailed      = "add_failed"
	codeUpdateFailed   = "update_failed"
	codeDeletionFailed = "deletion_failed"
	codeCreationFailed = "creation_failed"
)

// Config configures a [Tools].
type Config struct {
	// Settings are the settings that the tools change. Required.
	Settings *settings.Settings
	// Registry returns the current registry, for the names and states of tools. It is called only
	// when a tool runs. Required.
	Registry func() *toolgroups.Registry
	// FetchModels fetches the models from a provider's API. Its error is shown to the model and must
	// not contain secrets. Nil means that fetching is not available.
	FetchModels func(ctx context.Context, p settings.Provider) ([]settings.Model, error)
	// Skills are the skills, which can be switched, too. Nil means none.
	Skills Skills
	// OnSwitch rebuilds the registry. It is called after a switch has changed and before the tool
	// returns. Nil means that the tool does not wait for the new registry.
	OnSwitch func(ctx context.Context) error
}

// Skills says which skills there are.
type Skills interface {
	// States returns whether each skill is switched on, by name.
	States() map[string]bool
	// Description returns what a skill says of itself, which stands in every prompt once it is switched on.
	Description(name string) string
}

// Tools holds the tools. It may be used concurrently.
type Tools struct {
	cfg             Config
	group           toolgroups.Group
	createAgentTool toolgroups.Tool
}

// New makes the tools. It does not read the settings.
func New(cfg Config) (*Tools, error) {
	if cfg.Settings == nil || cfg.Registry == nil {
		return nil, errors.New("config: settings and registry are required")
	}
	f := &Tools{cfg: cfg}
	var err, agentErr error
	f.group, err = toolgroups.ReadGroup(manifests, "config", f.handlers())
	f.createAgentTool, agentErr = toolgroups.ReadTool(manifests, "create_agent", toolgroups.TypedHandler(f.createAgent))
	f.createAgentTool.Undo, f.createAgentTool.NeedsApproval = f.undoCreateAgent, exceedsLine
	for i := range f.group.Tools {
		f.group.Tools[i].Describe = f.describe
	}
	return f, errors.Join(err, agentErr)
}

// Group returns the seventeen tools for administrators.
func (f *Tools) Group() toolgroups.Group { return f.group }

// CreateAgent returns the core tool create_agent.
func (f *Tools) CreateAgent() toolgroups.Tool { return f.createAgentTool }

func (f *Tools) handlers() map[string]toolgroups.Handler {
	return map[string]toolgroups.Handler{
		"list_providers":    newHandler(toolgroups.CodeExecution, f.listProviders),
		"create_provider":   newHandler(toolgroups.CodeExecution, f.createProvider),
		"update_provider":   newHandler(codeUpdateFailed, f.updateProvider),
		"delete_provider":   newHandler(codeDeletionFailed, f.deleteProvider),
		"list_models":       newHandler(toolgroups.CodeExecution, f.listModels),
		"fetch_models":      newHandler(codeFetchFailed, f.fetchModels),
		"set_default_model": newHandler(codeUpdateFailed, f.setDefaultModel),
		"add_model":         newHandler(codeAddFailed, f.addModel),
		"delete_model":      newHandler(codeDeletionFailed, f.deleteModel),
		"list_agents":       newHandler(toolgroups.CodeExecution, f.listAgents),
		"update_agent":      newHandler(codeUpdateFailed, f.updateAgent),
		"delete_agent":      newHandler(codeDeletionFailed, f.deleteAgent),
		"get_config":        newHandler(toolgroups.CodeExecution, f.getConfig),
		"set_config":        newHandler(codeUpdateFailed, f.setConfig),
		"manage_env_var":    newHandler(toolgroups.CodeExecution, f.manageVariable),
		"list_tool_states":  newHandler(toolgroups.CodeExecution, f.listToolStates),
		"set_tool_enabled":  newHandler(codeUpdateFailed, f.setToolEnabled),
	}
}

// describe names the agent and the provider of a call, whose arguments have ids alone, and says what a skill that
// is switched on adds to the prompt.
func (f *Tools) describe(ctx context.Context, call toolgroups.Call) (string, error) {
	var in struct {
		Agent     string `json:"agent_id"`
		Provider  string `json:"provider_id"`
		Preferred string `json:"preferred_provider_id"`
		Model     string `json:"preferred_model_id"`
		Action    string `json:"action"` // of a variable, which is no setting
		settingArgs
		switchArgs
	}
	if err := json.Unmarshal(call.Arguments, &in); err != nil {
		return "", fmt.Errorf("describe a call of %s: %w", call.Name, err)
	}
	if value := strings.TrimSpace(in.Value); in.Action == "" && !strings.EqualFold(value, defaultValue) {
		switch in.Key {
		case settings.SettingDefaultAgent:
			in.Agent = value
		case settings.SettingDefaultModel:
			ref, err := settings.ParseRef(value)
			if err != nil {
				return "", nil // the call fails
			}
			in.Provider = ref.Provider
		}
	}
	var lines []string
	if in.Agent != "" {
		a, err := f.cfg.Settings.Agents.Get(ctx, in.Agent)
		if err != nil {
			return "", toolError(ctx, toolgroups.CodeExecution, err)
		}
		if in.Model != "" { // of the provider that the agent has, if the call names none
			in.Preferred = cmp.Or(in.Preferred, a.PreferredModel.Provider)
		}
		lines = append(lines, fmt.Sprintf("The agent: %s (%s, %s)", wording.Quote(a.Name, maxPromptExcerpt), a.ID, cmp.Or(a.Owner, "of everyone")))
	}
	if id := cmp.Or(in.Provider, in.Preferred); id != "" {
		p, err := f.cfg.Settings.Providers.Get(ctx, id)
		if err != nil {
			return "", toolError(ctx, toolgroups.CodeExecution, err)
		}
		lines = append(lines, fmt.Sprintf("The provider: %s (%s)", wording.Quote(p.Name, maxPromptExcerpt), p.BaseURL))
	}
	if in.Type == "skill" && in.Enabled && f.cfg.Skills != nil {
		lines = append(lines, "Every prompt then says of it: "+wording.Quote(f.cfg.Skills.Description(in.Name), maxSkill))
	}
	return strings.Join(lines, "\n"), nil
}

// maxSkill bounds the description of a skill, in characters: all of it is shown.
const maxSkill = 1024

// newHandler makes a handler from a function. failed is the code of an error of the store, and of a
// refusal because the thing exists or there are too many.
func newHandler[In any](failed string, run func(context.Context, toolgroups.Call, In) (string, error)) toolgroups.Handler {
	return toolgroups.TypedHandler(func(ctx context.Context, call toolgroups.Call, in In) (toolgroups.Result, error) {
		text, err := run(ctx, call, in)
		return toolgroups.Result{Text: text}, toolError(ctx, failed, err)
	})
}

// noArgs are the arguments of tools without parameters.
type noArgs struct{}

// toolError converts an error from the settings into one for the model. failed is as in newHandler.
func toolError(ctx context.Context, failed string, err error) error {
	var refusal *settings.Error
	var told *toolgroups.Error
	if !errors.As(err, &refusal) {
		if err == nil || ctx.Err() != nil || errors.As(err, &told) {
			return err
		}
		// An error from the store may contain file names, so the model does not get it.
		return toolgroups.Errorf(failed, "The bot's store could not do this now. Tell the user to try again later, or to look at the log.")
	}
	switch refusal.Reason {
	case settings.NotFound:
		return toolgroups.Errorf(codeNotFound, "%s", refusal.Message)
	case settings.Protected:
		return toolgroups.Errorf(toolgroups.CodeDenied, "%s", refusal.Message)
	case settings.Exists, settings.Full:
		return toolgroups.Errorf(failed, "%s", refusal.Message)
	}
	return toolgroups.Errorf(toolgroups.CodeInvalid, "%s", refusal.Message)
}

// yesNo formats a bool in lists.
func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
