// Package lab has the commands of oneclaw-lab: a demo in a page, recordings that are played
// again, what conversations cost, measurements, and the emulators by themselves. What runs there
// is the bot itself; what it speaks to is emulated.
package lab

import (
	"github.com/spf13/cobra"

	"oneclaw/internal/cli"
)

// Root makes the commands.
func Root(load cli.Loader) *cobra.Command {
	root := &cobra.Command{
		Use:   "oneclaw-lab",
		Short: "Try and measure oneclaw: all services are emulated, nothing leaves the machine",
	}
	root.AddCommand(demoCommand(load), emulatorsCommand(), billCommand(load), replayCommand(load), evalCommand(load))
	return root
}
