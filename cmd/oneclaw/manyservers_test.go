package main

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"maps"
	"strings"

	"go.yaml.in/yaml/v3"

	"oneclaw/toolgroups"
)

//go:embed testdata/servers.yaml
var serversYAML []byte

// mcpServer is a realistic MCP server of the tests with many tools.
type mcpServer struct {
	Name        string         `yaml:"name"`
	Title       string         `yaml:"title"`
	Description string         `yaml:"about"`
	Objects     []serverObject `yaml:"things"`
}

// serverObject is a kind of object on a server. Each kind gets five tools.
type serverObject struct {
	Singular    string   `yaml:"one"`
	Plural      string   `yaml:"many"`
	Description string   `yaml:"is"`
	Fields      []string `yaml:"fields"` // "name: meaning", the required ones with a star
}

// serverTool is a tool as a server lists it.
type serverTool struct {
	Name, Description string
	Schema            map[string]any
	ReadOnly          bool
}

// serverList returns the ten servers with fifty tools each.
func serverList() ([]mcpServer, error) {
	var all []mcpServer
	decoder := yaml.NewDecoder(bytes.NewReader(serversYAML))
	decoder.KnownFields(true)
	if err := decoder.Decode(&all); err != nil {
		return nil, fmt.Errorf("servers: %w", err)
	}
	return all, nil
}

// serverGroups returns the tool groups of the servers in [serverList].
func serverGroups() ([]toolgroups.Group, error) {
	list, err := serverList()
	if err != nil {
		return nil, err
	}
	var groups []toolgroups.Group
	for _, s := range list {
		g := toolgroups.Group{Name: "mcp_" + s.Name, DisplayName: s.Title, Description: s.Description, Source: "mcp:" + s.Name}
		for _, t := range s.tools() {
			schema, err := toolgroups.EncodeJSON(t.Schema)
			if err != nil {
				return nil, fmt.Errorf("schema of %s: %w", t.Name, err)
			}
			g.Tools = append(g.Tools, toolgroups.Tool{
				Name: s.Name + "_" + t.Name, Description: t.Description, Parameters: schema, Effect: toolgroups.ReadOnly, Run: func(context.Context, toolgroups.Call) (toolgroups.Result, error) {
					return toolgroups.TextResult("done")
				},
			})
		}
		groups = append(groups, g)
	}
	return groups, nil
}

// tools returns the tools of a server.
func (s mcpServer) tools() []serverTool {
	var tools []serverTool
	for _, t := range s.Objects {
		id := map[string]any{"type": "string", "description": "The id of the " + t.Singular}
		fields, required := t.properties()
		identified := maps.Clone(fields)
		identified["id"] = id
		tools = append(tools,
			serverTool{
				"list_" + t.Plural, "List " + t.Plural + ": " + t.Description + ". Returns one page, newest first, with a cursor for the next.",
				objectSchema(map[string]any{
					"filter": map[string]any{"type": "string", "description": "Only those whose fields match, as in status:open owner:me"},
					"limit":  map[string]any{"type": "integer", "minimum": 1, "maximum": 100},
					"cursor": map[string]any{"type": "string"},
				}), true,
			},
			serverTool{
				"get_" + t.Singular, "Get one " + t.Singular + " with all its fields and its recent changes.",
				objectSchema(map[string]any{"id": id}, "id"), true,
			},
			serverTool{"create_" + t.Singular, "Create a " + t.Singular + ": " + t.Description + ". Returns it with its id.", objectSchema(fields, required...), false},
			serverTool{
				"update_" + t.Singular, "Change fields of a " + t.Singular + ". Fields that are not given stay as they are.",
				objectSchema(identified, "id"), false,
			},
			serverTool{"delete_" + t.Singular, "Delete a " + t.Singular + ". This can not be undone.", objectSchema(map[string]any{"id": id}, "id"), false},
		)
	}
	return tools
}

func (t serverObject) properties() (map[string]any, []string) {
	fields := map[string]any{}
	var required []string
	for _, f := range t.Fields {
		name, about, _ := strings.Cut(f, ": ")
		if bare, ok := strings.CutSuffix(name, "*"); ok {
			name = bare
			required = append(required, name)
		}
		fields[name] = map[string]any{"type": "string", "description": about}
	}
	return fields, required
}

func objectSchema(properties map[string]any, required ...string) map[string]any {
	o := map[string]any{"type": "object", "properties": properties}
	if len(required) > 0 {
		o["required"] = required
	}
	return o
}
