// Program mcpgo serves the hall of ../hall.cjs on mcp-go: mcpgo [PORT].
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

type door struct {
	Side string `json:"side"`
	Wide bool   `json:"wide"`
}

type size struct {
	Seats int     `json:"seats"`
	Area  float64 `json:"area"`
	Doors []door  `json:"doors"`
}

var doors = []door{{"north", true}, {"east", false}}

var form = map[string]any{
	"type": "object",
	"properties": map[string]any{
		"name":  map[string]any{"type": "string", "title": "Name", "minLength": 2},
		"seats": map[string]any{"type": "integer", "minimum": 1, "maximum": 120, "default": 2},
		"row":   map[string]any{"type": "string", "enum": []string{"front", "back"}},
		"aisle": map[string]any{"type": "boolean"},
		"note":  map[string]any{"type": "string", "default": "none"},
		"mail":  map[string]any{"type": "string", "format": "email"},
		"meal": map[string]any{"type": "string", "oneOf": []map[string]string{
			{"const": "veg", "title": "Vegetarian"}, {"const": "fish", "title": "Fish"},
		}},
		"days": map[string]any{"type": "array", "minItems": 1, "items": map[string]any{"type": "string", "enum": []string{"monday", "friday"}}},
	},
	"required": []string{"name", "seats"},
}

// oneOf makes a property a choice; each alternative is JSON.
func oneOf(alternatives ...string) mcp.PropertyOption {
	return func(schema map[string]any) {
		var all []json.RawMessage
		for _, one := range alternatives {
			all = append(all, json.RawMessage(one))
		}
		schema["oneOf"] = all
	}
}

func hall() *server.MCPServer {
	s := server.NewMCPServer("hall", "1.0.0", server.WithTitle("The hall"), server.WithInstructions("Books the hall. Ask before you book."),
		server.WithPaginationLimit(2), server.WithElicitation(), server.WithInputSchemaValidation(), server.WithResourceCapabilities(false, false))
	s.AddTool(mcp.NewTool("book", mcp.WithDescription("Book the hall."),
		mcp.WithArray("when", mcp.Required(), mcp.Description("The day and the hour"), mcp.MinItems(2), mcp.MaxItems(2)),
		mcp.WithAny("who", mcp.Required(), oneOf(`{"type":"string"}`,
			`{"type":"object","properties":{"firm":{"type":"string"},"number":{"type":"integer"}},"required":["firm","number"]}`)),
		mcp.WithAny("pay", mcp.Required(), oneOf(
			`{"type":"object","properties":{"by":{"const":"card"},"holder":{"type":"string"}},"required":["by","holder"]}`,
			`{"type":"object","properties":{"by":{"const":"cash"}},"required":["by"]}`)),
		mcp.WithArray("extras", mcp.WithStringEnumItems([]string{"chairs", "piano"})),
	), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		text, err := json.Marshal(req.GetArguments())
		return mcp.NewToolResultText(string(text)), err
	})
	s.AddTool(mcp.NewTool("size", mcp.WithDescription("The size of the hall."), mcp.WithOutputSchema[size](), mcp.WithReadOnlyHintAnnotation(true)),
		func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultStructured(size{120, 87.5, doors}, "A large hall."), nil
		})
	s.AddTool(mcp.NewTool("doors", mcp.WithDescription("The doors of the hall."), mcp.WithOutputSchema[[]door]()),
		mcp.NewStructuredToolHandler(func(context.Context, mcp.CallToolRequest, struct{}) ([]door, error) { return doors, nil }))
	s.AddTool(mcp.NewTool("ask", mcp.WithDescription("Ask who comes.")), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		answer := server.ElicitationResponse(req.Params.InputResponses, "who")
		if answer == nil {
			return server.NewInputRequestBuilder("").Elicit("who", mcp.ElicitationParams{Message: "Who comes?", RequestedSchema: form}).ToolResult(), nil
		}
		content, err := json.Marshal(answer.Content)
		return mcp.NewToolResultText(fmt.Sprintf("%s %s", answer.Action, content)), err
	})
	s.AddTool(mcp.NewTool("plan", mcp.WithDescription("The plan of the hall.")), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{
			mcp.NewResourceLink("hall://plan", "Plan", "", "text/plain"), mcp.NewResourceLink("hall://photo", "Photo", "", "image/png"),
		}}, nil
	})
	s.AddTool(mcp.NewTool("fail", mcp.WithDescription("Fail.")), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, errors.New("The hall is closed on Mondays.")
	})
	s.AddResource(mcp.NewResource("hall://plan", "Plan", mcp.WithMIMEType("text/plain")), func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		return []mcp.ResourceContents{mcp.TextResourceContents{URI: "hall://plan", MIMEType: "text/plain", Text: "north: stage\nsouth: bar"}}, nil
	})
	s.AddResource(mcp.NewResource("hall://photo", "Photo", mcp.WithMIMEType("image/png")), func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		return []mcp.ResourceContents{mcp.BlobResourceContents{URI: "hall://photo", MIMEType: "image/png", Blob: "iVBORw0KGgo="}}, nil
	})
	s.AddResourceTemplate(mcp.NewResourceTemplate("hall://rooms/{name}", "Room"), func(_ context.Context, req mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		return []mcp.ResourceContents{mcp.TextResourceContents{URI: req.Params.URI, Text: "the room " + path.Base(req.Params.URI)}}, nil
	})
	return s
}

func serve() error {
	key := os.Getenv("HALL_KEY")
	if key == "" {
		return errors.New("HALL_KEY is not set: get one at the front desk")
	}
	if len(os.Args) < 2 {
		return server.ServeStdio(hall())
	}
	listener, err := net.Listen("tcp", "127.0.0.1:"+os.Args[1])
	if err != nil {
		return err
	}
	streamable := server.NewStreamableHTTPServer(hall())
	fmt.Fprintln(os.Stderr, "listening")
	return http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+key {
			http.Error(w, "Bring your key.", http.StatusUnauthorized)
			return
		}
		streamable.ServeHTTP(w, r)
	}))
}

func main() {
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
