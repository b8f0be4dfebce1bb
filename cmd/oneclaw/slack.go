package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"oneclaw/slack"
	"oneclaw/storage"
)

// slackMarks keep in the store up to when Slack's messages have arrived.
type slackMarks struct{ kv storage.KV }

const slackMarksKey = "slack/marks"

// Load implements [slack.Marks].
func (m slackMarks) Load(ctx context.Context) ([]byte, error) {
	entry, err := m.kv.Get(ctx, slackMarksKey)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("load the marks of slack: %w", err)
	}
	return entry.Value, nil
}

// Save implements [slack.Marks].
func (m slackMarks) Save(ctx context.Context, state []byte) error {
	if _, err := m.kv.Put(ctx, slackMarksKey, state, storage.Any); err != nil {
		return fmt.Errorf("save the marks of slack: %w", err)
	}
	return nil
}

func slackCommand() *cobra.Command {
	command := parent("slack", "Help with the Slack app")
	link, public := false, ""
	manifest := &cobra.Command{
		Use:   "manifest",
		Short: "Print the manifest of the Slack app, and a link that creates the app from it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			data := slack.Manifest()
			if public != "" {
				var err error
				if data, err = slack.HTTPManifest(public); err != nil {
					return err
				}
			}
			if link {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), slack.CreationLink(data))
				return err
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s\n# Or open this link, which fills the manifest in:\n# %s\n", data, slack.CreationLink(data))
			return err
		},
	}
	manifest.Flags().BoolVar(&link, "link", false, "print the link alone")
	manifest.Flags().StringVar(&public, "http", "", "for an app that is posted its events: the public address of the bot, such as https://bot.example.com")
	command.AddCommand(manifest)
	return command
}
