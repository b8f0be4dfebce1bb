package main

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"oneclaw/internal/policy"
	"oneclaw/toolgroups/search"
)

// check refuses values that can not work, and settings whose feature is not built.
func (c Config) check() error {
	if err := c.access().Validate(); err != nil {
		return fmt.Errorf("setting access (ONECLAW_ALLOW, ONECLAW_ADMINS): %w", err)
	}
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		return fmt.Errorf("setting listen (ONECLAW_LISTEN): %w", err)
	}
	if _, err := c.location(); err != nil {
		return fmt.Errorf("setting timezone (ONECLAW_TIMEZONE): %q is no time zone such as Europe/Berlin", c.Timezone)
	}
	for _, check := range []func() error{c.checkAddresses, c.checkPrivate, c.checkMemory, c.checkPlatforms, c.checkBudget, c.checkApprovals, c.checkLimits} {
		if err := check(); err != nil {
			return err
		}
	}
	if !slices.Contains([]string{"debug", "info", "warn", "error"}, c.Log.Level) {
		return fmt.Errorf("setting log.level (ONECLAW_LOG_LEVEL): %q is none of debug, info, warn, error", c.Log.Level)
	}
	if !slices.Contains([]string{"", "text", "json"}, c.Log.Format) {
		return fmt.Errorf("setting log.format (ONECLAW_LOG_FORMAT): %q is neither text nor json", c.Log.Format)
	}
	if !slices.Contains(search.Routings(), search.Routing(c.Tools.Routing)) {
		return fmt.Errorf("setting tools.routing (ONECLAW_ROUTING): %q is none of %v", c.Tools.Routing, search.Routings())
	}
	if err := c.MCP.Validate(); err != nil {
		return fmt.Errorf("setting mcp: %s", strings.ReplaceAll(err.Error(), "\n", "; ")) // one line for several faults
	}
	return c.unbuilt()
}

// checkApprovals refuses rules that can not work.
func (c Config) checkApprovals() error {
	if err := policy.Check(c.Approvals); err != nil {
		return fmt.Errorf("setting approvals: %w", err)
	}
	if c.ApprovalTimeout < 0 {
		return errors.New("setting approval_timeout (ONECLAW_APPROVAL_TIMEOUT): want a time above 0, such as 15m")
	}
	return nil
}

func (c Config) checkPrivate() error {
	_, err := c.allowPrivate()
	return err
}

// leastBrowserMiB is what the browser needs to show a plain page.
const leastBrowserMiB = 256

// checkMemory refuses bounds that leave no room, or more than a number of bytes holds.
func (c Config) checkMemory() error {
	if mib := c.Tools.BrowserMemoryMiB; mib < leastBrowserMiB || mib > 1<<40 {
		return fmt.Errorf("setting tools.browser_memory_mib (ONECLAW_TOOLS_BROWSER_MEMORY_MIB): want a number of MiB of at least %d", leastBrowserMiB)
	}
	for name, mib := range map[string]int64{
		"exec_memory_mib": c.Tools.ExecMemoryMiB, "workspace_mib": c.Tools.WorkspaceMiB, "disk_reserve_mib": c.Tools.DiskReserveMiB,
	} {
		if mib <= 0 || mib > 1<<40 {
			return fmt.Errorf("setting tools.%s (ONECLAW_TOOLS_%s): want a number of MiB above 0", name, strings.ToUpper(name))
		}
	}
	return nil
}

// checkAddresses refuses addresses of services that are none. One that is empty has to be
// so by default.
func (c Config) checkAddresses() error {
	otherwise := defaultConfig()
	for i, normal := range otherwise.settings() {
		s := c.settings()[i]
		if !strings.HasSuffix(s.variable, "_URL") || s.value.String() == "" && normal.value.String() == "" {
			continue
		}
		if u, err := url.Parse(s.value.String()); err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
			return fmt.Errorf("setting %s (%s): want an address that begins with http:// or https://", s.key, s.variable)
		}
	}
	return nil
}

// checkPlatforms refuses settings of a platform that do not fit together.
func (c Config) checkPlatforms() error {
	for _, platform := range c.all {
		if err := platform.Validate(); err != nil {
			return err
		}
	}
	return nil
}

// unbuilt refuses what is promised but does not work yet, rather than ignore it.
func (c Config) unbuilt() error {
	for _, s := range []struct {
		set  bool
		name string
		now  string
	}{
		{c.Store != "bolt", "store (ONECLAW_STORE)", "the only engine so far is bolt"},
	} {
		if s.set {
			return fmt.Errorf("setting %s: %s; remove the setting", s.name, s.now)
		}
	}
	return nil
}
