// Package lab has the commands of oneclaw-lab: the demo, the emulators without a bot, replays of
// recordings and of exported cases, the cost of conversations, a measurement of tool search, and a
// simulation of many replicas. No command uses a real platform. The demo and the replay of cases use the
// real model of the settings if there is one.
package lab

import (
	"github.com/spf13/cobra"

	"oneclaw/internal/cli"
)

// Root makes the commands.
func Root(load cli.Loader) *cobra.Command {
	root := &cobra.Command{
		Use:   "oneclaw-lab",
		Short: "Try and measure oneclaw with emulated services",
	}
	root.AddCommand(demoCommand(load), emulatorsCommand(), billCommand(load), replayCommand(load), evalCommand(load), scaleCommand())
	return root
}
