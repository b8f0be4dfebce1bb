#!/usr/bin/env bash
# go-sdk for MCP, v1.8.0 (github.com/modelcontextprotocol/go-sdk) meets jsonschema-go, v0.4.3 (github.com/google/jsonschema-go),
# from which mcp.AddTool takes the schemas of a tool's arguments and result.
#
# Seen: a number tagged `json:"id,string"`, the way of encoding/json for ids too long for floating point, makes a tool that
#       takes no value: its schema wants an integer, its decoder a string. {"id":7} passes the schema and is not decoded,
#       {"id":"7"} does not pass the schema. In a result, what the tool gives does not pass its own schema, and each call
#       ends with an error. AddTool says nothing.
# Valid: the option is part of encoding/json, and the decoder of the SDK heeds it.
# Best guess: the schema describes what encoding/json reads and writes, so its type is string.
#
# Output seen on 2026-11-30.
# Needs Go and the module proxy. Prints "as found" and exits 0 while it behaves so; exits 1 if that changes.
set -euo pipefail
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir" && rm -rf "$dir"' EXIT
cd "$dir"
cat >main.go <<'GO'
package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type message struct {
	ID int64 `json:"id,string"`
}

func main() {
	ctx := context.Background()
	server := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "take"}, func(_ context.Context, _ *mcp.CallToolRequest, in message) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint("took ", in.ID)}}}, nil, nil
	})
	mcp.AddTool(server, &mcp.Tool{Name: "give"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, message, error) {
		return nil, message{ID: 7}, nil
	})
	here, there := mcp.NewInMemoryTransports()
	if _, err := server.Connect(ctx, here, nil); err != nil {
		panic(err)
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, nil).Connect(ctx, there, nil)
	if err != nil {
		panic(err)
	}
	for _, call := range []struct{ tool, arguments string }{{"take", `{"id":7}`}, {"take", `{"id":"7"}`}, {"give", `{}`}} {
		fmt.Print(call.tool, " ", call.arguments, ": ")
		result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: call.tool, Arguments: json.RawMessage(call.arguments)})
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(result.Content[0].(*mcp.TextContent).Text)
	}
}
GO
{
	go mod init example.com/finding
	go get github.com/modelcontextprotocol/go-sdk@v1.8.0 github.com/google/jsonschema-go@v0.4.3
	go mod tidy
} >/dev/null 2>&1
seen=$(go run .)
printf '%s\n' "$seen"
want='take {"id":7}: json: invalid use of ,string struct tag, trying to unmarshal unquoted value into int
take {"id":"7"}: validating "arguments": validating root: validating /properties/id: type: 7 has type "string", want "integer"
give {}: calling "tools/call": validating tool output: validating root: validating /properties/id: type: 7 has type "string", want "integer"'
[ "$seen" = "$want" ] || { echo "no longer as found"; exit 1; }
echo "as found"
