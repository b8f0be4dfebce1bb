package main

import (
	"context"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"oneclaw/agent"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/internal/app"
	"oneclaw/internal/cli"
	"oneclaw/internal/config"
	"oneclaw/internal/database"
)

func historyCommand(load cli.Loader) *cobra.Command {
	return &cobra.Command{
		Use:   "history CHAT",
		Short: "Print the conversation of a chat, such as telegram:123 (with the database in a file, stop the bot first)",
		Args:  cli.OneArgument,
		RunE:  load.Run(printHistory),
	}
}

func printHistory(cmd *cobra.Command, cfg config.Config, args []string) error {
	return readChat(cmd.Context(), cfg, args[0], func(log iter.Seq2[agent.Message, error]) error {
		count := 0
		for m, err := range log {
			if err != nil {
				return err
			}
			count++
			if _, err := io.WriteString(cmd.OutOrStdout(), historyLine(m)); err != nil {
				return err
			}
		}
		if count == 0 {
			return fmt.Errorf("chat %s has no messages since it began or was cleared", args[0])
		}
		return nil
	})
}

func readChat(ctx context.Context, cfg config.Config, name string, read func(iter.Seq2[agent.Message, error]) error) error {
	chat, err := chats.ParseChat(name)
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(cfg.DataDir, database.Name)); err != nil && !cfg.Store.Shared() {
		return fmt.Errorf("there is no database in %s: set ONECLAW_DATA_DIR to the bot's data directory", cfg.DataDir)
	}
	return app.WithStore(cfg, cli.NewLogger(io.Discard, cfg), func(store *database.Store) error {
		session, err := conversation.Current(ctx, store, chat)
		if err != nil {
			return err
		}
		return read(conversation.Messages(ctx, store, session.Log()))
	})
}

// historyLine shows a message: when, who, what.
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
	return line.String()
}
