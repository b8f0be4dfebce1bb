package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"oneclaw/bridge/chats"
	"oneclaw/internal/app"
	"oneclaw/internal/cli"
	"oneclaw/internal/config"
	"oneclaw/internal/moving"
)

// importOptions are the flags of the import commands.
type importOptions struct {
	mover     moving.Mover
	workspace string
	schedules string
}

func importCommand(load cli.Loader) *cobra.Command {
	command := cli.ParentCommand("import", "Move in from another bot (stop the bot first)")
	var o importOptions
	for _, source := range []struct {
		bot                   moving.Bot
		title, dir, schedules string
	}{
		{moving.OpenClaw, "OpenClaw", "~/.openclaw", "what 'openclaw cron list --all --json' prints"},
		{moving.Hermes, "Hermes Agent", "~/.hermes", "~/.hermes/cron/jobs.json"},
	} {
		one := &cobra.Command{
			Use:   string(source.bot) + " DIR",
			Short: "Take over what " + source.title + " keeps in a folder such as " + source.dir + " (stop the bot first)",
			Long: "Take over memory, skills, schedules and MCP servers from the folder of " + source.title + ", such as " + source.dir + ". " +
				"Nothing runs and nothing is sent: schedules arrive paused, skills and MCP servers switched off. " +
				"The list says what is taken over, what is there already, and what is left, with the reason. Nothing in the folder changes, and links are not followed. Running it again does no harm.",
			Args: cli.OneArgument,
			RunE: load.WithConfig(func(cmd *cobra.Command, cfg config.Config, args []string) error {
				return o.run(cmd, cfg, source.bot, args[0])
			}),
		}
		one.Flags().BoolVar(&o.mover.DryRun, "dry-run", false, "print the list and change nothing")
		one.Flags().StringVar(&o.mover.For, "for", "", "who gets memory and schedules, such as telegram:123 (default: the owner of the bot)")
		one.Flags().StringVar(&o.schedules, "schedules", "", "a file with the schedules: "+source.schedules)
		if source.bot == moving.OpenClaw {
			one.Flags().StringVar(&o.workspace, "workspace", "", "the workspace of the agent, if it is elsewhere")
		}
		command.AddCommand(one)
	}
	return command
}

// run reads the folder of another bot, takes over what is there, and prints the list.
func (o importOptions) run(cmd *cobra.Command, cfg config.Config, bot moving.Bot, dir string) error {
	if _, err := chats.ParseChat(o.mover.For); err != nil && o.mover.For != "" {
		return fmt.Errorf("--for: %q is not a user: want platform:id, such as telegram:123; /whoami shows it", o.mover.For)
	}
	source := moving.Source{Bot: bot}
	var err error
	if source.Folder, err = os.OpenRoot(dir); err != nil {
		return fmt.Errorf("the folder to import: %w", err)
	}
	defer func() { _ = source.Folder.Close() }()
	if o.workspace != "" {
		if source.Workspace, err = os.OpenRoot(o.workspace); err != nil {
			return fmt.Errorf("--workspace: %w", err)
		}
		defer func() { _ = source.Workspace.Close() }()
	}
	if o.schedules != "" {
		if source.Schedules, err = os.Open(o.schedules); err != nil {
			return fmt.Errorf("--schedules: %w", err)
		}
		defer func() { _ = source.Schedules.Close() }()
	}
	found, err := moving.Read(cmd.Context(), source)
	if err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	lines, err := app.TakeOver(cmd.Context(), cfg, o.mover, found)
	if printed := printMoved(cmd.OutOrStdout(), lines); err == nil {
		err = printed
	}
	if err == nil && o.mover.DryRun {
		_, err = fmt.Fprintln(cmd.ErrOrStderr(), "This was a dry run: nothing was changed.")
	}
	return err
}

// arrival has a heading for each kind, which says in which state its things arrive.
var arrival = map[moving.Kind]string{
	moving.KindMemory:   "Memory",
	moving.KindSkill:    `Skills: switched off. In the chat: "switch on the skill NAME"`,
	moving.KindSchedule: `Schedules: paused. In the chat: "resume the task NAME"`,
	moving.KindServer:   "MCP servers: switched off. /mcp on NAME",
	moving.KindOther:    "Everything else",
}

// printMoved prints what became of each thing.
func printMoved(w io.Writer, lines []moving.Line) error {
	counts := map[moving.Mark]int{}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	var kind moving.Kind
	for _, line := range lines {
		if line.Kind != kind {
			kind = line.Kind
			_, _ = fmt.Fprintln(table, arrival[kind])
		}
		counts[line.Mark]++
		cells := []string{"  " + string(line.Mark) + " " + line.Name, line.Text}
		_, _ = fmt.Fprintln(table, strings.TrimSuffix(strings.Join(cells, "\t"), "\t"))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n+ %d taken over, = %d there already, - %d left.\n", counts[moving.Taken], counts[moving.Known], counts[moving.Left])
	return err
}
