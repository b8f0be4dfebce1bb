package main

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"oneclaw/agent"
	"oneclaw/agent/openai"
	"oneclaw/bridge"
	"oneclaw/internal/workspace"
	"oneclaw/slack"
	"oneclaw/storage"
	"oneclaw/storage/bolt"
	"oneclaw/telegram"
	"oneclaw/toolgroups/browser"
	"oneclaw/toolgroups/core"
)

func checkDataDir(_ context.Context, d *doctor) *finding {
	dir := d.cfg.DataDir
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return good("%s is made at the first start", dir)
	case err != nil:
		return fail("%v: set ONECLAW_DATA_DIR to a folder of the bot", err)
	case !info.IsDir():
		return fail("%s is no folder: set ONECLAW_DATA_DIR to one", dir)
	}
	f, err := os.CreateTemp(dir, ".doctor-*")
	if err == nil {
		_, err = f.WriteString("x")
		err = errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	if err != nil {
		return fail("nothing can be written to %s: %v", dir, err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return warn("others on this machine can look into %s: chmod 700 %s", dir, dir)
	}
	return good("%s", dir)
}

// checkDisk looks whether tools can still write.
func checkDisk(_ context.Context, d *doctor) *finding {
	if _, err := os.Stat(d.cfg.DataDir); err != nil {
		return nil // Made at the first start.
	}
	spare, err := workspace.Spare(d.cfg.DataDir, d.cfg.Tools.DiskReserveMiB<<20)
	if err != nil {
		return warn("%v", err)
	}
	if spare <= 0 {
		return warn("tools cannot write files: less than the %d MiB of ONECLAW_TOOLS_DISK_RESERVE_MIB are free", d.cfg.Tools.DiskReserveMiB)
	}
	return good("%d MiB are free for files of tools", spare>>20)
}

// checkFiles looks who can read the files with secrets.
func checkFiles(_ context.Context, d *doctor) *finding {
	var open []string
	for _, name := range []string{configName, secretName, databaseName} {
		path := filepath.Join(d.cfg.DataDir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o077 != 0 {
			open = append(open, path)
		}
	}
	if len(open) > 0 {
		return warn("others on this machine can read secrets: chmod 600 %s", strings.Join(open, " "))
	}
	return good("nobody else can read the settings, the secret key and the database")
}

// checkUser warns of root: whatever gets out of a sandbox has the whole host then.
func checkUser(_ context.Context, d *doctor) *finding {
	if os.Geteuid() == 0 {
		return warn("the bot runs as root, so a fault in a sandbox gives away the whole host: run it as a user of its own, who owns %s and nothing else", d.cfg.DataDir)
	}
	return good("the bot does not run as root")
}

func checkDatabase(ctx context.Context, d *doctor) *finding {
	path := filepath.Join(d.cfg.DataDir, databaseName)
	if err := checkEmptied(path); err != nil {
		return fail("%v", err)
	}
	err := bolt.Verify(ctx, path)
	switch {
	case err == nil:
		return good("whole")
	case errors.Is(err, fs.ErrNotExist):
		return good("made at the first start")
	case errors.Is(err, storage.ErrLocked):
		d.running = true
		return good("in use by a running bot; stop it for a full check")
	case errors.Is(err, context.DeadlineExceeded):
		return warn("too large to be checked within %s", checkPatience)
	}
	return fail("%v", damagedDatabase(err))
}

func checkAccess(ctx context.Context, d *doctor) *finding {
	access := d.cfg.access()
	if slices.ContainsFunc(slices.Concat(access.Allow, access.Admins), func(entry string) bool { return strings.HasSuffix(entry, "*") }) {
		return warn("everybody on a platform may talk to the bot, at your cost: name people in ONECLAW_ALLOW and ONECLAW_ADMINS")
	}
	if !access.Empty() {
		return good("%d people or groups of people in ONECLAW_ALLOW, %d in ONECLAW_ADMINS", len(access.Allow), len(access.Admins))
	}
	if d.running {
		return good("nobody in the settings; /people shows who may talk to the bot")
	}
	owned, err := ownedIn(ctx, filepath.Join(d.cfg.DataDir, databaseName))
	switch {
	case err != nil:
		return warn("nobody in the settings, and the database does not tell more: %v", err)
	case !owned:
		return good("nobody yet: oneclaw run logs a link that makes you the owner")
	}
	return good("the bot has an owner; /people shows who else may talk to it")
}

// ownedIn reports whether a database knows an owner; without a file there is none.
func ownedIn(ctx context.Context, path string) (owned bool, err error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err := checkEmptied(path); err != nil {
		return false, err
	}
	store, err := bolt.Open(bolt.Config{Path: path})
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return bridge.Owned(ctx, store)
}

func checkTelegram(ctx context.Context, d *doctor) *finding {
	if d.cfg.Telegram.Token == "" {
		return nil
	}
	self, err := telegram.Check(ctx, d.cfg.telegram(slog.New(slog.DiscardHandler)))
	switch {
	case err != nil:
		return fail("%v", err)
	case self.Webhook:
		return warn("@%s has a webhook, which oneclaw run removes: stop what set it, or give the bot a token of its own", self.Username)
	}
	return good("@%s", self.Username)
}

func checkSlack(ctx context.Context, d *doctor) *finding {
	if d.cfg.Slack.BotToken == "" {
		return nil
	}
	app, err := slack.Check(ctx, d.cfg.slack(slog.New(slog.DiscardHandler)))
	if err != nil {
		return fail("%v", err)
	}
	if len(app.Missing) > 0 {
		missing := warn
		if slices.Contains(app.Missing, "chat:write") {
			missing = fail
		}
		return missing("@%s in %s lacks %s: add them under OAuth & Permissions of the app, then install it again", app.Name, app.Team, strings.Join(app.Missing, ", "))
	}
	return good("@%s in %s, with all scopes of the manifest", app.Name, app.Team)
}

// checkModel asks for the list of models, which costs nothing.
func checkModel(ctx context.Context, d *doctor) *finding {
	m := d.cfg.Model
	if m.APIKey == "" && m.BaseURL == defaultConfig().Model.BaseURL {
		return warn("no key: set OPENAI_API_KEY, or OPENAI_BASE_URL to a server that wants none")
	}
	models, err := openai.ListModels(ctx, openai.Config{BaseURL: m.BaseURL, APIKey: string(m.APIKey), Model: m.Name})
	var refusal *agent.ModelError
	switch {
	case err == nil:
	case errors.As(err, &refusal) && refusal.Kind == agent.KindAuth:
		return fail("the server refuses the key: check OPENAI_API_KEY: %v", err)
	case refusal != nil && refusal.Status != 0:
		return warn("the server answers and lists no models, so the rest shows in use: %v", err)
	default:
		return fail("the server can not be reached: check OPENAI_BASE_URL: %v", err)
	}
	if !slices.ContainsFunc(models, func(info openai.ModelInfo) bool { return strings.TrimPrefix(info.ID, "models/") == m.Name }) {
		return warn("%s is none of the %d models of the server: check OPENAI_MODEL", m.Name, len(models))
	}
	return good("%s", m.Name)
}

func checkBrowser(context.Context, *doctor) *finding {
	path, err := browser.Find(browser.Config{})
	if err != nil {
		return warn("pages can not be shown in a browser: %v", err)
	}
	return good("%s", path)
}

func checkExec(ctx context.Context, d *doctor) *finding {
	if d.cfg.Tools.UnsafeExec {
		return warn("ONECLAW_TOOLS_UNSAFE_EXEC lets administrators run commands without a sandbox, which can read the bot's secrets")
	}
	if err := (core.ExecConfig{Network: d.cfg.Tools.ExecNetwork}).Check(ctx); err != nil {
		return warn("commands can not be run: %v; install bubblewrap, and let it make user namespaces", err)
	}
	return good("commands run in the sandbox")
}

func checkGoogle(_ context.Context, d *doctor) *finding {
	g := d.cfg.Google
	if g.ServiceAccount != "" {
		if _, err := os.Stat(g.ServiceAccount); err != nil {
			return fail("setting google.service_account (GOOGLE_SERVICE_ACCOUNT): %v", err)
		}
	}
	switch {
	case (g.ClientID == "") != (g.ClientSecret == ""):
		return fail("set both GOOGLE_CLIENT_ID and GOOGLE_CLIENT_SECRET, or neither")
	case g.ClientID == "" && g.ServiceAccount == "":
		return good("not set up (optional): GOOGLE_CLIENT_ID and GOOGLE_CLIENT_SECRET give tools for mail, calendar and documents")
	case g.ClientID != "" && d.cfg.PublicURL == "":
		return good("set up; accounts are connected on this machine, or from anywhere with ONECLAW_PUBLIC_URL")
	}
	return good("set up")
}

func checkListen(ctx context.Context, d *doctor) *finding {
	if d.running {
		return good("%s, if that is where the running bot listens", d.cfg.Listen)
	}
	l, err := listen(ctx, d.cfg.Listen, "ONECLAW_LISTEN")
	if err != nil {
		return fail("%v", err)
	}
	_ = l.Close()
	host, _, _ := net.SplitHostPort(d.cfg.Listen)
	if ip := net.ParseIP(host); host == "" || ip != nil && !ip.IsLoopback() {
		return good("%s, open to the network", d.cfg.Listen)
	}
	return good("%s is free", d.cfg.Listen)
}

func checkCluster(_ context.Context, d *doctor) *finding {
	if d.cfg.Store == "bolt" {
		return good("one process: nothing else may use the data directory")
	}
	return warn("workspaces, skills and tools are files: every process needs the same %s, on a shared file system", d.cfg.DataDir)
}
