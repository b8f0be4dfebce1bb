// Package cli has what the programs of this module share on the command line: settings, one-line
// errors, signals, and child processes.
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

// Main runs a program: as a child if this process was started as one, else its commands.
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

// Child returns the function of a child process with these arguments, which runs a script, or
// reads a page or a document. It is nil for the program itself.
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

// Execute runs commands and returns the exit code. An error is one line on standard error, with
// suggestions below for a mistyped command or flag. The first SIGINT or SIGTERM shuts down
// gracefully, a second one at once.
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

// errorText returns an error on one line, followed by cobra's suggestions.
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

// Run makes a command's function from one that needs the settings.
func (load Loader) Run(do func(cmd *cobra.Command, cfg config.Config, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		cfg, err := load()
		if err != nil {
			return err
		}
		return do(cmd, cfg, args)
	}
}

// Parent makes a command that only has subcommands.
func Parent(use, short string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
}

// OneArgument requires one argument, or explains the usage.
func OneArgument(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return fmt.Errorf("want one argument: %s", cmd.UseLine())
}
