package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"oneclaw/agent"
	"oneclaw/agent/openai"
	"oneclaw/bridge/access"
	"oneclaw/internal/config"
	"oneclaw/internal/database"
	"oneclaw/internal/doctor"
	"oneclaw/internal/models"
	"oneclaw/internal/settings"
	"oneclaw/internal/wording"
	"oneclaw/internal/workspace"
	"oneclaw/storage"
	"oneclaw/storage/replicas"
	"oneclaw/toolgroups/browser"
	"oneclaw/toolgroups/jstools"
	"oneclaw/toolgroups/mcp"
)

// checkStart builds the bot as a start does, without its data and platforms, which other checks look at. A bot
// that checks itself has started.
func (d *checker) checkStart(ctx context.Context) *doctor.Finding {
	if d.running {
		return nil
	}
	if err := WithEmptyBot(ctx, d.cfg, func(*Bot) error { return nil }); err != nil {
		return doctor.Fail("oneclaw run does not start with these settings: %v", err)
	}
	return doctor.OK("all parts can be built from the settings")
}

func (d *checker) checkDataDir(_ context.Context) *doctor.Finding {
	dir := d.cfg.DataDir
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return doctor.OK("%s is made at the first start", dir)
	case err != nil:
		return doctor.Fail("%v: set ONECLAW_DATA_DIR to a folder of the bot", err)
	case !info.IsDir():
		return doctor.Fail("%s is no folder: set ONECLAW_DATA_DIR to one", dir)
	}
	f, err := os.CreateTemp(dir, ".doctor-*")
	if err == nil {
		_, err = f.WriteString("x")
		err = errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	if err != nil {
		return doctor.Fail("nothing can be written to %s: %v", dir, err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return doctor.Warn("others on this machine can look into %s: chmod 700 %s", dir, dir)
	}
	return doctor.OK("%s", dir)
}

// checkDisk checks whether there is disk space for files of tools.
func (d *checker) checkDisk(_ context.Context) *doctor.Finding {
	if _, err := os.Stat(d.cfg.DataDir); err != nil {
		return nil // created at the first start
	}
	spare, err := workspace.SpareBytes(d.cfg.DataDir, d.cfg.Tools.DiskReserveMiB<<20)
	if err != nil {
		return doctor.Warn("%v", err)
	}
	if spare <= 0 {
		return doctor.Warn("tools cannot write files: less than the %d MiB of ONECLAW_TOOLS_DISK_RESERVE_MIB are free", d.cfg.Tools.DiskReserveMiB)
	}
	return doctor.OK("%d MiB are free for files of tools", spare>>20)
}

// checkFiles checks whether other users of the machine can read files with secrets.
func (d *checker) checkFiles(_ context.Context) *doctor.Finding {
	paths, open := []string{d.cfg.SecretFile}, []string(nil)
	for _, name := range []string{config.ConfigName, database.SecretName, database.Name} {
		paths = append(paths, filepath.Join(d.cfg.DataDir, name))
	}
	for _, path := range slices.Compact(paths) {
		if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o077 != 0 {
			open = append(open, path)
		}
	}
	if len(open) > 0 {
		return doctor.Warn("others on this machine can read secrets: chmod 600 %s", strings.Join(open, " "))
	}
	return doctor.OK("nobody else can read the settings, the secret key and the database")
}

// checkUser warns if doctor, and so perhaps the bot, runs as root: code that escapes from a sandbox would
// then control the host.
func (d *checker) checkUser(_ context.Context) *doctor.Finding {
	if os.Geteuid() == 0 {
		return doctor.Warn("this is root: if the bot runs as root too, a fault in a sandbox gives away the whole host: run it as a user of its own, who owns %s and nothing else", d.cfg.DataDir)
	}
	return doctor.OK("not root")
}

func (d *checker) checkDatabase(ctx context.Context) *doctor.Finding {
	if d.cfg.Store.Shared() {
		return d.checkServer(ctx)
	}
	err := database.Verify(ctx, d.cfg.DataDir, Migrations(d.cfg))
	switch {
	case err == nil:
		return doctor.OK("whole")
	case errors.Is(err, fs.ErrNotExist):
		return doctor.OK("made at the first start")
	case errors.Is(err, storage.ErrLocked):
		d.running = true
		return doctor.OK("in use by a running bot; stop it for a full check")
	case errors.Is(err, context.DeadlineExceeded):
		return doctor.Warn("too large to be checked within %s", doctor.Timeout)
	}
	return doctor.Fail("%v", err)
}

// slowWrite is the duration of a write above which doctor warns. Each message waits for several writes.
const slowWrite = 100 * time.Millisecond

// checkServer checks a database that replicas share.
func (d *checker) checkServer(ctx context.Context) *doctor.Finding {
	h, err := database.ReadHealth(ctx, d.cfg.Place(), Migrations(d.cfg))
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return doctor.OK("%s can be reached; the tables are made at the first start", d.cfg.Place())
	case err != nil:
		return doctor.Fail("%v", err)
	}
	d.replicas = h.Replicas
	d.running = slices.ContainsFunc(h.Replicas, func(m replicas.Member) bool { return m.Host == Hostname() })
	facts := fmt.Sprintf("PostgreSQL %s, %s, format %d of %d, a write takes %s, the server's clock is %s ahead (nothing depends on that)",
		h.Version, wording.FormatSize(h.Size), h.Format, h.NewestKnown, h.WriteTime.Round(10*time.Microsecond), h.ClockAhead)
	if h.WriteTime > slowWrite {
		h.Warnings = append(h.Warnings, "writes are slow, and each message waits for a few: bring the bots nearer to the server, or give it a faster disk")
	}
	if len(h.Warnings) > 0 {
		return doctor.Warn("%s; %s", strings.Join(h.Warnings, "; "), facts)
	}
	return doctor.OK("%s", facts)
}

