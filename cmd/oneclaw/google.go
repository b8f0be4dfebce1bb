package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"oneclaw/bridge/chats"
	"oneclaw/internal/app"
	"oneclaw/internal/cli"
	"oneclaw/internal/config"
	"oneclaw/internal/database"
)

func googleCommand(load cli.Loader) *cobra.Command {
	command := cli.ParentCommand("google", "Google accounts")
	command.AddCommand(&cobra.Command{
		Use:   "login USER [SERVICE…]",
		Short: "Connect the Google account of a user, such as telegram:123, on this machine (with the database in a file, stop the bot first)",
		Args:  cobra.MinimumNArgs(1),
		RunE:  load.WithConfig(loginGoogle),
	})
	return command
}

func loginGoogle(cmd *cobra.Command, cfg config.Config, args []string) error {
	user, services := args[0], args[1:]
	if _, err := chats.ParseChat(user); err != nil {
		return fmt.Errorf("%q is not a user: want platform:id, such as telegram:123; /whoami shows it", user)
	}
	log := cli.NewLogger(io.Discard, cfg)
	return app.WithStore(cmd.Context(), cfg, log, func(store *database.Store) error {
		g, err := app.OpenGoogle(cfg, store, nil, nil, log)
		if err != nil {
			return err
		}
		email, err := g.Login(cmd.Context(), user, services, func(link string) {
			_, _ = fmt.Fprintf(cmd.OutOrStdout(), "Open this address in a browser on this machine:\n\n  %s\n\n", link)
		})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is connected for %s.\n", email, user)
		return err
	})
}
