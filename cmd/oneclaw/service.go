package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"oneclaw/internal/cli"
	"oneclaw/internal/service"
)

func serviceCommand() *cobra.Command {
	i := service.Installer{}
	command := cli.ParentCommand("service", "Install the bot as a service of systemd")
	command.PersistentFlags().BoolVar(&i.UserService, "user", false, "the service of your user, not of the system")
	add := func(use, short string, do func(ctx context.Context) error) *cobra.Command {
		sub := &cobra.Command{
			Use: use, Short: short, Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) (err error) {
				i.Out = cmd.OutOrStdout()
				if i.Program, err = os.Executable(); err == nil {
					i.Program, err = filepath.EvalSymlinks(i.Program)
				}
				if err != nil {
					return err
				}
				return do(cmd.Context())
			},
		}
		command.AddCommand(sub)
		return sub
	}
	install := add("install", "Write the unit, and have the service start with the system", func(ctx context.Context) error { return i.Install(ctx) })
	install.Flags().BoolVar(&i.Now, "now", false, "start it at once")
	add("uninstall", "End the service and remove its unit; data and settings stay", func(ctx context.Context) error { return i.Uninstall(ctx) })
	add("print", "Print the unit", func(context.Context) error {
		text, err := service.Unit(i.Options)
		if err != nil {
			return err
		}
		_, err = io.WriteString(i.Out, text)
		return err
	})
	return command
}

// systemdNotifier returns a function that notifies systemd when the bot is ready and when it stops.
func systemdNotifier(log *slog.Logger) func(context.Context) error {
	tell := func(ctx context.Context, state string) {
		if err := service.Notify(ctx, state); err != nil {
			log.Warn("cannot notify systemd of the bot's state", "err", err)
		}
	}
	return func(ctx context.Context) error {
		tell(ctx, service.Ready)
		<-ctx.Done()
		tell(context.WithoutCancel(ctx), service.Stopping)
		return nil
	}
}