func (d *checker) checkAccess(ctx context.Context) *doctor.Finding {
	who := access.Access(d.cfg.Access)
	if slices.ContainsFunc(slices.Concat(who.Allow, who.Admins), func(entry string) bool { return strings.HasSuffix(entry, "*") }) {
		return doctor.Warn("everybody on a platform may talk to the bot, at your cost: name people in ONECLAW_ALLOW and ONECLAW_ADMINS")
	}
	if !who.Empty() {
		return doctor.OK("%d people or groups of people in ONECLAW_ALLOW, %d in ONECLAW_ADMINS", len(who.Allow), len(who.Admins))
	}
	if d.running && !d.cfg.Store.Shared() {
		return doctor.OK("nobody in the settings; /people shows who may talk to the bot")
	}
	owned := false
	err := database.View(ctx, d.cfg.Place(), func(store *database.Store) (err error) {
		owned, err = access.HasOwner(ctx, store)
		return err
	})
	switch {
	case err != nil:
		return doctor.Warn("nobody in the settings, and the database does not tell more: %v", err)
	case !owned:
		return doctor.OK("nobody yet: oneclaw run logs a link that makes you the owner")
	}
	return doctor.OK("the bot has an owner; /people shows who else may talk to it")
}

// checkZone warns about the time zone of a server, which nobody has chosen: reminders would come at the wrong hour.
func (d *checker) checkZone(ctx context.Context) *doctor.Finding {
	zone, known := d.cfg.Timezone, !d.running || d.cfg.Store.Shared()
	if known {
		err := database.View(ctx, d.cfg.Place(), func(store *database.Store) error {
			changing, _, err := OpenSettings(d.cfg, store, slog.New(slog.DiscardHandler))
			if err != nil {
				return err
			}
			stored, changed, err := changing.Values.GetStored(ctx, settings.SettingTimeZone)
			if changed {
				zone = stored
			}
			return err
		})
		if err != nil {
			return doctor.Warn("the database does not tell the time zone: %v", err)
		}
	}
	local, err := wording.LoadZone(zone)
	if err != nil {
		local = time.Local
	}
	now := d.cfg.Runtime.Now().In(local)
	if !known {
		return doctor.OK("%s, where it is %s, unless an administrator has set another in a chat, which the database of a running bot does not tell", cmp.Or(zone, HostZone(), now.Format("MST")), now.Format("15:04"))
	}
	if zone == "" && now.Format("MST") == "UTC" {
		return doctor.Warn("UTC, as on most servers, where it is %s now: reminders come at the wrong hour for people elsewhere. Set ONECLAW_TIMEZONE (in the file: timezone) to theirs, such as Europe/Lisbon; UTC confirms this one",
			now.Format("15:04"))
	}
	return doctor.OK("%s, where it is %s", cmp.Or(zone, HostZone(), now.Format("MST")), now.Format("15:04"))
}

