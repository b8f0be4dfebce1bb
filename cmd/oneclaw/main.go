// Command oneclaw is a bot for Telegram and Slack that gets things done with tools. This package has its
// commands, their flags and their output.
package main

import (
	"github.com/spf13/cobra"

	"oneclaw/internal/cli"
)

// version is set by the linker in a release.
var version = "devel"

func main() { cli.Main(rootCommand, version) }

func rootCommand(load cli.Loader) *cobra.Command {
	root := &cobra.Command{
		Use:   "oneclaw",
		Short: "A bot for Telegram and Slack that loads its tools when it needs them",
	}
	root.AddCommand(
		runCommand(load), setupCommand(load), claimCommand(load), doctorCommand(load), slackCommand(), providerCommand(load),
		googleCommand(load), toolsCommand(load), configCommand(load), historyCommand(load),
		backupCommand(load), restoreCommand(load), moveCommand(load), importCommand(load), replicasCommand(load), auditCommand(load),
		serviceCommand(), healthCommand(load), versionCommand(load),
		cli.GoneCommand("bill", "/usage and the pages of administrators show what a conversation has used"),
		cli.GoneCommand("export", "/export gives people their own conversations"),
	)
	return root
}
