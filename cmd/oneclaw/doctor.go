package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// checkPatience bounds each check of doctor.
const checkPatience = 20 * time.Second

// verdict is how a check of doctor ended.
type verdict string

const (
	verdictOK   verdict = "ok"
	verdictWarn verdict = "warn"
	verdictFail verdict = "fail"
)

// finding is what a check of doctor found, and what to do about it.
type finding struct {
	Check  string  `json:"check"`
	Status verdict `json:"status"`
	Text   string  `json:"text"`
}

func good(format string, args ...any) *finding {
	return &finding{Status: verdictOK, Text: fmt.Sprintf(format, args...)}
}

func warn(format string, args ...any) *finding {
	return &finding{Status: verdictWarn, Text: fmt.Sprintf(format, args...)}
}

func fail(format string, args ...any) *finding {
	return &finding{Status: verdictFail, Text: fmt.Sprintf(format, args...)}
}

// checkup is a check of doctor; no finding says that it does not apply.
type checkup struct {
	name string
	run  func(ctx context.Context, d *doctor) *finding
}

func checkups() []checkup {
	return []checkup{
		{"data directory", checkDataDir},
		{"files", checkFiles},
		{"database", checkDatabase},
		{"access", checkAccess},
		{"set aside", checkAside},
		{"telegram", checkTelegram},
		{"slack", checkSlack},
		{"model", checkModel},
		{"browser", checkBrowser},
		{"exec", checkExec},
		{"google", checkGoogle},
		{"listen", checkListen},
		{"cluster", checkCluster},
	}
}

// doctor is what the checks look at, and what one has found for those behind it.
type doctor struct {
	cfg Config
	// running is set where a bot has the database open.
	running bool
}

func doctorCommand(load func() (Config, error)) *cobra.Command {
	asJSON := false
	command := &cobra.Command{
		Use:   "doctor",
		Short: "Check the settings and everything the bot needs",
		Long: "Check the settings, the data directory, the database, the tokens and what the tools need, and say what to do. " +
			"Nothing is changed, and no message and no paid request is sent. The exit code is 1 where something fails.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return examine(cmd.Context(), load, asJSON, cmd.OutOrStdout())
		},
	}
	command.Flags().BoolVar(&asJSON, "json", false, "print the findings as JSON")
	return command
}

// examine prints a line for each check as it ends.
func examine(ctx context.Context, load func() (Config, error), asJSON bool, w io.Writer) error {
	all := []finding{}
	cfg, err := load()
	report := func(name string, f *finding) error {
		f.Check, f.Text = name, strings.ReplaceAll(strings.TrimSpace(cfg.redact.Text(f.Text)), "\n", "; ")
		all = append(all, *f)
		if asJSON {
			return nil
		}
		_, err := fmt.Fprintf(w, "%-4s  %-14s  %s\n", f.Status, f.Check, f.Text)
		return err
	}
	if err == nil {
		err = cfg.checkPlatforms()
	}
	settings := good("valid; oneclaw config prints them")
	if err != nil {
		settings = fail("%v", err)
	}
	failed := report("settings", settings)
	if cfg.DataDir != "" && cfg.logLevel != nil { // they were read
		d := &doctor{cfg: cfg}
		for _, c := range checkups() {
			if ctx.Err() != nil || failed != nil {
				break
			}
			limited, cancel := context.WithTimeout(ctx, checkPatience)
			if f := c.run(limited, d); f != nil {
				failed = report(c.name, f)
			}
			cancel()
		}
	}
	if asJSON && failed == nil {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		failed = encoder.Encode(all)
	}
	return errors.Join(failed, ctx.Err(), verdictOf(all))
}

// verdictOf is the error of what failed.
func verdictOf(all []finding) error {
	var names []string
	for _, f := range all {
		if f.Status == verdictFail {
			names = append(names, f.Check)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("not in order: %s", strings.Join(names, ", "))
}