// checkModel asks the server for its models, which is free of charge.
func (d *checker) checkModel(ctx context.Context) *doctor.Finding {
	m := d.cfg.Model
	if m.LacksKey() {
		return doctor.Warn("no key: set OPENAI_API_KEY, or OPENAI_BASE_URL to a server that wants none")
	}
	through := d.cfg.ModelClient()
	defer through.CloseIdleConnections()
	offered, err := openai.ListModels(ctx, openai.Config{BaseURL: m.BaseURL, APIKey: string(m.APIKey), Model: m.Name, HTTPClient: through})
	var refusal *agent.ModelError
	switch {
	case err == nil:
	case errors.As(err, &refusal) && refusal.Kind == agent.KindAuth:
		return doctor.FailError(fmt.Errorf("the server refuses the key: check OPENAI_API_KEY: %w", withSaid(err)))
	case refusal != nil && isMissingPage(refusal.Status):
		return doctor.Warn("the server answers and lists no models, so the rest shows in use: %v", withSaid(err))
	case refusal != nil && refusal.Status != 0:
		return doctor.FailError(fmt.Errorf("the server refuses requests, so no message would be answered: check OPENAI_BASE_URL, and model.headers (ONECLAW_MODEL_HEADERS) if it is a gateway: %w", withSaid(err)))
	default:
		return doctor.FailError(fmt.Errorf("the server cannot be reached: check OPENAI_BASE_URL: %w", err))
	}
	if !slices.ContainsFunc(offered, func(info openai.ModelInfo) bool { return strings.TrimPrefix(info.ID, "models/") == m.Name }) {
		return doctor.Warn("%s is none of the %d models of the server: check OPENAI_MODEL", m.Name, len(offered))
	}
	client, err := m.Client(through)
	if err != nil {
		return doctor.Fail("%v", err)
	}
	facts, err := client.CurrentFacts(ctx)
	if err != nil {
		return doctor.Warn("%s: what it can do could not be asked: %v", m.Name, err)
	}
	if advice := models.ContextAdvice(m.Name, facts); advice != "" {
		return doctor.Warn("%s", advice)
	}
	return doctor.OK("%s: %s", m.Name, models.DescribeFacts(facts))
}

// isMissingPage reports whether a status says that a server has no such page, and nothing about other pages.
func isMissingPage(status int) bool {
	return slices.Contains([]int{http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented}, status)
}

// withSaid adds to an error what the server said when it refused to list its models.
func withSaid(err error) error {
	if list, ok := errors.AsType[*openai.NoListError](err); ok && list.Said != "" {
		return fmt.Errorf("%w (it says: %s)", err, list.Said)
	}
	return err
}

func (d *checker) checkBrowser(context.Context) *doctor.Finding {
	path, err := browser.FindChromium("")
	if err != nil {
		return doctor.Warn("pages cannot be shown in a browser: %v", err)
	}
	return doctor.OK("%s", path)
}

func (d *checker) checkExec(ctx context.Context) *doctor.Finding {
	if d.cfg.Tools.Exec.UnsafeExec {
		return doctor.Warn("ONECLAW_TOOLS_UNSAFE_EXEC lets administrators run commands without a sandbox, which can read the bot's secrets")
	}
	if err := d.cfg.Tools.Exec.Check(ctx); err != nil {
		return doctor.Warn("commands cannot be run: %v; install bubblewrap, and let it make user namespaces", err)
	}
	return doctor.OK("commands run in the sandbox")
}

// checkTurns reports too few slots for background tasks.
func (d *checker) checkTurns(context.Context) *doctor.Finding {
	if d.cfg.Concurrency().MaxTurns > 1 {
		return nil
	}
	return doctor.Warn("limits.turns (ONECLAW_MAX_TURNS) is 1, so background tasks are switched off: set it to 2 or more")
}

// checkUserTools lists the user tools that are left out because of mistakes.
func (d *checker) checkUserTools(_ context.Context) *doctor.Finding {
	dir := filepath.Join(d.cfg.FilesDir(), "tools")
	if _, err := os.Stat(dir); err != nil {
		return nil // created at the first start
	}
	if mistakes := jstools.FolderErrors(dir); len(mistakes) > 0 {
		return doctor.Warn("some user tools are left out: %s", strings.ReplaceAll(errors.Join(mistakes...).Error(), "\n", "; "))
	}
	return doctor.OK("all of them can be used")
}

