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
	"oneclaw/bridge/turns"
	"oneclaw/cmd/oneclaw/config"
	"oneclaw/internal/database"
	"oneclaw/internal/learning"
	"oneclaw/internal/learning/rerun"
	"oneclaw/storage"
	"oneclaw/toolgroups/search"
)

func exportCommand(load loader) *cobra.Command {
	parent, force := parent("export", "Write what the bot has kept to files"), false
	command := &cobra.Command{
		Use: "eval FILE", Short: "Write the conversations that people judged with 👍 or 👎 as cases for oneclaw eval replay", Args: oneArgument,
		Long: "Write the conversations that people judged with 👍 or 👎 as cases for oneclaw eval replay, also while the bot runs. Secrets, names and ids are replaced. " +
			"The setting export_judged has to allow it; left out is what was judged where people were not told of it, and where somebody said /learning no.",
		RunE: load.run(func(cmd *cobra.Command, cfg config.Config, args []string) error {
			if !cfg.ExportJudged {
				return learning.ErrOff
			}
			counts, err := learning.File{
				Path: args[0], Force: force, At: cfg.Place(),
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
	parent.AddCommand(command)
	return parent
}

func exporter(cfg config.Config, store storage.Store, log *slog.Logger) learning.Exporter {
	return learning.Exporter{Store: store, Redact: cfg.Redact.Text, Money: cfg.Money(), WindowTokens: turns.DefaultWindowTokens, Log: log, Now: cfg.Outside.Now}
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
		Long: "Run the cases of oneclaw export eval with the model of the settings, or another one at the same address, and print beside what is on record what it answers now, " +
			"which tools it chooses and what that costs. Tools answer with what is on record and have no effect; nothing but the model is asked.",
		RunE: load.run(func(cmd *cobra.Command, cfg config.Config, args []string) error {
			o.Out, o.Progress = cmd.OutOrStdout(), cmd.ErrOrStderr()
			cfg.Model.Name, cfg.Store = cmp.Or(o.Model, cfg.Model.Name), database.Bolt
			return emptyBot(cmd.Context(), cfg, func(b *bot) error {
				client, err := cfg.Model.Client(cfg.ModelClient())
				o.Base.Model, o.Base.Name, o.Base.Effort, o.Base.Prompt = client, cfg.Model.Name, cfg.Model.Effort, prompt
				o.Base.Registry, o.Base.Routing, o.Base.Search = b.tools.Registry(), search.Routing(cfg.Tools.Routing), cfg.Tools.ToolSearch
				o.Base.Prices, o.Base.Money, o.Base.Now = cachePrices(cfg), cfg.Money(), cfg.Outside.Now
				if err != nil {
					return err
				}
				return rerun.File(cmd.Context(), args[0], o)
			})
		}),
	}
	o.Flags(command.Flags())
	return command
}
