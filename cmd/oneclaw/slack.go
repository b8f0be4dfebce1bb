package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"oneclaw/internal/cli"
	"oneclaw/slack/manifest"
)

func slackCommand() *cobra.Command {
	command := cli.ParentCommand("slack", "Help with the Slack app")
	link, public := false, ""
	show := &cobra.Command{
		Use:   "manifest",
		Short: "Print the manifest of the Slack app, and a link that creates the app from it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			data := manifest.YAML()
			if public != "" {
				var err error
				if data, err = manifest.HTTP(public); err != nil {
					return err
				}
			}
			// Slack silently ignores the link for some accounts.
			const paste = "choose \"From a manifest\" on that page and paste the manifest"
			if link {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), manifest.Link(data))
				cmd.PrintErrf("Where the page comes up empty, %s that \"oneclaw slack manifest\" prints.\n", paste)
				return err
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s\n# Or open this link, which fills the manifest in:\n# %s\n# Where it does not, %s.\n", data, manifest.Link(data), paste)
			return err
		},
	}
	show.Flags().BoolVar(&link, "link", false, "print the link alone")
	show.Flags().StringVar(&public, "http", "", "for an app that is posted its events: the public address of the bot, such as https://bot.example.com")
	command.AddCommand(show)
	return command
}
