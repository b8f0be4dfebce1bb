package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"oneclaw/cmd/oneclaw/config"
	"oneclaw/internal/doctor"
	"oneclaw/internal/replicas"
)

func (d *patient) checks() []doctor.Check {
	checks := []doctor.Check{
		{Name: "data directory", Run: d.checkDataDir},
		{Name: "disk", Run: d.checkDisk},
		{Name: "files", Run: d.checkFiles},
		{Name: "user", Run: d.checkUser},
		{Name: "database", Run: d.checkDatabase},
		{Name: "access", Run: d.checkAccess},
		{Name: "set aside", Run: d.checkAside},
	}
	for name, platform := range d.cfg.All {
		if platform.Missing() == "" {
			checks = append(checks, doctor.Check{Name: name, Run: platform.Doctor})
		}
	}
	return append(checks, []doctor.Check{
		{Name: "model", Run: d.checkModel},
		{Name: "browser", Run: d.checkBrowser},
		{Name: "exec", Run: d.checkExec},
		{Name: "user tools", Run: d.checkUserTools},
		{Name: "google", Run: d.checkGoogle},
		{Name: "listen", Run: d.checkListen},
		{Name: "cluster", Run: d.checkCluster},
	}...)
}

// patient is what the checks look at, and what one has found for those behind it.
type patient struct {
	cfg config.Config
	// running is set where a bot has the database open.
	running bool
	// replicas are those that share the database.
	replicas []replicas.Member
}

func doctorCommand(load loader) *cobra.Command {
	asJSON, live, chosen := false, false, []string(nil)
	command := &cobra.Command{
		Use:   "doctor",
		Short: "Check the settings and everything the bot needs",
		Long: "Check the settings, the data directory, the database, the tokens and what the tools need, and say what to do. " +
			"Nothing is changed, and no message and no paid request is sent, unless --live asks for it: then one message of each kind " +
			"goes to the owner's chat, the model is asked twice, and a table shows what came of it. The exit code is 1 where something fails.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if live {
				return load.run(func(cmd *cobra.Command, cfg config.Config, _ []string) error { return tryLive(cmd, cfg, chosen) })(cmd, nil)
			}
			return examine(cmd.Context(), load, asJSON, cmd.OutOrStdout())
		},
	}
	command.Flags().BoolVar(&asJSON, "json", false, "print the findings as JSON")
	command.Flags().BoolVar(&live, "live", false, "send one message of each kind to the owner's chat, and ask the model twice (stop the bot first)")
	command.Flags().StringArrayVar(&chosen, "chat", nil, "with --live: send to this chat, such as telegram:123, instead of the owner's; once for each platform")
	command.MarkFlagsMutuallyExclusive("json", "live")
	return command
}

// examine checks the settings, and with settings that could be read all the rest.
func examine(ctx context.Context, load loader, asJSON bool, w io.Writer) error {
	cfg, err := load()
	if err == nil {
		err = cfg.Platforms.Check()
	}
	checks := []doctor.Check{{Name: "settings", Run: func(context.Context) *doctor.Finding {
		if err != nil {
			return doctor.Fail("%v", err)
		}
		return doctor.OK("valid; oneclaw config prints them")
	}}}
	if cfg.DataDir != "" && cfg.LogLevel != nil { // they were read
		checks = append(checks, (&patient{cfg: cfg}).checks()...)
	}
	return doctor.Examine(ctx, checks, cfg.Redact.Text, asJSON, w)
}
