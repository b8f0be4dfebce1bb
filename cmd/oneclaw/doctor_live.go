package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/spf13/cobra"

	"oneclaw/bridge/access"
	"oneclaw/bridge/chats"
	"oneclaw/internal/app"
	"oneclaw/internal/cli"
	"oneclaw/internal/config"
	"oneclaw/internal/connections"
	"oneclaw/internal/database"
	"oneclaw/internal/doctor/live"
	"oneclaw/internal/models"
	"oneclaw/internal/retry"
	"oneclaw/internal/wording"
	"oneclaw/storage"
)

// runLive sends one message of each kind, asks each model for one tool call and the servers of the
// catalogue how users sign in, and prints what the services did next to what their emulators do.
func runLive(cmd *cobra.Command, cfg config.Config, chosen []string) error {
	ctx, w := cmd.Context(), cmd.OutOrStdout()
	if err := cfg.Platforms.Check(); err != nil {
		return err
	}
	places, err := findTestChats(ctx, cfg, chosen)
	if err != nil {
		return err
	}
	var seen live.Responses
	var tries []iter.Seq[live.Row]
	for name, one := range cfg.All {
		if one.Missing() != "" {
			continue
		}
		place, there := places[name]
		if !there {
			_, _ = fmt.Fprintf(w, "Left out: %s. The owner's chat there is not known; name one with --chat %[1]s:ID.\n", name)
			continue
		}
		if p, ok := one.(interface{ Tap(tap retry.Tap) }); ok {
			p.Tap(seen.Tap)
		}
		platform, err := one.Open(nil, cli.NewLogger(cmd.ErrOrStderr(), cfg)) // needs no store, because Run is not called
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(w, "To %s go %s.\n", place, live.Messages)
		tries = append(tries, live.TryPlatform(ctx, platform, place, &seen))
	}
	if m := cfg.Model; m.LacksKey() {
		_, _ = fmt.Fprintln(w, "Left out: the model. There is no key: set OPENAI_API_KEY, or OPENAI_BASE_URL to a server that wants none.")
	} else {
		model, err := m.Client(cfg.ModelClient())
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(w, "%s is asked twice, for one call of a tool; that costs less than a message of a chat.\n", m.Name)
		tries = append(tries, live.TryModel(ctx, live.OwnModel, model))
	}
	if cfg.Models.ByKind != (models.ByKind{}) {
		if err := app.WithModels(ctx, cfg, cli.NewLogger(cmd.ErrOrStderr(), cfg), func(m *models.Models) error {
			for _, k := range m.KindModels(ctx) {
				if k.Err != nil {
					_, _ = fmt.Fprintf(w, "Left out: %s of %s: %v\n", k.Name, strings.Join(k.Settings, ", "), k.Err)
					continue
				}
				_, _ = fmt.Fprintf(w, "%s is asked twice too, for %s.\n", k.Name, strings.Join(k.Settings, ", "))
				tries = append(tries, live.TryModel(ctx, k.Name, k.Client))
			}
			return nil
		}); err != nil {
			return err
		}
	}
	catalogue, err := connections.ReadCatalogue(cfg.MCP.Catalogue)
	if err != nil {
		return err
	}
	if n := len(catalogue.Servers); n > 0 {
		asked, err := tryCatalogue(ctx, cfg, catalogue)
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(w, "%s of /connect are asked how people sign in, which the catalogue says in the last column; nobody signs in.\n", wording.Plural(n, "server", "servers"))
		tries = append(tries, asked)
	}
	_, _ = fmt.Fprint(w, "No messages are fetched: a bot that runs elsewhere with these tokens goes on.\n\n")
	return live.Print(ctx, w, cfg.Redact.Text, tries)
}

// findTestChats finds the chat to test on each platform: the one that is named, or else the owner's.
func findTestChats(ctx context.Context, cfg config.Config, chosen []string) (map[string]chats.Chat, error) {
	places := map[string]chats.Chat{}
	err := database.View(ctx, cfg.Place(), func(store *database.Store) error {
		if err := store.CheckUnserved(ctx); err != nil {
			return err
		}
		chat, err := access.OwnerChat(ctx, store)
		places[chat.Platform] = chat
		return err
	})
	if errors.Is(err, storage.ErrLocked) {
		return nil, fmt.Errorf("the bot runs with the data in %s: stop it first, so that only you answer the messages, then start it again", cfg.DataDir)
	}
	if err != nil {
		return nil, fmt.Errorf("find the owner's chat: %w", err)
	}
	for _, text := range chosen {
		chat, err := chats.ParseChat(text)
		if err != nil {
			return nil, err
		}
		places[chat.Platform] = chat
	}
	if delete(places, ""); len(places) == 0 {
		return nil, errors.New("no chat to send to: start the bot, claim it (oneclaw claim prints how), stop it and try again; or name your chat with --chat, such as --chat telegram:123")
	}
	return places, nil
}
