package main

import (
	"iter"
	"log/slog"

	"github.com/spf13/cobra"

	"oneclaw/agent"
	"oneclaw/internal/app"
	"oneclaw/internal/bill"
	"oneclaw/internal/cli"
	"oneclaw/internal/config"
)

func billCommand(load cli.Loader) *cobra.Command {
	var chat string
	var form bill.Form
	command := &cobra.Command{
		Use:   "bill --chat CHAT",
		Short: "Compare what the present conversation of a chat costs under each way of routing tools (stop the bot first)",
		Long: "Play the present conversation of a chat under each way of routing tools (tools.routing) and print what its input " +
			"tokens cost at the prices of several providers' caches. Nothing is sent anywhere. oneclaw-lab bill plays " +
			"conversations that come with it.",
		Args: cobra.NoArgs,
		RunE: load.Run(func(cmd *cobra.Command, cfg config.Config, _ []string) error {
			var played bill.Conversation
			err := readChat(cmd.Context(), cfg, chat, func(log iter.Seq2[agent.Message, error]) (err error) {
				played, err = bill.Recorded(chat, log)
				return err
			})
			if err != nil {
				return err
			}
			if cfg.Telegram.Token == "" {
				cfg.Telegram.Token = app.UnusedToken
			}
			// The bot is built with the data of the real one, for its own tools and servers, and not run.
			return app.With(cmd.Context(), cfg, slog.New(slog.DiscardHandler), func(b *app.Bot) error {
				as := b.Bill(cfg)
				as.Left = func(calls int) {
					cmd.PrintErrf("%d calls are left out: their tools are not there any more.\n", calls)
				}
				return form.Print(cmd.Context(), cmd.OutOrStdout(), as, played)
			})
		}),
	}
	command.Flags().StringVar(&chat, "chat", "", "the chat, such as telegram:123")
	_ = command.MarkFlagRequired("chat") // the flag is there
	form.Flags(command)
	return command
}
