package app

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"oneclaw/bridge/access"
	"oneclaw/internal/config"
	"oneclaw/storage"
)

// linkTimeout bounds the wait for a platform to return the bot's name.
const linkTimeout = 15 * time.Second

// offerClaim creates a claim if no user is configured and the bot has no owner. It prints the claim to
// the terminal or, without a terminal, logs it, so that the reader can become the owner. It logs errors,
// because the bot can run without a claim.
func offerClaim(ctx context.Context, cfg config.Config, kv storage.KV, log *slog.Logger) {
	if !access.Access(cfg.Access).Empty() {
		return
	}
	owned, err := access.HasOwner(ctx, kv)
	if owned {
		return
	}
	link := ClaimLink(ctx, cfg, log)
	var claim access.Claim
	if err == nil {
		claim, err = makeClaim(ctx, cfg, kv)
	}
	until := slog.String("until", claim.Until.Format(time.RFC3339))
	switch {
	case err == nil && cfg.Runtime.Terminal != nil:
		if _, err := io.WriteString(cfg.Runtime.Terminal, "\nThe bot runs, and nobody may talk to it yet. "+ClaimText(claim, link)+"\n"); err != nil {
			log.Warn("cannot print the link that claims the bot; oneclaw claim prints another", "err", err)
		}
	case err == nil:
		attrs := []any{"send", "claim " + claim.Code, until}
		if link != nil {
			attrs = append([]any{"link", link(claim.Code)}, attrs...)
		}
		log.Info("nobody may talk to the bot yet: open the link, or send it the code in a direct chat, and it is yours (or set ONECLAW_ALLOW)", attrs...)
	case errors.Is(err, access.ErrClaimOpen):
		log.Info("nobody may talk to the bot yet: it waits for the code that oneclaw claim has printed (or set ONECLAW_ALLOW)", until)
	case errors.Is(err, access.ErrOwned):
	case ctx.Err() == nil:
		log.Error("nobody may talk to the bot yet, and it cannot be claimed: set ONECLAW_ALLOW", "err", err)
	}
}

// makeClaim creates a claim, or returns the one that another replica has created.
func makeClaim(ctx context.Context, cfg config.Config, kv storage.KV) (access.Claim, error) {
	if !cfg.Store.Shared() {
		return access.NewClaim(ctx, kv, cfg.Runtime.Now(), false)
	}
	secret, err := cfg.Place().SecretKey(ctx, kv)
	if err != nil {
		return access.Claim{}, err
	}
	return access.SharedClaim(ctx, kv, cfg.Runtime.Now(), secret)
}

// ClaimLink returns a function that returns a link to claim the bot with a code; nil if no platform
// has such links.
func ClaimLink(ctx context.Context, cfg config.Config, log *slog.Logger) func(code string) string {
	ctx, cancel := context.WithTimeout(ctx, linkTimeout)
	defer cancel()
	for _, platform := range cfg.All {
		if p, ok := platform.(config.ClaimLinker); ok && platform.Missing() == "" {
			return p.Link(ctx, log)
		}
	}
	return nil
}

// ClaimText returns instructions for claiming the bot, with the link on its own line.
func ClaimText(claim access.Claim, link func(code string) string) string {
	text := "Until " + claim.Until.Format("15:04") + ", "
	if link != nil {
		text += "open this link:\n\n  " + link(claim.Code) + "\n\nor "
	}
	return text + "send the bot this line in a direct chat:\n\n  claim " + claim.Code + "\n\nWhoever does so first owns the bot.\n"
}

// ClaimRefusal returns instructions instead of [access.ErrOwned], and other errors unchanged.
func ClaimRefusal(err error) error {
	if errors.Is(err, access.ErrOwned) {
		return errors.New("the bot has an owner; /people in a chat with the bot shows who, and ONECLAW_ADMINS names administrators without it")
	}
	return err
}
