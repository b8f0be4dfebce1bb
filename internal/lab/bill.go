package lab

import (
	"github.com/spf13/cobra"

	"oneclaw/internal/app"
	"oneclaw/internal/bill"
	"oneclaw/internal/cli"
	"oneclaw/internal/config"
)

func billCommand(load cli.Loader) *cobra.Command {
	var form bill.Format
	command := &cobra.Command{
		Use:   "bill [CONVERSATION…]",
		Short: "Compare what conversations cost under each way of routing tools",
		Long: "Play the conversations that come with the program, or those that are named, under each way of routing tools " +
			"(tools.routing) and print what their input tokens cost at the prices of several providers' caches. " +
			"Nothing is sent anywhere. oneclaw bill --chat plays a conversation of a chat.",
		RunE: load.WithConfig(func(cmd *cobra.Command, cfg config.Config, args []string) error {
			conversations, err := bill.Conversations(args)
			if err != nil {
				return err
			}
			return app.WithEmptyBot(cmd.Context(), cfg, func(b *app.Bot) error {
				return form.Print(cmd.Context(), cmd.OutOrStdout(), b.BillConfig(cfg), conversations...)
			})
		}),
	}
	form.AddFlags(command)
	return command
}
