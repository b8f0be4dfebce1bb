package app

import (
	"oneclaw/internal/config"
	"oneclaw/internal/doctor"
	"oneclaw/storage/replicas"
)

// Checks returns doctor's checks for a bot whose settings could be read.
func Checks(cfg config.Config) []doctor.Check { return (&checker{cfg: cfg}).checks() }

func (d *checker) checks() []doctor.Check {
	checks := []doctor.Check{
		{Name: "start", Run: d.checkStart},
		{Name: "data directory", Run: d.checkDataDir},
		{Name: "disk", Run: d.checkDisk},
		{Name: "files", Run: d.checkFiles},
		{Name: "user", Run: d.checkUser},
		{Name: "database", Run: d.checkDatabase},
		{Name: "access", Run: d.checkAccess},
		{Name: "time zone", Run: d.checkZone},
		{Name: "dead letters", Run: d.checkDeadLetters},
	}
	for name, platform := range d.cfg.All {
		if platform.Missing() == "" {
			checks = append(checks, doctor.Check{Name: name, Run: platform.Doctor})
		}
	}
	return append(checks, []doctor.Check{
		{Name: "model", Run: d.checkModel},
		{Name: "models in use", Run: d.checkKindModels},
		{Name: "browser", Run: d.checkBrowser},
		{Name: "exec", Run: d.checkExec},
		{Name: "turns", Run: d.checkTurns},
		{Name: "user tools", Run: d.checkUserTools},
		{Name: "mcp", Run: d.checkServers},
		{Name: "google", Run: d.checkGoogle},
		{Name: "web search", Run: d.checkWebSearch},
		{Name: "listen", Run: d.checkListen},
		{Name: "cluster", Run: d.checkCluster},
	}...)
}

// checker runs the checks, and stores what later checks need from earlier ones.
type checker struct {
	cfg config.Config
	// running is set if a running bot has the database open.
	running bool
	// replicas are the replicas that share the database.
	replicas []replicas.Member
}
