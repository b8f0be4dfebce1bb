package config_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"oneclaw/internal/settings"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/config"
)

// seventeen are the tools of the group in their order.
func seventeen() []string {
	return []string{
		"list_providers", "create_provider", "update_provider", "delete_provider", "list_models", "fetch_models", "set_default_model",
		"add_model", "delete_model", "list_agents", "update_agent", "delete_agent", "get_config", "set_config", "manage_env_var",
		"list_tool_states", "set_tool_enabled",
	}
}

func names(tools []toolgroups.Tool) []string {
	var out []string
	for _, t := range tools {
		out = append(out, t.Name)
	}
	return out
}

func TestNewRefuses(t *testing.T) {
	if _, err := config.New(config.Config{}); err == nil {
		t.Error("no error")
	}
}

// The group holds the seventeen tools, and create_agent stays core.
func TestTheGroupHoldsSeventeenTools(t *testing.T) {
	d := newDesk(t)
	if got := names(d.family.Group().Tools); !slices.Equal(got, seventeen()) {
		t.Errorf("tools %v", got)
	}
	reg := d.registry.Load()
	if group, grouped := reg.GroupOf("create_agent"); grouped {
		t.Errorf("create_agent is in %s", group)
	}
	if !slices.Contains(names(reg.Core()), "create_agent") {
		t.Error("create_agent is not in the core")
	}
}

// With the group loaded its 17 schemas stand behind those of the core.
func TestLoadingAddsSeventeenSchemas(t *testing.T) {
	d := newDesk(t)
	set := toolgroups.NewSet(d.registry.Load, nil)
	round := set.Round()
	core := len(round.Tools())
	tool, fault := round.Lookup(toolgroups.LoadToolGroup, admin())
	if fault != nil {
		t.Fatal(fault)
	}
	_, fault = toolgroups.Run(t.Context(), nil, tool, toolgroups.Call{Name: tool.Name, Arguments: []byte(`{"group_name":"config"}`), Scope: admin()})
	if fault != nil {
		t.Fatal(fault)
	}
	if got := names(set.Round().Tools()); len(got) != core+17 || !slices.Equal(got[core:], seventeen()) {
		t.Errorf("%d tools: %v", len(got), got)
	}
}

func TestOnlyAdministrators(t *testing.T) {
	d := newDesk(t)
	user := admin()
	user.Role = toolgroups.RoleUser
	for _, name := range seventeen() {
		if text, fault := d.call(user, name, args{}); fault == nil || fault.Code != toolgroups.CodeDenied {
			t.Errorf("%s: %q, %v", name, text, fault)
		}
	}
	if _, fault := d.call(user, "create_agent", args{"name": "n", "system_prompt": "p"}); fault != nil {
		t.Errorf("create_agent: %v", fault)
	}
}

// No parameter, error or result of any tool has to do with the value of a key.
func TestNoToolTouchesKeys(t *testing.T) {
	d := newDesk(t)
	for _, tool := range d.family.Group().Tools {
		if strings.Contains(string(tool.Parameters), `"api_key"`) {
			t.Errorf("%s takes a key", tool.Name)
		}
	}
	id := d.provider()
	if err := d.vault.SetKey(t.Context(), id, "sk-stored-secret"); err != nil {
		t.Fatal(err)
	}
	d.ok("manage_env_var", args{"action": "set", "key": "TOKEN", "value": "var-secret"})
	d.ok("list_providers", nil, "key present: yes")
	d.ok("manage_env_var", args{"action": "list"}, "TOKEN = ••••")
	for _, key := range []string{"key/" + id, "api_key", "settings/key/" + id, "variable/TOKEN"} {
		d.fault("not_found", "get_config", args{"key": key})
		d.fault("not_found", "set_config", args{"key": key, "value": "x"})
	}
	// Moving the provider to another server takes the key away instead of sending it.
	d.ok("update_provider", args{"provider_id": id, "api_base_url": "https://evil.test/v1"}, "dropped", "oneclaw provider key "+id)
	d.fault("api_key_required", "fetch_models", args{"provider_id": id}, "oneclaw provider key "+id)
	d.clean(d.log.String())
}

