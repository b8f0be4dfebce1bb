// Package config is the group of tools with which an administrator changes the bot by
// talking to it: providers, models, agents, settings, variables and switches. Beside
// the group it has create_agent, a core tool that everybody may use.
//
// What the tools change lies in [settings.Settings]. API keys can be neither read nor
// written here, and the values of variables not be read: the package is never given
// what reads them. No switch can turn off what is needed to turn it on again.
package config

import (
	"context"
	"embed"
	"errors"

	"oneclaw/internal/settings"
	"oneclaw/toolgroups"
)

//go:embed *.json
var manifests embed.FS

// Codes of errors beside those of the dispatch.
const (
	CodeNotFound       = "not_found"
	CodeKeyRequired    = "api_key_required"
	CodeFetchFailed    = "fetch_failed"
	CodeAddFailed      = "add_failed"
	CodeUpdateFailed   = "update_failed"
	CodeDeletionFailed = "deletion_failed"
	CodeCreationFailed = "creation_failed"
)

// Config is what the family needs.
type Config struct {
	// Settings is what the tools change. It is required.
	Settings *settings.Settings
	// Registry returns the registry that is current, for the names and states of tools.
	// It is required, and called only when a tool runs.
	Registry func() *toolgroups.Registry
	// Models asks a provider's API for its models. Its error is shown to the model and
	// must hold no secret. Nil means that this bot cannot ask.
	Models func(ctx context.Context, p settings.Provider) ([]settings.Model, error)
	// Switched is called after a switch was changed and before the tool answers, for
	// whoever rebuilds the registry. Nil means that this happens by itself.
	Switched func(ctx context.Context) error
}

// Family are the tools. It may be used concurrently.
type Family struct {
	cfg   Config
	group toolgroups.Group
	agent toolgroups.Tool
}

// New makes the tools. Nothing is read before one runs.
func New(cfg Config) (*Family, error) {
	if cfg.Settings == nil || cfg.Registry == nil {
		return nil, errors.New("config: settings and registry are required")
	}
	f := &Family{cfg: cfg}
	var err, agentErr error
	f.group, err = toolgroups.GroupOf(manifests, "config", f.handlers())
	f.agent, agentErr = toolgroups.ToolOf(manifests, "create_agent", toolgroups.Typed(f.createAgent))
	return f, errors.Join(err, agentErr)
}

// Group returns the seventeen tools for administrators.
func (f *Family) Group() toolgroups.Group { return f.group }

// CreateAgent returns the core tool create_agent.
func (f *Family) CreateAgent() toolgroups.Tool { return f.agent }

func (f *Family) handlers() map[string]toolgroups.Handler {
	return map[string]toolgroups.Handler{
		"list_providers":    toolgroups.Typed(f.listProviders),
		"create_provider":   toolgroups.Typed(f.createProvider),
		"update_provider":   toolgroups.Typed(f.updateProvider),
		"delete_provider":   toolgroups.Typed(f.deleteProvider),
		"list_models":       toolgroups.Typed(f.listModels),
		"fetch_models":      toolgroups.Typed(f.fetchModels),
		"set_default_model": toolgroups.Typed(f.setDefaultModel),
		"add_model":         toolgroups.Typed(f.addModel),
		"delete_model":      toolgroups.Typed(f.deleteModel),
		"list_agents":       toolgroups.Typed(f.listAgents),
		"update_agent":      toolgroups.Typed(f.updateAgent),
		"delete_agent":      toolgroups.Typed(f.deleteAgent),
		"get_config":        toolgroups.Typed(f.getConfig),
		"set_config":        toolgroups.Typed(f.setConfig),
		"manage_env_var":    toolgroups.Typed(f.manageVariable),
		"list_tool_states":  toolgroups.Typed(f.listToolStates),
		"set_tool_enabled":  toolgroups.Typed(f.setToolEnabled),
	}
}

// none are the arguments of a tool without parameters.
type none struct{}

// fault turns an error of the settings into what the model is told. failed is the code
// where the store could not do it.
func fault(ctx context.Context, failed string, err error) error {
	var refusal *settings.Error
	if !errors.As(err, &refusal) {
		if ctx.Err() != nil {
			return err
		}
		// What the store says may name its files; the log of the bot has it.
		return toolgroups.Errorf(failed, "The bot's store could not do this now. Tell the user to try again later, or to look at the log.")
	}
	switch refusal.Reason {
	case settings.NotFound:
		return toolgroups.Errorf(CodeNotFound, "%s", refusal.Message)
	case settings.Protected:
		return toolgroups.Errorf(toolgroups.CodeDenied, "%s", refusal.Message)
	case settings.Exists, settings.Full:
		return toolgroups.Errorf(failed, "%s", refusal.Message)
	}
	return toolgroups.Errorf(toolgroups.CodeInvalid, "%s", refusal.Message)
}

// refused is fault as the result of a tool.
func refused(ctx context.Context, failed string, err error) (toolgroups.Result, error) {
	return toolgroups.Result{}, fault(ctx, failed, err)
}

// yesNo is how lists show a truth.
func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
