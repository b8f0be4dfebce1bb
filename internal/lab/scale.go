package lab

import (
	"github.com/spf13/cobra"

	"oneclaw/internal/lab/scale"
)

func scaleCommand() *cobra.Command {
	s := scale.Simulation{}
	command := &cobra.Command{
		Use:   "scale",
		Short: "Run many replicas on one store, and count what they would ask of a database",
		Long: "Run many replicas in this process on one store, send them messages, lose some replicas at once, and count the statements, " +
			"rows, notifications and bytes of log that a PostgreSQL server would have to handle for each message. " +
			"The replicas run the bot's own code; platform and model answer at once. It takes half a minute, and fails on a machine that is too slow for the rate.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return s.Run(cmd.Context(), cmd.OutOrStdout()) },
	}
	f := command.Flags()
	f.IntVar(&s.Replicas, "replicas", 100, "the number of replicas")
	f.IntVar(&s.Chats, "chats", 1_000_000, "the number of chats that messages come from")
	f.IntVar(&s.Messages, "messages", 4000, "the number of messages")
	f.IntVar(&s.Rate, "rate", 1000, "the number of messages a second")
	f.IntVar(&s.Lose, "lose", 10, "the number of replicas that are lost at once")
	return command
}
