package bill

import (
	"bytes"
	_ "embed"
	"fmt"
	"maps"
	"strings"

	"go.yaml.in/yaml/v3"

	"oneclaw/toolgroups"
)

//go:embed servers.yaml
var serversFile []byte

// Server is a realistic MCP server of the third conversation.
type Server struct {
	Name        string        `yaml:"name"`
	Title       string        `yaml:"title"`
	Description string        `yaml:"about"`
	Things      []serverThing `yaml:"things"`
}

// serverThing is a kind of object of a server; each gets five tools.
type serverThing struct {
	One    string   `yaml:"one"`
	Many   string   `yaml:"many"`
	Is     string   `yaml:"is"`
	Fields []string `yaml:"fields"` // "name: meaning", the required ones with a star
}

// ServerTool is a tool as a server lists it.
type ServerTool struct {
	Name, Description string
	Schema            map[string]any
	ReadOnly          bool
}

// ServerList returns the ten servers with fifty tools each.
func ServerList() ([]Server, error) {
	var all []Server
	decoder := yaml.NewDecoder(bytes.NewReader(serversFile))
	decoder.KnownFields(true)
	if err := decoder.Decode(&all); err != nil {
		return nil, fmt.Errorf("bill: servers: %w", err)
	}
	return all, nil
}

// Servers returns the groups of [ServerList].
func Servers() ([]toolgroups.Group, error) {
	list, err := ServerList()
	if err != nil {
		return nil, err
	}
	var groups []toolgroups.Group
	for _, s := range list {
		g := toolgroups.Group{Name: "mcp_" + s.Name, DisplayName: s.Title, Description: s.Description, Source: "mcp:" + s.Name}
		for _, t := range s.Tools() {
			schema, err := toolgroups.EncodeJSON(t.Schema)
			if err != nil {
				return nil, fmt.Errorf("bill: schema of %s: %w", t.Name, err)
			}
			g.Tools = append(g.Tools, toolgroups.Tool{
				Name: s.Name + "_" + t.Name, Description: t.Description, Parameters: schema, Effect: toolgroups.ReadOnly,
			})
		}
		groups = append(groups, g)
	}
	return groups, nil
}

// Tools returns the tools of a server.
func (s Server) Tools() []ServerTool {
	var tools []ServerTool
	for _, t := range s.Things {
		id := map[string]any{"type": "string", "description": "The id of the " + t.One}
		fields, required := t.properties()
		identified := maps.Clone(fields)
		identified["id"] = id
		tools = append(tools,
			ServerTool{
				"list_" + t.Many, "List " + t.Many + ": " + t.Is + ". Returns one page, newest first, with a cursor for the next.",
				object(map[string]any{
					"filter": map[string]any{"type": "string", "description": "Only those whose fields match, as in status:open owner:me"},
					"limit":  map[string]any{"type": "integer", "minimum": 1, "maximum": 100},
					"cursor": map[string]any{"type": "string"},
				}), true,
			},
			ServerTool{
				"get_" + t.One, "Get one " + t.One + " with all its fields and its recent changes.",
				object(map[string]any{"id": id}, "id"), true,
			},
			ServerTool{"create_" + t.One, "Create a " + t.One + ": " + t.Is + ". Returns it with its id.", object(fields, required...), false},
			ServerTool{
				"update_" + t.One, "Change fields of a " + t.One + ". Fields that are not given stay as they are.",
				object(identified, "id"), false,
			},
			ServerTool{"delete_" + t.One, "Delete a " + t.One + ". This can not be undone.", object(map[string]any{"id": id}, "id"), false},
		)
	}
	return tools
}

func (t serverThing) properties() (map[string]any, []string) {
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

func object(properties map[string]any, required ...string) map[string]any {
	o := map[string]any{"type": "object", "properties": properties}
	if len(required) > 0 {
		o["required"] = required
	}
	return o
}