func TestProviderTools(t *testing.T) {
	d := newDesk(t)
	for _, bad := range []args{
		{"name": " ", "type": "OPENAI", "api_base_url": "http://h"},
		{"name": "n", "type": "OPENAI", "api_base_url": " "},
		{"name": "n", "type": "openai", "api_base_url": "http://h"},
		{"name": "n", "type": "OPENAI"},
		{"name": "n", "type": "OPENAI", "api_base_url": "file:///x"},
	} {
		d.fault("validation_error", "create_provider", bad)
	}
	id := d.provider()
	d.ok("list_providers", nil, "2 providers", id, "type: OPENAI", "http://127.0.0.1:11434/v1", "active: no", "key present: no", "pre-configured: yes")
	d.ok("update_provider", args{"provider_id": id}, "Nothing")
	d.ok("update_provider", args{"provider_id": id, "name": "Home", "is_active": true}, "name: Local -> Home", "active: no -> yes", "no API key")
	d.fault("validation_error", "update_provider", args{"provider_id": id, "name": ""})
	d.fault("validation_error", "update_provider", args{"provider_id": id, "api_base_url": " "})
	d.fault("validation_error", "update_provider", args{})
	d.fault("not_found", "update_provider", args{"provider_id": "nope"})
	d.fault("permission_denied", "update_provider", args{"provider_id": "preset", "api_base_url": "https://evil.test"})
	d.fault("validation_error", "delete_provider", args{})
	d.fault("not_found", "delete_provider", args{"provider_id": "nope"})
	d.fault("permission_denied", "delete_provider", args{"provider_id": "preset"}, "update_provider")
	d.kv.writes = true
	d.fault("deletion_failed", "delete_provider", args{"provider_id": id})
	d.fault("execution_error", "create_provider", args{"name": "n", "type": "GEMINI", "api_base_url": "http://h"})
	d.kv.writes = false
	d.ok("delete_provider", args{"provider_id": id}, "Home", "deleted")
	d.fault("not_found", "list_models", args{"provider_id": id})
}

func TestModelTools(t *testing.T) {
	d := newDesk(t)
	id := d.provider()
	d.fault("validation_error", "list_models", args{})
	d.ok("list_models", args{"provider_id": id}, "fetch_models", "add_model")
	d.ok("add_model", args{"provider_id": id, "model_id": "llama", "display_name": "Llama 4"}, "llama")
	d.fault("add_failed", "add_model", args{"provider_id": id, "model_id": "llama"}, "already")
	d.fault("not_found", "add_model", args{"provider_id": "nope", "model_id": "m"})
	d.fault("validation_error", "add_model", args{"provider_id": id, "model_id": " "})
	d.fault("validation_error", "add_model", args{"provider_id": id})
	d.fault("validation_error", "set_default_model", args{"provider_id": id})
	d.fault("not_found", "set_default_model", args{"provider_id": "nope", "model_id": "llama"})
	d.fault("not_found", "set_default_model", args{"provider_id": id, "model_id": "nope"})
	d.ok("set_default_model", args{"provider_id": id, "model_id": "llama"}, "default", "not be used yet")
	d.ok("get_config", args{"key": "default_model"}, "default_model = "+id+"/llama")
	d.fault("validation_error", "fetch_models", args{})
	d.fault("not_found", "fetch_models", args{"provider_id": "nope"})
	d.fault("api_key_required", "fetch_models", args{"provider_id": id})
	d.fails = errors.New("HTTP 503")
	d.fault("fetch_failed", "fetch_models", args{"provider_id": "preset"}, "HTTP 503")
	d.fails, d.fetched = nil, []settings.Model{{ID: "gpt-a"}, {ID: "gpt-b", ContextTokens: 1000}}
	d.ok("fetch_models", args{"provider_id": "preset"}, "2 models", "gpt-a", "gpt-b")
	d.ok("list_models", args{"provider_id": "preset"}, "gpt-b: DYNAMIC, context of 1000 tokens", "gpt-5-mini: PRESET")
	d.ok("list_models", args{"provider_id": id}, "llama (Llama 4): MANUAL, default")
	d.fault("permission_denied", "delete_model", args{"provider_id": "preset", "model_id": "gpt-a"}, "DYNAMIC")
	d.fault("permission_denied", "delete_model", args{"provider_id": "preset", "model_id": "gpt-5-mini"}, "PRESET")
	d.fault("not_found", "delete_model", args{"provider_id": id, "model_id": "nope"})
	d.fault("not_found", "delete_model", args{"provider_id": "nope", "model_id": "llama"})
	d.fault("validation_error", "delete_model", args{"provider_id": id})
	d.kv.writes = true
	d.fault("deletion_failed", "delete_model", args{"provider_id": id, "model_id": "llama"})
	d.fault("add_failed", "add_model", args{"provider_id": id, "model_id": "other"})
	d.fault("fetch_failed", "fetch_models", args{"provider_id": "preset"})
	d.kv.writes = false
	d.ok("delete_model", args{"provider_id": id, "model_id": "llama"}, "deleted")
}

