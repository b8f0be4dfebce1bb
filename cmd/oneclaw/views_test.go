package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp"

	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/telegram"
)

// TestAdminPage signs in as an administrator does and visits each view by keyboard, in light, in
// dark and on a narrow screen. What people wrote is shown to somebody who has asked for it, and
// the chat is told.
func TestAdminPage(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	ann := w.person("Ann <b>")
	w.env["ONECLAW_ADMINS"], w.env["ONECLAW_ADMIN_TEXTS"] = fmt.Sprint("telegram:", ann), "true"
	w.settings("prices:\n  " + openai.DefaultModel + ": {input: 3, cached_input: 0.3, output: 15}\n")
	bot := w.run()
	w.ask(bot, ann, "<script>document.title = 'owned'</script> how old are you?", nil)
	w.ask(bot, ann, "Remember that my sailing boat is called Marlin.", nil)
	group, say := w.team(ann, w.person("Cem"))
	say(ann, "run echo hello")
	w.shownTo(bot, group, "May I run")
	link := adminLinks.FindString(w.ask(bot, ann, "/admin", nil))
	ctx := chromium(t)
	do(t, ctx, chromedp.EmulateViewport(390, 844), chromedp.Navigate(link))
	staysInside(t, ctx, "admin-sign-in")
	do(t, ctx, chromedp.EmulateViewport(1280, 900))
	press(t, ctx, "button", "")
	onPage(t, ctx, "Overview")

	axe := axeCore(t)
	views := []string{"Overview", "Messages", "People and approvals", "Costs", "Tools and servers"}
	for _, view := range views {
		press(t, ctx, "nav.views a", view)
		onPage(t, ctx, view)
		looksRight(t, ctx, axe, view)
	}
	press(t, ctx, "nav.views a", "Overview")
	onPage(t, ctx, "Overview")
	waitFor(t, ctx, `document.querySelector(".is-good")?.innerText.replace(/\s+/g, " ") === "All is well Telegram ✓ Model ✓ Store ✓"`)
	press(t, ctx, "tbody a", "a decision about exec")
	onPage(t, ctx, "People")
	waitFor(t, ctx, `document.querySelector(":target").innerText.startsWith("Approval: exec for “Ann <b>”, in: “Team") && document.querySelector(":target pre").innerText === "echo hello\n"`)
	press(t, ctx, ":target button", "Deny")
	waitFor(t, ctx, `document.body.innerText.includes("The question was answered: Denied.")`)
	press(t, ctx, "nav.views a", "Overview")
	onPage(t, ctx, "Overview")
	press(t, ctx, "main form button", "Check everything now")
	waitFor(t, ctx, `[...document.querySelectorAll("tbody th")].some((e) => e.innerText === "data directory")`)
	press(t, ctx, "nav.views a", "People")
	onPage(t, ctx, "People")
	do(t, ctx, chromedp.Focus(chromedp.CSS("input[name=user]:not([type=hidden])")), chromedp.KeyEvent(fmt.Sprint("telegram:", w.person("Bob"))))
	press(t, ctx, "main form button", "Let in")
	waitFor(t, ctx, `document.body.innerText.includes("can do that already")`) // the settings let everybody in

	w.ask(bot, ann, "What is this document about?", samplePDF(t))
	press(t, ctx, "nav.views a", "Messages")
	onPage(t, ctx, "Messages")
	press(t, ctx, "tbody a", "")
	onPage(t, ctx, "Message of")
	looksRight(t, ctx, axe, "message")
	waitFor(t, ctx, `document.body.innerText.includes("pdf_info (done") && !document.body.innerText.includes("document about")`)
	press(t, ctx, "main form button", "Read this conversation")
	waitFor(t, ctx, `document.querySelector("blockquote")?.innerText.startsWith("What is this document about?")`)
	looksRight(t, ctx, axe, "texts")
	w.until(bot, "word that somebody reads", func(s telegram.State) bool {
		all := s.Answers(ann)
		return strings.Contains(all[len(all)-1].Text, "reads this conversation")
	})
	press(t, ctx, "header button", "Sign out")
	waitFor(t, ctx, `document.body.innerText.includes("Signed out")`)
	bot.kill(syscall.SIGTERM)
	who := fmt.Sprintf("telegram:%d Ann <b> in page: ", ann)
	w.did("sign-in: "+who+"127.0.0.1", "read: "+who+fmt.Sprintf("telegram:%d/1", ann), "sign-out: "+who+"127.0.0.1")
}

