package main

import (
	"github.com/spf13/cobra"

	"oneclaw/internal/app"
	"oneclaw/internal/bill"
	"oneclaw/internal/cli"
	"oneclaw/internal/config"
)

func billCommand(load cli.Loader) *cobra.Command {
	var chat string
	var form bill.Format
	command := &cobra.Command{
		Use:   "bill --chat CHAT",
		Short: "Compare what the present conversation of a chat costs under each way of routing tools",
		Long: "Play the present conversation of a chat under each way of routing tools (tools.routing) and print what its input " +
			"tokens cost at the prices of several providers' caches. Nothing is sent anywhere. oneclaw-lab bill plays " +
			"conversations that come with it.",
		Args: cobra.NoArgs,
		RunE: load.WithConfig(func(cmd *cobra.Command, cfg config.Config, _ []string) error {
			return app.WriteChatBill(cmd.Context(), cfg, chat, form, cmd.OutOrStdout())
		}),
	}
	command.Flags().StringVar(&chat, "chat", "", "the chat, such as telegram:123")
	_ = command.MarkFlagRequired("chat") // the flag exists
	form.AddFlags(command)
	return command
}
