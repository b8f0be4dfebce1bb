// Package cli has the command-line code that the programs in this module share: loading settings,
// one-line errors, signals, and sandboxed child processes.
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
	"oneclaw/internal/moving"
	"oneclaw/internal/readable"
	"oneclaw/internal/redact"
	"oneclaw/internal/sandbox"
	"oneclaw/toolgroups/documents"
	"oneclaw/toolgroups/pdf"
)

// Main runs a program. It runs a sandboxed child if this process was started as one, or else a command.
func Main(root func(Loader) *cobra.Command, version string) {
	if serve := ChildMain(os.Args); serve != nil {
		if serve(os.Stdin, os.Stdout) != nil {
			os.Exit(1)
		}
		return
	}
	outside := config.DefaultRuntime()
	outside.Version = version
	os.Exit(Execute(root, outside, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// ChildMain returns the main function of a sandboxed child process with these arguments, which runs a
// script, or reads a page, a document or another bot's folder. It returns nil if the process is not a child.
func ChildMain(args []string) func(io.Reader, io.Writer) error {
	if len(args) != 2 {
		return nil
	}
	switch args[1] {
	case sandbox.ScriptArgument:
		return sandbox.ServeScript
	case pdf.ChildArgument:
		return pdf.Serve
	case readable.Argument:
		return readable.Serve
	case documents.ChildArgument:
		return documents.Serve
	case moving.ChildArgument:
		return moving.Serve
	}
	return nil
}

// Execute runs a command and returns the exit code. It prints an error as one line on standard error,
// followed by suggestions if a command or flag is mistyped. The first SIGINT or SIGTERM shuts down
// gracefully; the second ends the process at once.
func Execute(root func(Loader) *cobra.Command, o config.Runtime, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	var known *redact.Redactor
	file := ""
	command := root(func() (config.Config, error) {
		cfg, err := config.Load(file, os.Environ())
		known = cfg.Redact
		cfg.Runtime = o
		return cfg, err
	})
	command.SilenceErrors, command.SilenceUsage = true, true
	command.PersistentFlags().StringVar(&file, "config", "", "settings file (default: that of ONECLAW_CONFIG, or oneclaw.yaml in the data directory)")
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

// Loader loads the settings.
type Loader func() (config.Config, error)

// WithConfig returns a RunE function for a command that loads the settings and calls do with them.
func (load Loader) WithConfig(do func(cmd *cobra.Command, cfg config.Config, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		cfg, err := load()
		if err != nil {
			return err
		}
		return do(cmd, cfg, args)
	}
}

// ParentCommand returns a command that only has subcommands.
func ParentCommand(use, short string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
}

// GoneCommand returns a hidden command of earlier programs, which says what to do instead.
func GoneCommand(name, instead string) *cobra.Command {
	return &cobra.Command{
		Use: name, Hidden: true, DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return fmt.Errorf("%s is gone: %s", cmd.CommandPath(), instead)
		},
	}
}

// OneArgument returns an error with the usage unless there is exactly one argument.
func OneArgument(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return fmt.Errorf("want one argument: %s", cmd.UseLine())
}
