// Command oneclaw is a bot that people talk to in Telegram and Slack and that gets
// things done with tools. This package reads the settings, builds the parts and
// starts them; it is the only place that knows every part.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"oneclaw/cmd/oneclaw/config"
	"oneclaw/internal/javascript"
	"oneclaw/internal/readable"
	"oneclaw/internal/redact"
	"oneclaw/toolgroups/pdf"
)

// version is set by the linker in a release.
var version = "devel"

func main() {
	if serve := childPart(os.Args); serve != nil {
		if serve(os.Stdin, os.Stdout) != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(execute(config.Standard(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// childPart returns the part of the program that this process was started for, as a child
// of another one: to run a script, or to read a page or a document. It is nil for the program itself.
func childPart(args []string) func(io.Reader, io.Writer) error {
	if len(args) != 2 {
		return nil
	}
	switch args[1] {
	case javascript.Argument:
		return javascript.Serve
	case pdf.Argument:
		return pdf.Serve
	case readable.Argument:
		return readable.Serve
	}
	return nil
}

// execute runs the program: it returns the exit code, and what went wrong is one line on
// standard error. The first SIGINT or SIGTERM ends it in good order, a second at once.
func execute(o config.Outside, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	var known *redact.Redactor
	root := rootCommand(o, func(r *redact.Redactor) { known = r })
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	if err := root.ExecuteContext(ctx); err != nil {
		_, _ = fmt.Fprintln(stderr, "oneclaw: "+strings.ReplaceAll(strings.TrimSpace(known.Text(err.Error())), "\n", "; "))
		return 1
	}
	return 0
}

// rootCommand makes all commands. The secrets that one reads are given to known.
func rootCommand(o config.Outside, known func(*redact.Redactor)) *cobra.Command {
	root := &cobra.Command{
		Use:           "oneclaw",
		Short:         "A bot for Telegram and Slack that loads its tools when it needs them",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	var configFile string
	root.PersistentFlags().StringVar(&configFile, "config", "", "settings file (default: oneclaw.yaml in the data directory)")
	load := func() (config.Config, error) {
		cfg, err := config.Load(configFile, os.Environ())
		known(cfg.Redact)
		cfg.Outside = o
		return cfg, err
	}
	root.AddCommand(
		runCommand(load), replayCommand(load), demoCommand(load), setupCommand(load), claimCommand(load), doctorCommand(load), slackCommand(), providerCommand(load),
		googleCommand(load), evalCommand(load), exportCommand(load), billCommand(load), toolsCommand(load), configCommand(load), historyCommand(load),
		backupCommand(load), restoreCommand(load), moveCommand(load), replicasCommand(load), auditCommand(load),
		serviceCommand(), healthCommand(load), versionCommand(load),
	)
	return root
}

type loader func() (config.Config, error)

// run makes what a command runs of what it does with the settings.
func (load loader) run(do func(cmd *cobra.Command, cfg config.Config, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		cfg, err := load()
		if err != nil {
			return err
		}
		return do(cmd, cfg, args)
	}
}

// parent makes a command that only has others below it.
func parent(use, short string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
}

// oneArgument has a command called with one argument, and says how where it is not.
func oneArgument(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return fmt.Errorf("want one argument: %s", cmd.UseLine())
}
