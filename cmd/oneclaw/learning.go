package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/turn"
	"oneclaw/cmd/oneclaw/config"
	"oneclaw/internal/database"
	"oneclaw/internal/learning"
	"oneclaw/internal/learning/rerun"
	"oneclaw/storage"
	"oneclaw/toolgroups/search"
)

func exportCommand(load loader) *cobra.Command {
	all, force := parent("export", "Write what the bot has kept to files"), false
	command := &cobra.Command{
		Use: "eval FILE", Short: "Write the conversations that people judged with 👍 or 👎 as cases for oneclaw eval replay", Args: oneArgument,
		Long: "Write the conversations that people judged with 👍 or 👎, also while the bot runs. Secrets, names and ids are replaced. The setting export_judged has to allow it; left out is what was judged where people were not told of it, and where somebody said /learning no.",
		RunE: load.run(func(cmd *cobra.Command, cfg config.Config, args []string) error {
			counts, err := learning.File{
				Off: !cfg.ExportJudged, Path: args[0], Force: force, At: cfg.Place(),
				Ask: func(ctx context.Context, read func(io.Reader) error) (bool, error) {
					return order(ctx, cfg, "export", read)
				},
				Exporter: func(store *database.Store) (learning.Exporter, error) {
					log := slog.New(slog.DiscardHandler)
					_, _, err := openSettings(cfg, store, log) // the redactor knows the vault from then on
					return exporter(cfg, store, log), err
				},
			}.Write(cmd.Context())
			if err == nil {
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s written to %s.\n", counts, args[0])
			}
			return err
		}),
	}
	command.Flags().BoolVar(&force, "force", false, "replace the file if it is there")
	all.AddCommand(command)
	return all
}

func exporter(cfg config.Config, store storage.Store, log *slog.Logger) learning.Exporter {
	return learning.Exporter{Store: store, Redact: cfg.Redact.Text, Money: cfg.Money(), WindowTokens: turn.DefaultWindowTokens, Log: log, Now: cfg.Outside.Now}
}

// learns returns what tells people of exports, where the settings allow them.
func (b *bot) learns(cfg config.Config, log *slog.Logger) (judged func(context.Context, chats.Chat) (string, func(context.Context) error, error), commands []bridge.Command) {
	if !cfg.ExportJudged {
		return nil, nil
	}
	b.cases = exporter(cfg, b.store, log)
	consent := learning.Consent{Store: b.store, Now: cfg.Outside.Now}
	return consent.Judged, consent.Commands()
}

func evalReplayCommand(load loader) *cobra.Command {
	var o rerun.Options
	command := &cobra.Command{
		Use: "replay FILE", Short: "Run exported cases with another model, routing or prompt and show what is different", Args: oneArgument,
		Long: "Run the cases of oneclaw export eval with the model of the settings, or another one at the same address, and print what is different. Tools answer with what is on record and have no effect; nothing but the model is asked.",
		RunE: load.run(func(cmd *cobra.Command, cfg config.Config, args []string) error {
			o.Out, o.Progress = cmd.OutOrStdout(), cmd.ErrOrStderr()
			cfg.Model.Name, cfg.Store = cmp.Or(o.Model, cfg.Model.Name), database.Bolt
			return emptyBot(cmd.Context(), cfg, func(b *bot) error {
				client, err := cfg.Model.Client(cfg.ModelClient())
				if err != nil {
					return err
				}
				o.Base = rerun.Config{
					Model: client, Name: cfg.Model.Name, Effort: cfg.Model.Effort, Prompt: prompt, Registry: b.tools.Registry(), Now: cfg.Outside.Now,
					Routing: search.Routing(cfg.Tools.Routing), Search: cfg.Tools.ToolSearch, Prices: cachePrices(cfg), Money: cfg.Money(), Budget: o.Base.Budget,
				}
				return rerun.File(cmd.Context(), args[0], o)
			})
		}),
	}
	o.Flags(command.Flags())
	return command
}