// checkServers starts or contacts the MCP servers of the settings, as a call of their tools does.
func (d *checker) checkServers(ctx context.Context) *doctor.Finding {
	cfg := d.cfg.MCP
	switch {
	case len(cfg.Servers) == 0:
		return nil
	case d.running: // a second process of a program could disturb the first
		return doctor.OK("the bot is running: /mcp shows the state of its servers")
	}
	var err error
	if cfg.AllowPrivate, err = d.cfg.AllowPrivate(); err != nil {
		return nil // another check says so
	}
	cfg.Resolver, cfg.Now = d.cfg.Runtime.Resolver, d.cfg.Runtime.Now
	cfg.Servers = maps.Clone(cfg.Servers)
	for name, one := range cfg.Servers {
		one.StartTimeout = min(cmp.Or(one.StartTimeout, doctor.Timeout), doctor.Timeout*3/4)
		cfg.Servers[name] = one
	}
	servers, err := mcp.New(cfg)
	if err != nil {
		return nil // so does this one
	}
	defer func() { _ = servers.Close() }()
	var good, bad []string
	for _, st := range servers.Probe(ctx) {
		if st.Problem != "" {
			bad = append(bad, st.Name+" does not work: "+st.Problem)
		} else {
			good = append(good, st.Name+" has "+st.CountTools())
		}
	}
	switch {
	case len(bad) > 0:
		return doctor.Warn("%s", strings.Join(append(bad, good...), "; "))
	case len(good) == 0:
		return doctor.OK("each person connects an account")
	}
	return doctor.OK("%s", strings.Join(good, "; "))
}

func (d *checker) checkGoogle(_ context.Context) *doctor.Finding {
	g := d.cfg.Google
	if g.ServiceAccount != "" {
		if _, err := os.Stat(g.ServiceAccount); err != nil {
			return doctor.Fail("setting google.service_account (GOOGLE_SERVICE_ACCOUNT): %v", err)
		}
	}
	switch {
	case (g.ClientID == "") != (g.ClientSecret == ""):
		return doctor.Fail("set both GOOGLE_CLIENT_ID and GOOGLE_CLIENT_SECRET, or neither")
	case g.ClientID == "" && g.ServiceAccount == "":
		return doctor.OK("not set up (optional): GOOGLE_CLIENT_ID and GOOGLE_CLIENT_SECRET give tools for mail, calendar and documents")
	case g.ClientID != "" && d.cfg.PublicURL == "":
		return doctor.OK("set up; accounts are connected on this machine, or from anywhere with ONECLAW_PUBLIC_URL")
	}
	return doctor.OK("set up")
}

// checkWebSearch tells what searches of the web ask. It asks nothing, since each search may cost.
func (d *checker) checkWebSearch(_ context.Context) *doctor.Finding {
	services, err := d.cfg.Tools.WebSearch.Services()
	if err != nil {
		return nil // the start has failed for the same reason
	}
	names := make([]string, 0, len(services))
	for _, s := range services {
		names = append(names, s.Name)
	}
	asked := strings.Join(names, ", ")
	switch {
	case len(services) == 0:
		return doctor.OK("off (ONECLAW_WEB_SEARCH)")
	case d.cfg.Tools.WebSearch.UsesOnlyOpenSources():
		return doctor.OK("asks %s, which need no key; BRAVE_API_KEY, TAVILY_API_KEY, EXA_API_KEY or SEARXNG_URL search the whole web", asked)
	}
	return doctor.OK("asks %s, in this order", asked)
}

func (d *checker) checkListen(ctx context.Context) *doctor.Finding {
	if d.running {
		return doctor.OK("%s, if that is where the running bot listens", d.cfg.Listen)
	}
	l, err := Listen(ctx, d.cfg.Listen, "ONECLAW_LISTEN")
	if err != nil {
		return doctor.Fail("%v", err)
	}
	_ = l.Close()
	host, _, _ := net.SplitHostPort(d.cfg.Listen)
	if ip := net.ParseIP(host); host == "" || ip != nil && !ip.IsLoopback() {
		return doctor.OK("%s, open to the network", d.cfg.Listen)
	}
	return doctor.OK("%s is free", d.cfg.Listen)
}

func (d *checker) checkCluster(_ context.Context) *doctor.Finding {
	if !d.cfg.Store.Shared() {
		return doctor.OK("one process: nothing else may use the data directory")
	}
	var all []string
	for _, m := range d.replicas {
		all = append(all, fmt.Sprintf("%s (%s) holds %s", m.Host, m.Version, m.Holdings()))
	}
	if len(all) == 0 {
		return doctor.OK("no bot serves the database")
	}
	return doctor.OK("%d bots: %s", len(all), strings.Join(all, "; "))
}
