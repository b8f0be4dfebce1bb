package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"oneclaw/bridge/access"
	"oneclaw/cmd/oneclaw/config"
	"oneclaw/internal/database"
	"oneclaw/storage"
)

// linkPatience is how long the start waits for a platform to say what the bot is called.
const linkPatience = 15 * time.Second

// offer makes a claim where nobody is configured and nobody owns the bot, and logs it,
// this once: whoever reads the log owns the bot. It does not keep a bot from running.
func offer(ctx context.Context, cfg config.Config, kv storage.KV, log *slog.Logger) {
	if !access.Access(cfg.Access).Empty() {
		return
	}
	owned, err := access.Owned(ctx, kv)
	if owned {
		return
	}
	link := claimLink(ctx, cfg, log)
	var claim access.Claim
	if err == nil {
		claim, err = ownClaim(ctx, cfg, kv)
	}
	until := slog.String("until", claim.Until.Format(time.RFC3339))
	switch {
	case err == nil:
		attrs := []any{"send", "claim " + claim.Code, until}
		if link != nil {
			attrs = append([]any{"link", link(claim.Code)}, attrs...)
		}
		log.Info("nobody may talk to the bot yet: open the link, or send it the code in a direct chat, and it is yours (or set ONECLAW_ALLOW)", attrs...)
	case errors.Is(err, access.ErrOffered):
		log.Info("nobody may talk to the bot yet: it waits for the code that oneclaw claim has printed (or set ONECLAW_ALLOW)", until)
	case errors.Is(err, access.ErrOwned):
	case ctx.Err() == nil:
		log.Error("nobody may talk to the bot yet, and it cannot be claimed: set ONECLAW_ALLOW", "err", err)
	}
}

// ownClaim makes a claim, or finds that of the other replicas.
func ownClaim(ctx context.Context, cfg config.Config, kv storage.KV) (access.Claim, error) {
	if !cfg.Store.Shared() {
		return access.NewClaim(ctx, kv, cfg.Outside.Now(), false)
	}
	secret, err := cfg.Place().SecretKey(ctx, kv)
	if err != nil {
		return access.Claim{}, err
	}
	return access.SharedClaim(ctx, kv, cfg.Outside.Now(), secret)
}

// claimLink makes the links of a platform that claim the bot; nil where there are none.
func claimLink(ctx context.Context, cfg config.Config, log *slog.Logger) func(code string) string {
	ctx, cancel := context.WithTimeout(ctx, linkPatience)
	defer cancel()
	for _, platform := range cfg.All {
		if p, ok := platform.(config.Linking); ok && platform.Missing() == "" {
			return p.Link(ctx, log)
		}
	}
	return nil
}

func claimCommand(load loader) *cobra.Command {
	return &cobra.Command{
		Use:   "claim",
		Short: "Print a new link and code that make you the owner of the bot",
		Long: "Print a new link and code that make you the owner of the bot, where nobody owns it yet. " +
			"The code can be used once, within an hour. A bot that nobody may talk to prints one itself when it starts.",
		Args: cobra.NoArgs,
		RunE: load.run(newClaim),
	}
}

func newClaim(cmd *cobra.Command, cfg config.Config, _ []string) error {
	if err := cfg.Platforms.Check(); err != nil {
		return err
	}
	var claim access.Claim
	running, err := order(cmd.Context(), cfg, "claim", func(body io.Reader) error {
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
		text.WriteString("Start the bot with: oneclaw run\n")
	}
	text.WriteString("Until " + claim.Until.Format("15:04") + ", ")
	if link := claimLink(cmd.Context(), cfg, newLogger(io.Discard, cfg)); link != nil {
		fmt.Fprintf(&text, "open this link:\n\n  %s\n\nor ", link(claim.Code))
	}
	fmt.Fprintf(&text, "send the bot this line in a direct chat:\n\n  claim %s\n\nWhoever does so first owns the bot.\n", claim.Code)
	_, err = io.WriteString(cmd.OutOrStdout(), text.String())
	return err
}

// storeClaim makes a claim in the data directory of a bot that does not run.
func storeClaim(ctx context.Context, cfg config.Config) (claim access.Claim, err error) {
	err = withStore(cfg, newLogger(io.Discard, cfg), func(store *database.Store) error {
		claim, err = access.NewClaim(ctx, store, cfg.Outside.Now(), true)
		return claimRefusal(err)
	})
	return claim, err
}

func claimRefusal(err error) error {
	if errors.Is(err, access.ErrOwned) {
		return errors.New("the bot has an owner; /people in a chat with the bot shows who, and ONECLAW_ADMINS names administrators without it")
	}
	return err
}
