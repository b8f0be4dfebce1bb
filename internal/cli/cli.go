// Package cli is what the programs of this module have in common on the command line: the
// settings, errors in one line, signals, and the children as which a program starts itself.
package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"oneclaw/internal/config"
	"oneclaw/internal/readable"
	"oneclaw/internal/redact"
	"oneclaw/internal/sandbox"
	"oneclaw/toolgroups/documents"
	"oneclaw/toolgroups/pdf"
)

// Main runs a program: as a child where this process was started as one, else its commands.
func Main(root func(Loader) *cobra.Command, version string) {
	if serve := Child(os.Args); serve != nil {
		if serve(os.Stdin, os.Stdout) != nil {
			os.Exit(1)
		}
		return
	}
	outside := config.Standard()
	outside.Version = version
	os.Exit(Execute(root, outside, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// Child returns the part of the program that this process was started for, as a child
// of another one: to run a script, or to read a page or a document. It is nil for the program itself.
func Child(args []string) func(io.Reader, io.Writer) error {
	if len(args) != 2 {
		return nil
	}
	switch args[1] {
	case sandbox.ScriptArgument:
		return sandbox.ServeScript
	case pdf.Argument:
		return pdf.Serve
	case readable.Argument:
		return readable.Serve
	case documents.Argument:
		return documents.Serve
	}
	return nil
}

// Execute runs commands: it returns the exit code, and what went wrong is one line on
// standard error, with suggestions below it where a command or a flag is mistyped. The first SIGINT or SIGTERM ends it in good order, a second at once.
func Execute(root func(Loader) *cobra.Command, o config.Outside, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	var known *redact.Redactor
	file := ""
	command := root(func() (config.Config, error) {
		cfg, err := config.Load(file, os.Environ())
		known = cfg.Redact
		cfg.Outside = o
		return cfg, err
	})
	command.SilenceErrors, command.SilenceUsage = true, true
	command.PersistentFlags().StringVar(&file, "config", "", "settings file (default: oneclaw.yaml in the data directory)")
	command.SetArgs(args)
	command.SetIn(stdin)
	command.SetOut(stdout)
	command.SetErr(stderr)
	if err := command.ExecuteContext(ctx); err != nil {
		_, _ = fmt.Fprintln(stderr, command.Name()+": "+errorText(command.Name(), known.Text(err.Error())))
		return 1
	}
	return 0
}

// errorText is an error in one line, and what cobra suggests below it.
func errorText(program, text string) string {
	line, suggestions, mistyped := strings.Cut(text, "\n\nDid you mean this?")
	line = strings.ReplaceAll(strings.TrimSpace(line), "\n", "; ")
	switch {
	case mistyped:
		line += "\n\nDid you mean this?" + strings.TrimRight(suggestions, "\n")
	case !strings.HasPrefix(line, "unknown "):
		return line
	}
	return fmt.Sprintf("%s\n\nRun '%s --help' for usage.", line, program)
}

// Loader reads the settings.
type Loader func() (config.Config, error)

// Run makes what a command runs of what it does with the settings.
func (load Loader) Run(do func(cmd *cobra.Command, cfg config.Config, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		cfg, err := load()
		if err != nil {
			return err
		}
		return do(cmd, cfg, args)
	}
}

// Parent makes a command that only has others below it.
func Parent(use, short string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
}

// OneArgument has a command called with one argument, and says how where it is not.
func OneArgument(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return fmt.Errorf("want one argument: %s", cmd.UseLine())
}
