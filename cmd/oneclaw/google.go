package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"oneclaw/bridge/chats"
	"oneclaw/cmd/oneclaw/config"
	"oneclaw/internal/database"
	"oneclaw/internal/readable"
	"oneclaw/storage"
	"oneclaw/toolgroups/google"
)

func openGoogle(cfg config.Config, store storage.KV, reader *readable.Reader, log *slog.Logger) (*google.Google, error) {
	key, err := cfg.Place().SecretKey(context.Background(), store)
	if err != nil {
		return nil, err
	}
	var account []byte
	if cfg.Google.ServiceAccount != "" {
		if account, err = os.ReadFile(cfg.Google.ServiceAccount); err != nil {
			return nil, fmt.Errorf("setting google.service_account (GOOGLE_SERVICE_ACCOUNT): %w", err)
		}
	}
	g, err := google.New(google.Config{
		ClientID: cfg.Google.ClientID, ClientSecret: string(cfg.Google.ClientSecret), APIURL: cfg.Google.APIURL,
		PublicURL: cfg.PublicURL, LocalURL: "http://" + cfg.Listen, KV: store, SecretKey: key,
		ServiceAccount: account, Subjects: cfg.Google.Subjects, Location: cfg.Zone(), Now: cfg.Outside.Now, Reader: reader, Logger: log,
	})
	if err != nil {
		return nil, fmt.Errorf("google: %w", err)
	}
	return g, nil
}

func googleCommand(load loader) *cobra.Command {
	command := parent("google", "Google accounts")
	command.AddCommand(&cobra.Command{
		Use:   "login USER [SERVICE…]",
		Short: "Connect the Google account of a user, such as telegram:123, on this machine (with the database in a file, stop the bot first)",
		Args:  cobra.MinimumNArgs(1),
		RunE:  load.run(loginGoogle),
	})
	return command
}

func loginGoogle(cmd *cobra.Command, cfg config.Config, args []string) error {
	user, services := args[0], args[1:]
	if _, err := chats.ParseChat(user); err != nil {
		return fmt.Errorf("%q is no user: want platform:id, such as telegram:123; /whoami tells it", user)
	}
	log := newLogger(io.Discard, cfg)
	return withStore(cfg, log, func(store *database.Store) error {
		g, err := openGoogle(cfg, store, nil, log)
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