// The overview asks each part at once: a stall of long polls and sockets is only noticed after minutes.
func TestTheOverviewShowsAnOutageOfEachPartAtOnce(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	ann, token := w.person("Ann"), w.env["TELEGRAM_BOT_TOKEN"]
	workspace, _, _ := w.withSlack(t)
	w.env["TELEGRAM_BOT_TOKEN"], w.env["ONECLAW_ADMINS"] = token, fmt.Sprint("telegram:", ann)
	bot := w.run()
	v := w.visit(bot, ann, "")
	verdict := func() string {
		_, main, _ := strings.Cut(v.see("/admin/"), "<main")
		verdict, _, _ := strings.Cut(main, "</section>")
		return verdict
	}
	wantIn(t, verdict(), "All is well")
	for part, outage := range map[string]struct {
		begin  func() error
		advice string
	}{
		"Telegram": {w.telegram.Suspend, "Telegram cannot be reached: check TELEGRAM_API_URL and the network"},
		"Slack":    {workspace.Suspend, "Slack cannot be reached: check SLACK_API_URL and the network"},
		"Model":    {w.model.Close, "Model: the server cannot be reached: check OPENAI_BASE_URL"},
	} {
		if err := outage.begin(); err != nil {
			t.Fatal(err)
		}
		shown := verdict()
		wantIn(t, shown, "Something needs you", `<dt>`+part+`</dt><dd><span class="bad">✗`, outage.advice)
		if strings.Contains(shown, "dial tcp") {
			t.Errorf("the advice is an error: %s", shown)
		}
	}
}

// onPage waits until a view is there, without a script of somebody else's.
func onPage(t *testing.T, ctx context.Context, title string) {
	t.Helper()
	waitFor(t, ctx, fmt.Sprintf(`document.querySelector("h1")?.innerText.startsWith(%q) && document.title !== "owned"`, title))
}

// press walks with the tabulator to what fits a selector and has a text, and presses Enter there.
func press(t *testing.T, ctx context.Context, selector, text string) {
	t.Helper()
	there := fmt.Sprintf(`document.activeElement.matches(%q) && document.activeElement.innerText.includes(%q)`, selector, text)
	for range 80 {
		do(t, ctx, chromedp.KeyEvent("\t"))
		if ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool](there)); err != nil {
			t.Fatal(err)
		} else if ok {
			if _, err := chromedp.RunResponse(ctx, chromedp.KeyEvent("\r")); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("the tabulator does not come to %s with %q", selector, text)
}

// axeCore is the script of axe-core; empty where it is not installed, which it has to be in CI.
func axeCore(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(cmp.Or(os.Getenv("TEST_ONECLAW_AXE"), filepath.Join(cache, "oneclaw", "axe")), "node_modules", "axe-core", "axe.min.js")
	script, err := os.ReadFile(file)
	if err != nil && os.Getenv("CI") != "" {
		t.Fatalf("axe-core is not installed: run testdata/axe/install (%v)", err)
	}
	return string(script)
}

// accessible has axe-core look at a page.
func accessible(t *testing.T, ctx context.Context, axe, name, rules string) {
	t.Helper()
	if axe == "" {
		return
	}
	script := axe + `; axe.run(document, ` + rules + `).then((r) => r.violations.map((v) => v.id + ": " + v.nodes.map((n) => n.html.slice(0, 200)).join(" | ")).join("\n"))`
	wrong, err := chromedp.Run(ctx, chromedp.Evaluate[string](script, chromedp.EvalAwaitPromise))
	if err != nil || wrong != "" {
		t.Errorf("%s: axe-core finds %v\n%s", name, err, wrong)
	}
}

// looksRight has axe-core look at a page in light and in dark, and nothing stand out of a narrow
// screen.
func looksRight(t *testing.T, ctx context.Context, axe, name string) {
	t.Helper()
	name = "admin-" + strings.ReplaceAll(strings.ToLower(name), " ", "-")
	accessible(t, ctx, axe, name, `{}`)
	picture(t, ctx, name)
	scheme(t, ctx, "dark")
	accessible(t, ctx, axe, name, `{runOnly: ["color-contrast"]}`)
	picture(t, ctx, name+"-dark")
	scheme(t, ctx, "light")
	for _, width := range []int64{390, 360} {
		do(t, ctx, chromedp.EmulateViewport(width, 800))
		staysInside(t, ctx, name)
	}
	picture(t, ctx, name+"-narrow")
	do(t, ctx, chromedp.EmulateViewport(1280, 900))
}

// staysInside measures that nothing of a page has to be scrolled sideways, neither the page nor a part of it. What is
// written in lines of its own, such as a command, may be.
func staysInside(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	wide, err := chromedp.Run(ctx, chromedp.Evaluate[string](`[document.documentElement, ...document.querySelectorAll("body *:not(pre)")].filter((e) => e.scrollWidth > e.clientWidth + 1 &&
		(e === document.documentElement || ["auto", "scroll"].includes(getComputedStyle(e).overflowX)) && e.checkVisibility())
		.map((e) => [e.localName, e.className, e.ariaLabel, e.scrollWidth, "in", e.clientWidth].join(" ")).join("; ")`))
	if err != nil || wide != "" {
		t.Errorf("%s scrolls sideways: %s, %v", name, wide, err)
	}
}
