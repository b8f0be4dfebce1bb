// Package lab has the commands of oneclaw-lab: the demo, and the emulators without a bot. No command uses a
// real platform. The demo uses the real model of the settings if there is one.
package lab

import (
	"github.com/spf13/cobra"

	"oneclaw/internal/cli"
)

// Root makes the commands.
func Root(load cli.Loader) *cobra.Command {
	root := &cobra.Command{
		Use:   "oneclaw-lab",
		Short: "Try oneclaw with emulated services",
	}
	const measures = "the tests measure that now, see docs/measured.md"
	root.AddCommand(
		demoCommand(load), emulatorsCommand(),
		cli.GoneCommand("bill", "oneclaw tools counts what a first request carries"), cli.GoneCommand("replay", "there are no recordings any more"),
		cli.GoneCommand("eval", measures), cli.GoneCommand("scale", measures),
	)
	return root
}
