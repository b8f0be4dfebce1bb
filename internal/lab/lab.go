// Package lab has the commands of oneclaw-lab: a demo page, replays of recordings, the cost of
// conversations, measurements, a simulation of many replicas, and the emulators alone. No command uses a
// real platform. The demo and the replay of cases use the real model of the settings if there is one.
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
