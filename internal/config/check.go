package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"oneclaw/agent"
	"oneclaw/agent/openai"
	"oneclaw/bridge/access"
	"oneclaw/internal/database"
	"oneclaw/internal/models"
	"oneclaw/toolgroups/search"
)

// Check returns an error for the operator that names the first invalid setting.
func (c Config) Check() error {
	if err := access.Access(c.Access).Validate(); err != nil {
		return fmt.Errorf("setting access (ONECLAW_ALLOW, ONECLAW_ADMINS): %w", err)
	}
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		return fmt.Errorf("setting listen (ONECLAW_LISTEN): %w", err)
	}
	if _, err := c.loadLocation(); err != nil {
		return fmt.Errorf("setting timezone (ONECLAW_TIMEZONE): %q is no time zone such as Europe/Berlin", c.Timezone)
	}
	if err := c.Store.Check(); err != nil {
		return fmt.Errorf("setting store (ONECLAW_STORE): %w", err)
	}
	if err := c.Place().CheckSecret(); err != nil {
		return err
	}
	if err := database.CheckRecipients(c.BackupRecipients); err != nil {
		return fmt.Errorf("setting backup_recipients (ONECLAW_BACKUP_RECIPIENTS): %w", err)
	}
	if _, err := c.AllowPrivate(); err != nil {
		return err
	}
	for _, check := range []func() error{c.checkAddresses, c.checkNumbers, c.checkChoices, c.checkPlatforms, c.checkApprovals, c.CheckFiles, c.checkWebSearch, c.Model.Validate} {
		if err := check(); err != nil {
			return err
		}
	}
	if err := c.Prices.Check(); err != nil {
		return fmt.Errorf("setting %w", err)
	}
	if err := c.Models.ByKind.Validate(); err != nil {
		return fmt.Errorf("setting %w", err)
	}
	if err := c.MCP.Validate(); err != nil {
		return fmt.Errorf("setting mcp: %s", strings.ReplaceAll(err.Error(), "\n", "; ")) // several errors on one line
	}
	return nil
}

func (c Config) checkChoices() error {
	for _, s := range []struct {
		name, value string
		known       []string
	}{
		{"log.level (ONECLAW_LOG_LEVEL)", c.Log.Level, []string{"debug", "info", "warn", "error"}},
		{"log.format (ONECLAW_LOG_FORMAT)", c.Log.Format, []string{"", "text", "json"}},
		{"tools.routing (ONECLAW_ROUTING)", c.Tools.Routing, Routings()},
		{"google.listed (ONECLAW_GOOGLE_LISTED)", c.Google.Listed, []string{listedConfigured, ListedAlways}},
		{"model.vision (ONECLAW_MODEL_VISION)", c.Model.Vision, []string{"", "yes", "no"}},
		{"model.api (ONECLAW_MODEL_API)", c.Model.API, []string{"", openai.APIChat, openai.APIResponses, models.APIMessages}},
		{"model.effort (ONECLAW_MODEL_EFFORT)", c.Model.Effort, append(agent.Efforts(), "")},
		{"images.quality (ONECLAW_IMAGES_QUALITY)", c.Images.Quality, models.ImageQualities()},
	} {
		if !slices.Contains(s.known, s.value) {
			return fmt.Errorf("setting %s: %q is none of %q", s.name, s.value, s.known)
		}
	}
	return nil
}

// Routings returns the possible values of tools.routing.
func Routings() []string {
	var names []string
	for _, r := range search.Routings() {
		names = append(names, string(r))
	}
	return names
}

func (c Config) checkApprovals() error {
	if err := checkRules(c.Approvals); err != nil {
		return fmt.Errorf("setting approvals: %w", err)
	}
	if c.ApprovalTimeout < 0 {
		return errors.New("setting approval_timeout (ONECLAW_APPROVAL_TIMEOUT): want a time above 0, such as 15m")
	}
	return nil
}

const (
	// minBrowserMiB is the memory that the browser needs for a plain page.
	minBrowserMiB = 256
	// maxMiB keeps the number of bytes from overflowing an int64.
	maxMiB = 1 << 40
	// maxDays bounds numbers of days to a century.
	maxDays = 36_500
	// maxNumber bounds all other numbers. A higher number is certainly a mistake.
	maxNumber = 1e15
	// maxUSD bounds a budget in dollars.
	maxUSD = 1e9
)

// checkNumbers returns an error for numbers that are negative or implausibly large, or 0 for memory.
func (c Config) checkNumbers() error {
	for _, s := range c.Settings() {
		number, least, most, what := 0.0, 0.0, maxNumber, "number"
		switch {
		case s.value.CanFloat():
			number, most, what = s.value.Float(), maxUSD, "number of dollars"
		case s.value.CanInt() && !s.isDuration():
			number = float64(s.value.Int())
		case s.isDuration() && s.value.Int() < 0:
			return fmt.Errorf("setting %s (%s): want a time above 0, such as 5m", s.Key, s.variable)
		default:
			continue
		}
		if strings.HasSuffix(s.Key, "_mib") {
			least, most, what = 1, maxMiB, "number of MiB"
		}
		if strings.HasSuffix(s.Key, "_days") {
			most, what = maxDays, "number of days"
		}
		if s.Key == "audit_days" {
			least = 1
		}
		if s.Key == "tools.browser_memory_mib" {
			least = minBrowserMiB
		}
		if !(number >= least && number <= most) {
			return fmt.Errorf("setting %s (%s): want a %s of at least %.0f and at most %.0f", s.Key, s.variable, what, least, most)
		}
	}
	return nil
}

// checkAddresses returns an error for an invalid URL. Only settings that are empty by default may be
// empty.
func (c Config) checkAddresses() error {
	otherwise, present := Default(), c.Settings()
	for i, normal := range otherwise.Settings() {
		s := present[i]
		if !strings.HasSuffix(s.variable, "_URL") || s.value.String() == "" && normal.value.String() == "" {
			continue
		}
		if u, err := url.Parse(s.value.String()); err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
			return fmt.Errorf("setting %s (%s): want an address that begins with http:// or https://", s.Key, s.variable)
		}
	}
	return nil
}

func (c Config) checkPlatforms() error {
	for _, platform := range c.All {
		if err := platform.Validate(); err != nil {
			return err
		}
	}
	return nil
}
