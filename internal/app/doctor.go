package app

import (
	"oneclaw/internal/config"
	"oneclaw/internal/doctor"
	"oneclaw/storage/replicas"
)

// Checks returns doctor's checks for readable settings.
func Checks(cfg config.Config) []doctor.Check { return (&patient{cfg: cfg}).checks() }

func (d *patient) checks() []doctor.Check {
	checks := []doctor.Check{
		{Name: "data directory", Run: d.checkDataDir},
		{Name: "disk", Run: d.checkDisk},
		{Name: "files", Run: d.checkFiles},
		{Name: "user", Run: d.checkUser},
		{Name: "database", Run: d.checkDatabase},
		{Name: "access", Run: d.checkAccess},
		{Name: "set aside", Run: d.checkDeadLetters},
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

// patient is the subject of the checks, and what earlier checks have found.
type patient struct {
	cfg config.Config
	// running is set if a bot has the database open.
	running bool
	// replicas are the replicas that share the database.
	replicas []replicas.Member
}
