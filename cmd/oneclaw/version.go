package main

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"

	"oneclaw/internal/cli"
)

func versionCommand(load cli.Loader) *cobra.Command {
	check, from := false, ""
	command := &cobra.Command{
		Use:   "version",
		Short: "Print the version; with --check ask whether there is a newer one",
		Long: "Print the version. With --check one request goes to the address of releases, the setting release_url (ONECLAW_RELEASE_URL) " +
			"or --from; there is none by itself, and the program never asks unless it is told to. The answer is a version in the first line, " +
			"or the description of a release as GitHub, GitLab, Gitea and Forgejo give it.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			toolchain := ""
			if info, ok := debug.ReadBuildInfo(); ok {
				toolchain = " " + info.GoVersion
			}
			if _, err := fmt.Fprintln(cmd.OutOrStdout(), "oneclaw "+version+toolchain); err != nil || !check && from == "" {
				return err
			}
			if from == "" {
				cfg, err := load()
				if err != nil {
					return err
				}
				if from = cfg.ReleaseURL; from == "" {
					return errors.New("no address of releases is set: give one with --from or ONECLAW_RELEASE_URL")
				}
			}
			found, err := fetchNewestRelease(cmd.Context(), from)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), compareReleases(version, found))
			return err
		},
	}
	command.Flags().BoolVar(&check, "check", false, "ask the address of releases whether there is a newer version")
	command.Flags().StringVar(&from, "from", "", "with --check: the address of releases to ask")
	return command
}