func TestAgentTools(t *testing.T) {
	d := newDesk(t)
	for _, bad := range []args{
		{"name": "", "system_prompt": "p"},
		{"name": repeat(101), "system_prompt": "p"},
		{"name": "n", "system_prompt": " "},
		{"name": "n", "system_prompt": repeat(50_001)},
		{"name": "n"},
	} {
		d.fault("validation_error", "create_agent", bad)
	}
	id := d.agent()
	d.ok("list_agents", nil, "2 agents", "assistant (built in)", id, "prompt: Answer in rhymes.", "…")
	d.ok("update_agent", args{"agent_id": id, "name": "Poet"}, "Nothing")
	d.ok("update_agent", args{"agent_id": id, "name": "Bard", "description": "sings", "preferred_provider_id": "preset", "preferred_model_id": "gpt-5-mini"},
		"name, description, preferred_provider_id, preferred_model_id")
	d.ok("list_agents", nil, "Bard", "description: sings", "preferred provider: preset, model: gpt-5-mini")
	d.ok("update_agent", args{"agent_id": id, "preferred_provider_id": "", "preferred_model_id": ""}, "preferred_provider_id, preferred_model_id")
	d.fault("not_found", "update_agent", args{"agent_id": id, "preferred_provider_id": "nope"})
	d.fault("not_found", "update_agent", args{"agent_id": id, "preferred_provider_id": "preset", "preferred_model_id": "nope"})
	d.fault("validation_error", "update_agent", args{"name": "x"})
	d.fault("validation_error", "update_agent", args{"agent_id": id, "name": " "})
	d.fault("validation_error", "update_agent", args{"agent_id": id, "name": repeat(101)})
	d.fault("validation_error", "update_agent", args{"agent_id": id, "system_prompt": repeat(50_001)})
	d.fault("not_found", "update_agent", args{"agent_id": "nope", "name": "x"})
	d.fault("permission_denied", "update_agent", args{"agent_id": "assistant", "name": "x"})
	d.fault("permission_denied", "delete_agent", args{"agent_id": "assistant"})
	d.fault("not_found", "delete_agent", args{"agent_id": "nope"})
	d.fault("validation_error", "delete_agent", args{})
	d.kv.writes = true
	d.fault("execution_error", "create_agent", args{"name": "n", "system_prompt": "p"})
	d.fault("update_failed", "update_agent", args{"agent_id": id, "name": "x"})
	d.fault("deletion_failed", "delete_agent", args{"agent_id": id})
	d.kv.writes = false
	d.ok("delete_agent", args{"agent_id": id}, "Bard", "deleted")
}

// An agent of one owner can be chosen by that owner's chats alone, and making one
// changes no chat.
func TestCreatedAgentIsItsOwners(t *testing.T) {
	d := newDesk(t)
	id := d.agent()
	ctx := t.Context()
	if a, err := d.settings.Chats.Resolve(ctx, "telegram:1", "telegram:1"); err != nil || a.Agent.ID != "assistant" {
		t.Errorf("%+v, %v", a, err)
	}
	if err := d.settings.Chats.SetAgent(ctx, "telegram:2", "telegram:2", id); !settings.Is(err, settings.NotFound) {
		t.Errorf("another's: %v", err)
	}
	if err := d.settings.Chats.SetAgent(ctx, "telegram:1", "telegram:1", id); err != nil {
		t.Error(err)
	}
}

func TestSettingTools(t *testing.T) {
	d := newDesk(t)
	d.ok("get_config", args{"key": "routing"}, "routing = groups")
	d.ok("get_config", args{"key": "default_agent"}, "not set", "log_level")
	d.ok("set_config", args{"key": "routing", "value": "all"}, "routing is now all")
	d.ok("get_config", args{"key": "routing"}, "routing = all", "changed in a chat", "'default'")
	d.ok("set_config", args{"key": "routing", "value": "Default"}, "routing has its default again: groups")
	if text := d.ok("get_config", args{"key": "routing"}); text != "routing = groups" {
		t.Errorf("after the default: %s", text)
	}
	d.ok("set_config", args{"key": "default_agent", "value": "default"}, "default_agent has its default again.")
	d.fault("not_found", "set_config", args{"key": "theme_mode", "value": "default"}, "routing")
	d.fault("not_found", "get_config", args{"key": "theme_mode"}, "default_agent, default_model, log_level, routing, time_zone")
	d.fault("not_found", "set_config", args{"key": "theme_mode", "value": "dark"}, "routing")
	d.fault("validation_error", "get_config", args{})
	d.fault("validation_error", "set_config", args{"key": "routing"})
	d.fault("validation_error", "set_config", args{"key": "routing", "value": " "})
	d.fault("validation_error", "set_config", args{"key": "", "value": "x"})
	d.fault("validation_error", "set_config", args{"key": "routing", "value": "none"}, "groups, all")
	d.kv.reads = true
	d.fault("execution_error", "get_config", args{"key": "routing"})
	d.kv.reads = false
}

