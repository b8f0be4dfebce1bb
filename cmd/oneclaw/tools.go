package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/tiktoken-go/tokenizer"

	"oneclaw/internal/app"
	"oneclaw/internal/cli"
	"oneclaw/internal/config"
	"oneclaw/toolgroups"
)

func toolsCommand(load cli.Loader) *cobra.Command {
	var asJSON bool
	command := &cobra.Command{
		Use:   "tools [GROUP]",
		Short: "List all tool groups, or the tools of one, with what their schemas cost",
		Long: "List all tool groups, or the tools of one, with what their schemas cost. Google's are marked where the bot does not " +
			"offer them, because neither a client nor a service account is set up (google.listed).",
		Args: cobra.MaximumNArgs(1),
		RunE: load.WithConfig(func(cmd *cobra.Command, cfg config.Config, args []string) error {
			group := strings.Join(args, "")
			return app.WithEmptyBot(cmd.Context(), cfg, func(b *app.Bot) error {
				if asJSON {
					return printToolsJSON(cmd.OutOrStdout(), b.Registry(), group)
				}
				return printTools(cmd.OutOrStdout(), b.Registry(), group, cfg.Google.IsListed())
			})
		}),
	}
	command.Flags().BoolVar(&asJSON, "json", false, "print the tools as they are sent to the model")
	return command
}

// googlePrefix begins the names of Google's tool groups.
const googlePrefix = "google_"

// coreTools returns the core tools, including load_tool_group.
func coreTools(registry *toolgroups.Registry) []toolgroups.Tool {
	return toolgroups.NewSet(func() *toolgroups.Registry { return registry }, nil).Round().Tools()
}

func groupTools(registry *toolgroups.Registry, name string) ([]toolgroups.Tool, error) {
	if name == "core" {
		return coreTools(registry), nil
	}
	group, ok := registry.Group(name)
	if !ok {
		return nil, fmt.Errorf("there is no group %q; there are core, %s", name, strings.Join(registry.GroupNames(), ", "))
	}
	return group.Tools, nil
}

func printToolsJSON(w io.Writer, registry *toolgroups.Registry, name string) error {
	var value any
	if name != "" {
		tools, err := groupTools(registry, name)
		if err != nil {
			return err
		}
		value = toolgroups.EncodeTools(tools)
	} else {
		type group struct {
			Name        string          `json:"name"`
			DisplayName string          `json:"display_name"`
			Description string          `json:"description"`
			Tools       json.RawMessage `json:"tools"`
		}
		groups := []group{}
		for _, g := range registry.Groups() {
			groups = append(groups, group{g.Name, g.DisplayName, g.Description, toolgroups.EncodeTools(g.Tools)})
		}
		value = map[string]any{"core": toolgroups.EncodeTools(coreTools(registry)), "groups": groups}
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

func printTools(w io.Writer, registry *toolgroups.Registry, name string, google bool) error {
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		return fmt.Errorf("tokenizer: %w", err)
	}
	tokens := func(tools []toolgroups.Tool) int {
		if len(tools) == 0 {
			return 0
		}
		n, _ := codec.Count(string(toolgroups.EncodeTools(tools))) // any string can be counted
		return n
	}
	if name != "" {
		return printGroup(w, registry, name, tokens)
	}
	var out strings.Builder
	core := coreTools(registry)
	all := core
	fmt.Fprintf(&out, "%-24s %5s %7s\n", "GROUP", "TOOLS", "TOKENS")
	fmt.Fprintf(&out, "%-24s %5d %7d  always offered\n", "core", len(core), tokens(core))
	for _, g := range registry.Groups() {
		all = append(all, g.Tools...)
		mark := ""
		if !google && strings.HasPrefix(g.Name, googlePrefix) {
			mark = "(not offered: no Google client) "
		}
		fmt.Fprintf(&out, "%-24s %5d %7d  %s%s\n", g.Name, len(g.Tools), tokens(g.Tools), mark, g.Description)
	}
	listing, _ := codec.Count(registry.Listing()) // any string can be counted
	fmt.Fprintf(&out, "%-24s %5d %7d  what a bot without groups would send each time\n", "all", len(all), tokens(all))
	fmt.Fprintf(&out, "\nA first request carries the core tools and the list of all groups: %d tokens (o200k_base).\n", tokens(core)+listing)
	_, err = io.WriteString(w, out.String())
	return err
}

func printGroup(w io.Writer, registry *toolgroups.Registry, name string, tokens func([]toolgroups.Tool) int) error {
	tools, err := groupTools(registry, name)
	if err != nil {
		return err
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%-28s %7s\n", "TOOL", "TOKENS")
	for _, tool := range tools {
		fmt.Fprintf(&out, "%-28s %7d  %s\n", tool.Name, tokens([]toolgroups.Tool{tool}), tool.Description)
	}
	_, err = io.WriteString(w, out.String())
	return err
}
