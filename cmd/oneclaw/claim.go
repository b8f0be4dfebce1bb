package main

import (
	"context"
	"encoding/json"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"oneclaw/bridge/access"
	"oneclaw/internal/app"
	"oneclaw/internal/cli"
	"oneclaw/internal/config"
	"oneclaw/internal/database"
)

func claimCommand(load cli.Loader) *cobra.Command {
	return &cobra.Command{
		Use:   "claim",
		Short: "Print a new link and code that make you the owner of the bot",
		Long: "Print a new link and code that make you the owner of a bot without an owner. " +
			"The code can be used once, within an hour. A bot without users prints one itself when it starts.",
		Args: cobra.NoArgs,
		RunE: load.WithConfig(printClaim),
	}
}

func printClaim(cmd *cobra.Command, cfg config.Config, _ []string) error {
	if err := cfg.Platforms.Check(); err != nil {
		return err
	}
	var claim access.Claim
	running, err := app.SendOrder(cmd.Context(), cfg, "claim", nil, func(body io.Reader) error {
		return json.NewDecoder(io.LimitReader(body, 1000)).Decode(&claim)
	})
	if !running {
		claim, err = storeClaim(cmd.Context(), cfg)
	}
	if err != nil {
		return err
	}
	var text strings.Builder
	if !running && !cfg.Store.Shared() {
		text.WriteString("Start the bot with: " + runCommandLine(cfg.DataDir) + "\n")
	}
	text.WriteString(app.ClaimText(claim, app.ClaimLink(cmd.Context(), cfg, cli.NewLogger(io.Discard, cfg))))
	_, err = io.WriteString(cmd.OutOrStdout(), text.String())
	return err
}

// storeClaim creates a claim in the database of a bot that is not running.
func storeClaim(ctx context.Context, cfg config.Config) (claim access.Claim, err error) {
	err = app.WithStore(ctx, cfg, cli.NewLogger(io.Discard, cfg), func(store *database.Store) error {
		claim, err = access.NewClaim(ctx, store, cfg.Runtime.Now(), true)
		return app.ClaimRefusal(err)
	})
	return claim, err
}
