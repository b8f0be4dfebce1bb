// Package config is the group of tools with which an administrator configures the bot in a chat:
// providers, models, agents, settings, variables and switches. It also has the core tool
// create_agent, which every user may call.
//
// The tools change [settings.Settings]. They can neither read nor write API keys, and cannot
// read the values of variables: the package has no access to them. No switch can turn off what
// is needed to turn it on again.
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

// Codes of errors besides those of package toolgroups.
const (
	CodeNotFound       = "not_found"
	CodeKeyRequired    = "api_key_required"
	CodeFetchFailed    = "fetch_failed"
	CodeAddFailed      = "add_failed"
	CodeUpdateFailed   = "update_failed"
	CodeDeletionFailed = "deletion_failed"
	CodeCreationFailed = "creation_failed"
)

// Config configures a [Family].
type Config struct {
	// Settings are what the tools change. Required.
	Settings *settings.Settings
	// Registry returns the current registry, for the names and states of tools. Required; called
	// only when a tool runs.
	Registry func() *toolgroups.Registry
	// Models lists the models of a provider's API. Its error is shown to the model and must contain
	// no secret. Nil means that listing is not available.
	Models func(ctx context.Context, p settings.Provider) ([]settings.Model, error)
	// Switched is called after a switch has changed and before the tool answers, so that the
	// registry is rebuilt. Nil if that happens by itself.
	Switched func(ctx context.Context) error
}

// Family holds the tools. It may be used concurrently.
type Family struct {
	cfg   Config
	group toolgroups.Group
	agent toolgroups.Tool
}

// New makes the tools. It reads nothing.
func New(cfg Config) (*Family, error) {
	if cfg.Settings == nil || cfg.Registry == nil {
		return nil, errors.New("config: settings and registry are required")
	}
	f := &Family{cfg: cfg}
	var err, agentErr error
	f.group, err = toolgroups.GroupOf(manifests, "config", f.handlers())
	f.agent, agentErr = toolgroups.ToolOf(manifests, "create_agent", handler(CodeCreationFailed, f.createAgent))
	return f, errors.Join(err, agentErr)
}

// Group returns the seventeen tools for administrators.
func (f *Family) Group() toolgroups.Group { return f.group }

// CreateAgent returns the core tool create_agent.
func (f *Family) CreateAgent() toolgroups.Tool { return f.agent }

func (f *Family) handlers() map[string]toolgroups.Handler {
	return map[string]toolgroups.Handler{
		"list_providers":    handler(toolgroups.CodeExecution, f.listProviders),
		"create_provider":   handler(toolgroups.CodeExecution, f.createProvider),
		"update_provider":   handler(CodeUpdateFailed, f.updateProvider),
		"delete_provider":   handler(CodeDeletionFailed, f.deleteProvider),
		"list_models":       handler(toolgroups.CodeExecution, f.listModels),
		"fetch_models":      handler(CodeFetchFailed, f.fetchModels),
		"set_default_model": handler(CodeUpdateFailed, f.setDefaultModel),
		"add_model":         handler(CodeAddFailed, f.addModel),
		"delete_model":      handler(CodeDeletionFailed, f.deleteModel),
		"list_agents":       handler(toolgroups.CodeExecution, f.listAgents),
		"update_agent":      handler(CodeUpdateFailed, f.updateAgent),
		"delete_agent":      handler(CodeDeletionFailed, f.deleteAgent),
		"get_config":        handler(toolgroups.CodeExecution, f.getConfig),
		"set_config":        handler(CodeUpdateFailed, f.setConfig),
		"manage_env_var":    handler(toolgroups.CodeExecution, f.manageVariable),
		"list_tool_states":  handler(toolgroups.CodeExecution, f.listToolStates),
		"set_tool_enabled":  handler(CodeUpdateFailed, f.setToolEnabled),
	}
}

// handler makes a tool of a function. failed is the error code if the store fails.
func handler[In any](failed string, run func(context.Context, toolgroups.Call, In) (string, error)) toolgroups.Handler {
	return toolgroups.Typed(func(ctx context.Context, call toolgroups.Call, in In) (toolgroups.Result, error) {
		text, err := run(ctx, call, in)
		return toolgroups.Result{Text: text}, toolError(ctx, failed, err)
	})
}

// none is for tools without parameters.
type none struct{}

// toolError turns an error of the settings into one for the model.
func toolError(ctx context.Context, failed string, err error) error {
	var refusal *settings.Error
	var told *toolgroups.Error
	if !errors.As(err, &refusal) {
		if err == nil || ctx.Err() != nil || errors.As(err, &told) {
			return err
		}
		// An error of the store may name its files; it is only logged.
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

// yesNo formats a bool in lists.
func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