func TestVariableTool(t *testing.T) {
	d := newDesk(t)
	d.ok("manage_env_var", args{"action": "list"}, "no variables")
	d.ok("manage_env_var", args{"action": "set", "key": "B", "value": "b-secret"})
	d.ok("manage_env_var", args{"action": "set", "key": "A", "value": ""})
	if text := d.ok("manage_env_var", args{"action": "list"}); text != "2 variables:\n- A = ••••\n- B = ••••" {
		t.Errorf("list %q", text)
	}
	d.ok("manage_env_var", args{"action": "delete", "key": "NEVER"}, "deleted")
	for _, bad := range []args{
		{},
		{"action": "read", "key": "A"},
		{"action": "set", "key": "A"},
		{"action": "set", "value": "v"},
		{"action": "delete"},
		{"action": "set", "key": "not a name", "value": "v-secret"},
	} {
		d.fault("validation_error", "manage_env_var", bad)
	}
	got, err := d.vault.Variables(t.Context(), []string{"A", "B"})
	if err != nil || got["B"] != "b-secret" {
		t.Errorf("%v, %v", got, err)
	}
}

func TestFetchIsStopped(t *testing.T) {
	d := newDesk(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	tool, _ := d.registry.Load().Tool("fetch_models")
	_, fault := toolgroups.Run(ctx, nil, tool, toolgroups.Call{Name: tool.Name, Arguments: []byte(`{"provider_id":"preset"}`), Scope: admin()})
	if fault == nil || fault.Code != toolgroups.CodeCancelled {
		t.Errorf("%v", fault)
	}
}

// A card names the agent and the provider that a call concerns, and not by their ids alone.
func TestACardSaysWhatACallNames(t *testing.T) {
	d := newDesk(t)
	agent, err := d.settings.Agents.Add(t.Context(), settings.Agent{Name: "Cook", Prompt: "You cook.", Owner: "telegram:7"})
	if err != nil {
		t.Fatal(err)
	}
	provider, err := d.settings.Providers.Add(t.Context(), "Spare", settings.TypeOpenAI, "https://spare.test/v1")
	if err != nil {
		t.Fatal(err)
	}
	fond, err := d.settings.Agents.Add(t.Context(), settings.Agent{Name: "Baker", Prompt: "You bake.", PreferredModel: settings.Ref{Provider: provider.ID, Model: "old"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ tool, arguments, want string }{
		{"delete_agent", `{"agent_id":"` + agent.ID + `"}`, "The agent: “Cook” (" + agent.ID + ", telegram:7)"},
		{"update_agent", `{"agent_id":"` + agent.ID + `","preferred_provider_id":"` + provider.ID + `"}`, "The agent: “Cook” (" + agent.ID + ", telegram:7)\nThe provider: “Spare” (https://spare.test/v1)"},
		{"update_agent", `{"agent_id":"` + fond.ID + `","preferred_model_id":"m"}`, "The agent: “Baker” (" + fond.ID + ", of everyone)\nThe provider: “Spare” (https://spare.test/v1)"},
		{"set_default_model", `{"provider_id":"` + provider.ID + `","model_id":"m"}`, "The provider: “Spare” (https://spare.test/v1)"},
		{"set_config", `{"key":"log_level","value":"info"}`, ""},
		{"set_config", `{"key":"default_model","value":"` + provider.ID + `/m"}`, "The provider: “Spare” (https://spare.test/v1)"},
		{"set_config", `{"key":"default_agent","value":"` + agent.ID + `"}`, "The agent: “Cook” (" + agent.ID + ", telegram:7)"},
		{"set_config", `{"key":"default_model","value":"default"}`, ""},
		{"set_config", `{"key":"default_model","value":"none"}`, ""},
		{"manage_env_var", `{"action":"set","key":"default_model","value":"x/y"}`, ""},
		{"set_tool_enabled", `{"name":"weekly","enabled":true,"type":"skill"}`, "Every prompt then says of it: “sum up ’now’”"},
		{"set_tool_enabled", `{"name":"weekly","enabled":false,"type":"skill"}`, ""},
	} {
		tool, _ := d.registry.Load().Tool(c.tool)
		if got, err := tool.Describe(t.Context(), toolgroups.Call{Arguments: json.RawMessage(c.arguments)}); err != nil || got != c.want {
			t.Errorf("%s: %q, %v", c.tool, got, err)
		}
	}
	tool, _ := d.registry.Load().Tool("delete_agent")
	_, err = tool.Describe(t.Context(), toolgroups.Call{Arguments: json.RawMessage(`{"agent_id":"none"}`)})
	if fault, ok := errors.AsType[*toolgroups.Error](err); !ok || fault.Code != "not_found" {
		t.Errorf("an unknown agent: %v", err)
	}
}
