package main

import (
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"oneclaw/agent"
	"oneclaw/internal/app"
	"oneclaw/internal/cli"
	"oneclaw/internal/config"
)

func historyCommand(load cli.Loader) *cobra.Command {
	asJSON := false
	command := &cobra.Command{
		Use:   "history CHAT",
		Short: "Print the conversation of a chat, such as telegram:123",
		Args:  cli.OneArgument,
		RunE: load.WithConfig(func(cmd *cobra.Command, cfg config.Config, args []string) error {
			return printHistory(cmd, cfg, args[0], asJSON)
		}),
	}
	command.Flags().BoolVar(&asJSON, "json", false, "print one JSON object for each message")
	return command
}

func printHistory(cmd *cobra.Command, cfg config.Config, name string, asJSON bool) error {
	return app.ReadChat(cmd.Context(), cfg, name, func(log iter.Seq2[agent.Message, error]) error {
		count, lines := 0, json.NewEncoder(cmd.OutOrStdout())
		for m, err := range log {
			if err != nil {
				return err
			}
			count++
			if asJSON {
				err = lines.Encode(m)
			} else {
				_, err = io.WriteString(cmd.OutOrStdout(), historyLine(m))
			}
			if err != nil {
				return err
			}
		}
		if count == 0 {
			return fmt.Errorf("chat %s has no messages since it began or was cleared", name)
		}
		return nil
	})
}

// historyLine formats a message: time, author, text.
func historyLine(m agent.Message) string {
	var line strings.Builder
	fmt.Fprintf(&line, "%s  %-9s ", m.Time.Local().Format("2006-01-02 15:04:05"), m.Role)
	switch {
	case m.Sender != "":
		line.WriteString(m.Sender + ": ")
	case m.Tool != "":
		fmt.Fprintf(&line, "%s %s %s: ", m.Tool, m.Status, m.Code)
	}
	line.WriteString(strings.ReplaceAll(m.Text, "\n", "\n"+strings.Repeat(" ", 31)))
	for _, f := range m.Files {
		line.WriteString(" [file " + f.Path + "]")
	}
	for _, c := range m.Calls {
		fmt.Fprintf(&line, " → %s(%s)", c.Name, c.Arguments)
	}
	line.WriteString("\n")
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1 // the texts of strangers and web pages must not control the terminal
		}
		return r
	}, line.String())
}
