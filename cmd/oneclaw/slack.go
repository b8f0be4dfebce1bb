package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"oneclaw/slack"
)

func slackCommand() *cobra.Command {
	command := parent("slack", "Help with the Slack app")
	link := false
	manifest := &cobra.Command{
		Use:   "manifest",
		Short: "Print the manifest of the Slack app, and a link that creates the app from it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if link {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), slack.CreationLink())
				return err
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s\n# Or open this link, which fills the manifest in:\n# %s\n", slack.Manifest(), slack.CreationLink())
			return err
		},
	}
	manifest.Flags().BoolVar(&link, "link", false, "print the link alone")
	command.AddCommand(manifest)
	return command
}
