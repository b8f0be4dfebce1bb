package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"oneclaw/internal/emulator/openai"
)

// browse opens a page in headless Chromium. Where there is none the test is skipped,
// but not in CI.
func browse(t *testing.T, address string) context.Context {
	t.Helper()
	ctx := chromium(t)
	do(t, ctx, chromedp.EmulateViewport(1440, 1000), chromedp.Navigate(address))
	waitFor(t, ctx, `document.body.dataset.ready === "yes"`)
	return ctx
}

func chromium(t *testing.T) context.Context {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		if os.Getenv("CI") != "" {
			t.Fatal("Chromium is not installed: in CI the page must be tested")
		}
		t.Skip("Chromium is not installed: the page is not tested")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true), chromedp.Flag("no-first-run", true))
	ctx, err := startChromium(t, options)
	if err != nil { // on a busy machine it sometimes ends while it starts, which says nothing about the page
		t.Logf("Chromium did not start, once more: %v", err)
		ctx, err = startChromium(t, options)
	}
	if err != nil {
		t.Fatal(err)
	}
	return ctx
}

func startChromium(t *testing.T, options []chromedp.ExecAllocatorOption) (context.Context, error) {
	t.Helper()
	allocator, cancel := chromedp.NewExecAllocator(t.Context(), append(options, chromedp.UserDataDir(t.TempDir()))...)
	t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	t.Cleanup(func() { _ = chromedp.Cancel(ctx) })
	return ctx, chromedp.Do(ctx)
}

func do(t *testing.T, ctx context.Context, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(ctx, actions...); err != nil {
		t.Fatal(err)
	}
}

// waitFor waits until an expression of the page is true, or of the page that takes its place
// meanwhile.
func waitFor(t *testing.T, ctx context.Context, expression string) {
	t.Helper()
	_, err := chromedp.Run(ctx, chromedp.Poll[bool](expression, chromedp.WithPollingTimeout(patience)))
	for n := 0; n < 10 && err != nil && strings.Contains(err.Error(), "Cannot find context"); n++ {
		_, err = chromedp.Run(ctx, chromedp.Poll[bool](expression, chromedp.WithPollingTimeout(patience)))
	}
	if err != nil {
		// The ends of the chats say most, and a long page is cut where CI prints it.
		shown, _ := chromedp.Run(ctx, chromedp.Evaluate[string](`[document.body, ...document.querySelectorAll(".log, .problem, .staged")]
			.map((e) => e.innerText.slice(-1000)).join("\n----\n")`))
		t.Fatalf("waiting for %s: %v; the page shows:\n%s", expression, err, shown)
	}
}

// inside is the selector of where a person goes on in a pane: in Slack the thread that is open, if there is one.
func inside(pane string) string {
	return fmt.Sprintf(`:is(#%[1]s-thread:not([hidden]), #%[1]s:not(:has(> .side:not([hidden]))))`, pane)
}

// says waits until the newest message in a pane is the bot's and has a text in it.
func says(t *testing.T, ctx context.Context, pane, text string) {
	t.Helper()
	waitFor(t, ctx, fmt.Sprintf(`(() => { const all = document.querySelectorAll("#%s .msg"); const m = all[all.length - 1];
		return !!m && !m.classList.contains("mine") && m.innerText.toLowerCase().includes(%q) })()`, pane, strings.ToLower(text)))
}

// picture saves what the page looks like, where TEST_ONECLAW_SCREENSHOTS names a
// folder: docs/demo.png is made that way.
func picture(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	dir := os.Getenv("TEST_ONECLAW_SCREENSHOTS")
	if dir == "" {
		return
	}
	data, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func scheme(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	do(t, ctx, func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}},
		})
		return chromedp.Void{}, err
	})
}

func startDemo(t *testing.T, env ...string) string {
	t.Helper()
	settings := map[string]string{"ONECLAW_LOG_LEVEL": "warn"}
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		settings[name] = value
	}
	p := startCommand(t, labCommand(context.Background(), t, settings, "demo", "--addr", "127.0.0.1:0"))
	p.out.await(t, "Ctrl-C")
	_, rest, _ := strings.Cut(p.out.String(), "http://")
	return "http://" + strings.Fields(rest)[0]
}

// TestDemoPage has the conversation of the README on both panes, as a person at the
// page would: the sample PDF, a follow-up, the restart, /clear.
func TestDemoPage(t *testing.T) {
	t.Parallel()
	ctx := browse(t, startDemo(t))
	said := map[string]int{}
	idea := func(pane, text string) {
		said[pane]++
		suggest(t, ctx, pane, text, said[pane])
	}
	for _, pane := range []string{"telegram", "slack"} {
		idea(pane, "Send the PDF: What is this document about?")
		says(t, ctx, pane, "bakery")
		waitFor(t, ctx, fmt.Sprintf(`document.querySelector("#%s .chip")?.innerText === "pdf"`, pane))
		idea(pane, "How many pages does the PDF have?")
		says(t, ctx, pane, "3 pages")
	}
	picture(t, ctx, "demo")
	for _, pane := range []string{"telegram", "slack"} {
		said[pane] += points(t, ctx, pane)
	}
	scheme(t, ctx, "dark")
	picture(t, ctx, "demo-dark")
	scheme(t, ctx, "light")

	do(t, ctx, chromedp.Evaluate[chromedp.Void](`(() => { window.states = []; const bot = document.getElementById("bot");
		new MutationObserver(() => states.push(bot.textContent)).observe(bot, { childList: true, characterData: true, subtree: true }); })()`))
	do(t, ctx, chromedp.Click(chromedp.CSS("#restart")))
	waitFor(t, ctx, `states.some((s) => s.includes("stopped"))`) // for a second and a half
	idea("telegram", "What does page 2 of the PDF say?")
	idea("slack", "What does page 2 of the PDF say?")
	waitFor(t, ctx, `document.getElementById("bot").innerText.includes("running")`)
	for _, pane := range []string{"telegram", "slack"} {
		says(t, ctx, pane, "October")
		// The group survived: the last call was sent its tools, and none loaded it again.
		waitFor(t, ctx, fmt.Sprintf(`document.querySelector("#%s .chip")?.innerText === "pdf"`, pane))
		idea(pane, map[string]string{"telegram": "/clear", "slack": "!clear"}[pane])
		says(t, ctx, pane, "cleared")
		waitFor(t, ctx, fmt.Sprintf(`document.querySelector("#%s .groups").innerText.includes("no tool group yet")`, pane))
	}

	do(t, ctx, chromedp.EmulateViewport(390, 844))
	staysInside(t, ctx, "demo")
	picture(t, ctx, "demo-narrow")
}

// points sends an album, a recording, and by the keyboard an answer to a message, and looks at
// what the model was given. It returns how many messages that makes.
func points(t *testing.T, ctx context.Context, pane string) int {
	t.Helper()
	choose := func(files string) {
		t.Helper()
		do(t, ctx, chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`(() => { const input = document.querySelector("%s .files"), all = new DataTransfer();
			for (const f of [%s]) all.items.add(f);
			input.files = all.files; input.dispatchEvent(new Event("change")); })()`, inside(pane), files)))
		waitFor(t, ctx, fmt.Sprintf(`!document.querySelector("%s .staged").hidden`, inside(pane)))
	}
	send := func(text string) {
		t.Helper()
		do(t, ctx, chromedp.Focus(chromedp.CSS(inside(pane)+" textarea")), chromedp.KeyEvent(text), chromedp.KeyEvent("\r"))
		waitFor(t, ctx, fmt.Sprintf(`document.querySelector("%s .staged").hidden && [...document.querySelectorAll("%[1]s .mine")].slice(-2).some((m) => m.innerText.includes(%[2]q))`, inside(pane), text))
	}
	// unfold opens what is under the newest answer, and waits for words in it.
	unfold := func(words ...string) {
		t.Helper()
		for _, text := range words {
			waitFor(t, ctx, fmt.Sprintf(`(() => { const fold = [...document.querySelectorAll("#%s details")].at(-1);
				fold.open = true; return fold.innerText.includes(%q); })()`, pane, text))
		}
	}
	const png = `Uint8Array.from(atob("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="), (c) => c.charCodeAt(0))`
	choose(`new File([` + png + `], "red.png", { type: "image/png" }), new File([` + png + `], "blue.png", { type: "image/png" })`)
	send("two pictures")
	says(t, ctx, pane, "look into PDFs and office files only")
	unfold("two pictures", "🖼")
	choose(`new File(["OggS and a sound"], "voice.ogg", { type: "audio/ogg" })`)
	send("")
	// What was spoken is answered in text, and then spoken as well.
	waitFor(t, ctx, fmt.Sprintf(`(() => { const m = [...document.querySelectorAll("#%s .msg")].at(-1); return !m.classList.contains("mine") && m.querySelector("audio") !== null })()`, pane))
	unfold("cannot be heard", "as a machine wrote it down")
	staged := fmt.Sprintf(`document.querySelector("%s .staged").innerText.includes("3 pages")`, inside(pane))
	for range 10 { // the message may be shown anew between the focus and the key
		do(t, ctx, chromedp.Focus(fmt.Sprintf(`(//section[@id=%q]//button[@class="reply" and contains(@aria-label, "3 pages")])[last()]`, pane)), chromedp.KeyEvent("\r"))
		if there, _ := chromedp.Run(ctx, chromedp.Poll[bool](staged, chromedp.WithPollingTimeout(patience/10))); there {
			break
		}
	}
	waitFor(t, ctx, staged)
	send("hello again")
	says(t, ctx, pane, "") // it is the bot's turn no more
	unfold("hello again", "3 pages")
	waitFor(t, ctx, fmt.Sprintf(`[...document.querySelectorAll("#%s .given")].at(-1).querySelector(".quoted") !== null`, pane))
	picture(t, ctx, "demo-given-"+pane)
	if pane == "telegram" {
		return 4 // each item of an album is a message
	}
	return 3
}

// TestDemoPageRouting changes the way by which tools reach the model, by the keyboard, and
// reads it under the bars of the requests that follow.
func TestDemoPageRouting(t *testing.T) {
	t.Parallel()
	ctx := browse(t, startDemo(t))
	waitFor(t, ctx, `[...document.querySelectorAll("#routing option")].map((o) => o.value).join() === "groups,search,all,auto"`)
	said := 0
	for i, mode := range []string{"groups", "search", "all"} {
		if i > 0 {
			do(t, ctx, chromedp.Focus(chromedp.CSS("#routing")), chromedp.KeyEvent(mode[:1]))
			waitFor(t, ctx, fmt.Sprintf(`document.getElementById("routing").dataset.now === %q`, mode))
		}
		said++
		suggest(t, ctx, "telegram", "/clear", said)
		says(t, ctx, "telegram", "cleared")
		said++
		suggest(t, ctx, "telegram", "Send the PDF: What is this document about?", said)
		says(t, ctx, "telegram", "bakery")
		waitFor(t, ctx, fmt.Sprintf(`[...document.querySelectorAll("#telegram .mode")].at(-1)?.innerText === %q`, mode))
	}
	waitFor(t, ctx, `[...document.querySelectorAll("#telegram .mode")].map((m) => m.innerText).join() === "groups,search,all"`)
	// Every bar is as high as the tools that its request carried, so that of "all" is the highest.
	waitFor(t, ctx, `(() => { const h = [...document.querySelectorAll("#telegram .run")].map((r) => [...r.querySelectorAll("i")].map((i) => parseFloat(i.style.height)));
		return h[0][0] < h[0].at(-1) && Math.min(...h[2]) > Math.max(...h[0], ...h[1]); })()`)
	picture(t, ctx, "demo-routing")
	do(t, ctx, chromedp.EmulateViewport(390, 844))
	staysInside(t, ctx, "demo-routing")
	picture(t, ctx, "demo-routing-narrow")
}

// TestDemoPageApproval asks for a command in both panes: the card's buttons are there, are
// reached by the keyboard, and decide.
func TestDemoPageApproval(t *testing.T) {
	t.Parallel()
	ctx := browse(t, startDemo(t))
	for _, pane := range []string{"telegram", "slack"} {
		press := func(label string) {
			t.Helper()
			waitFor(t, ctx, fmt.Sprintf(`[...document.querySelectorAll("#%s .buttons button")].some((b) => b.innerText === %q)`, pane, label))
			do(t, ctx, chromedp.Focus(fmt.Sprintf(`//section[@id=%q]//*[@class="buttons"]//button[.=%q]`, pane, label)), chromedp.KeyEvent("\r"))
			// A card that is decided has no buttons any more.
			waitFor(t, ctx, fmt.Sprintf(`document.querySelectorAll("#%s .buttons").length === 0`, pane))
		}
		suggest(t, ctx, pane, "Run echo hello", 1)
		says(t, ctx, pane, "May I run")
		picture(t, ctx, "demo-approval-"+pane)
		press("Deny")
		says(t, ctx, pane, "OK, I did not run it")
		suggest(t, ctx, pane, "Run echo hello", 2)
		says(t, ctx, pane, "May I run")
		press("Allow once")
		says(t, ctx, pane, "I ran echo hello")
		suggest(t, ctx, pane, "Run echo hello", 3)
		says(t, ctx, pane, "also lets me run exactly this command again")
		picture(t, ctx, "demo-lasting-"+pane)
		press(map[string]string{"telegram": lastsLabel, "slack": lastsLabelS}[pane])
		says(t, ctx, pane, "I ran echo hello")
		suggest(t, ctx, pane, "Run echo hello", 4)
		says(t, ctx, pane, "I ran echo hello")
		waitFor(t, ctx, fmt.Sprintf(`[...document.querySelectorAll("#%s .msg")].filter((m) => m.innerText.includes("May I run")).length === 3`, pane))
		// Whatever is in a message, nothing is cut off at the side.
		waitFor(t, ctx, fmt.Sprintf(`document.getElementById(%q).scrollWidth <= document.getElementById(%q).clientWidth`, pane, pane))
	}
	picture(t, ctx, "demo-approved")
}

// TestDemoPageBackground starts tasks in both panes: one ends with its result, and one is cancelled.
func TestDemoPageBackground(t *testing.T) {
	t.Parallel()
	free := make(chan struct{})
	held := func(ctx context.Context, req openai.Request) (openai.Reply, error) {
		said := strings.ToLower(req.Messages[len(req.Messages)-1].Content)
		if strings.HasSuffix(said, "what time is it in tokyo?") && !strings.Contains(said, "in the background") {
			select {
			case <-free:
			case <-ctx.Done():
			}
		}
		return openai.Offline{}.Reply(ctx, req)
	}
	_, address := startModel(t, openai.Config{Responder: openai.ResponderFunc(held), MaxTools: 1000})
	ctx := browse(t, startDemo(t, "OPENAI_BASE_URL="+address, "OPENAI_API_KEY=sk-emulated", "OPENAI_MODEL="+openai.DefaultModel))
	for _, pane := range []string{"telegram", "slack"} {
		has := func(text string, times int) {
			t.Helper()
			waitFor(t, ctx, fmt.Sprintf(`[...document.querySelectorAll("#%s .msg")].filter((m) => m.innerText.includes(%q)).length === %d`, pane, text, times))
		}
		cancel := fmt.Sprintf(`//section[@id=%q]//*[@class="buttons"]//button[.="Cancel"]`, pane)
		ask := func(times int) {
			t.Helper()
			do(t, ctx, chromedp.Focus(chromedp.CSS(inside(pane)+" textarea")), chromedp.KeyEvent("In the background, what time is it in Tokyo?\r"))
			has("the result comes here", times)
			waitFor(t, ctx, fmt.Sprintf(`[...document.querySelectorAll("#%s .buttons button")].some((b) => b.innerText === "Cancel")`, pane))
		}
		ask(1)
		picture(t, ctx, "demo-background-"+pane)
		do(t, ctx, chromedp.Click(cancel))
		has("was cancelled", 1)
		ask(2)
		free <- struct{}{}
		has("From the background", 1)
		has("is done after", 1)
		waitFor(t, ctx, fmt.Sprintf(`document.querySelectorAll("#%s .buttons").length === 0`, pane))
	}
}

// TestDemoPageInTheMaking looks at answers while they are made: a slow command on Telegram, with
// its card and the button that stops it, and in Slack's chat with the app, where an answer
// streams, with the cards of what is done, Slack's own button, prompts and the Home tab.
func TestDemoPageInTheMaking(t *testing.T) {
	t.Parallel()
	// The answers grow, and the commands run, longer than a busy machine takes to look at them.
	_, address := startModel(t, openai.Config{Responder: openai.ResponderFunc(patiently), DeltaDelay: 400 * time.Millisecond, MaxTools: 1000})
	ctx := browse(t, startDemo(t, "ONECLAW_PREVIEWS=true", "OPENAI_BASE_URL="+address, "OPENAI_API_KEY=sk-emulated", "OPENAI_MODEL="+openai.DefaultModel))
	looks := func(name string) {
		t.Helper()
		for _, s := range []string{"light", "dark"} {
			scheme(t, ctx, s)
			picture(t, ctx, "making-"+name+"-"+s)
		}
		do(t, ctx, chromedp.EmulateViewport(390, 844))
		for _, pane := range []string{"telegram", "slack"} {
			do(t, ctx, chromedp.Click(chromedp.CSS(fmt.Sprintf(`.which button[value="%s"]`, pane))))
			staysInside(t, ctx, "making-"+name+"-"+pane)
			picture(t, ctx, "making-"+name+"-narrow-"+pane)
		}
		do(t, ctx, chromedp.EmulateViewport(1440, 1000))
		scheme(t, ctx, "light")
	}
	has := func(pane, what string) {
		t.Helper()
		waitFor(t, ctx, fmt.Sprintf(`!!document.querySelector("#%s %s")`, pane, what))
	}
	write := func(pane, text string) {
		t.Helper()
		do(t, ctx, chromedp.Focus(chromedp.CSS(inside(pane)+" textarea")), chromedp.KeyEvent(text))
	}
	send := func(pane string) {
		t.Helper()
		do(t, ctx, chromedp.Focus(chromedp.CSS(inside(pane)+" textarea")), chromedp.KeyEvent("\r"))
	}
	tab := func(place string) {
		t.Helper()
		do(t, ctx, chromedp.Click(chromedp.CSS(fmt.Sprintf(`#slack .tabs button[value="%s"]`, place))))
	}
	tab("home")
	waitFor(t, ctx, `document.querySelector("#slack .home").innerText.includes("Usage and budget")`)
	looks("home")
	tab("direct")
	waitFor(t, ctx, `document.querySelectorAll("#slack .offered button").length > 0`)
	write("slack", "Run sleep 110 && echo done")
	send("slack")
	suggest(t, ctx, "telegram", "Run sleep 5 && echo done", 1)
	for _, pane := range []string{"telegram", "slack"} {
		says(t, ctx, pane, "May I run")
		do(t, ctx, chromedp.Click(fmt.Sprintf(`//section[@id=%q]//*[@class="buttons"]//button[.="Allow once"]`, pane)))
	}
	has("slack", ".tasks li:not(.done)")
	waitFor(t, ctx, `!document.querySelector("#slack-thread .halt").hidden`)
	looks("middle")
	do(t, ctx, chromedp.Click(chromedp.CSS("#slack-thread .halt")))
	says(t, ctx, "slack", "stopped")
	waitFor(t, ctx, `document.querySelector("#slack-thread .halt").hidden`)
	says(t, ctx, "telegram", "I ran sleep 5")
	looks("end")
	for _, pane := range []string{"telegram", "slack"} {
		write(pane, "list your tool groups")
	}
	send("telegram")
	send("slack")
	says(t, ctx, "slack", "I am OneClaw")
	waitFor(t, ctx, `!document.querySelector("#slack-thread .halt").hidden`)
	says(t, ctx, "telegram", "⏹ Stop")
	looks("growing")
	says(t, ctx, "telegram", "google_tasks")
	says(t, ctx, "slack", "google_tasks")
	waitFor(t, ctx, `document.querySelector("#slack-thread .halt").hidden && document.querySelectorAll("#telegram .buttons").length === 0`)
	looks("grown")
}

// patiently answers as the model of the demo, and gives commands all the time there is.
func patiently(ctx context.Context, req openai.Request) (openai.Reply, error) {
	reply, err := openai.Offline{}.Reply(ctx, req)
	for i, call := range reply.Calls {
		if call.Name == "exec" {
			reply.Calls[i].Arguments = strings.TrimSuffix(call.Arguments, "}") + `,"timeout_seconds":120}`
		}
	}
	return reply, err
}

// TestDemoPageByKeyboard reaches the message box and the chart with two Tabs, however long the
// conversation is, writes and sends without a mouse, and takes the tour.
func TestDemoPageByKeyboard(t *testing.T) {
	t.Parallel()
	ctx := browse(t, startDemo(t))
	for range 3 {
		do(t, ctx, chromedp.Focus(chromedp.CSS("#telegram textarea")), chromedp.KeyEvent("hello"), chromedp.KeyEvent("\r"))
		says(t, ctx, "telegram", "the real one")
	}
	do(t, ctx, chromedp.Reload())
	waitFor(t, ctx, `document.body.dataset.ready === "yes" && [...document.querySelectorAll("#telegram .mine")].filter((m) => m.innerText.includes("hello")).length === 3`)
	var reached []string
	for range 3 {
		at, err := chromedp.Run(ctx, chromedp.Evaluate[string](`document.activeElement?.className || document.activeElement?.localName || ""`))
		if err != nil {
			t.Fatal(err)
		}
		reached = append(reached, at)
		do(t, ctx, chromedp.KeyEvent("\t"))
	}
	if !slices.Contains(reached, "textarea") || !slices.Contains(reached, "chart") {
		t.Errorf("two Tabs reach %q", reached)
	}
	waitFor(t, ctx, `[...document.querySelectorAll("button, summary, textarea, select, [role=log], [role=img]")].every((e) =>
		(e.ariaLabel || e.innerText || e.textContent || e.labels?.[0]?.innerText || "").trim() !== "")`)
	do(t, ctx, chromedp.Focus(chromedp.CSS("#tour")), chromedp.KeyEvent("\r"))
	for n := 1; n <= 5; n++ {
		waitFor(t, ctx, fmt.Sprintf(`document.getElementById("guide").innerText.includes("%d of 5")`, n))
		picture(t, ctx, fmt.Sprintf("demo-tour-%d", n))
		do(t, ctx, chromedp.Focus(chromedp.CSS("#guide .next")), chromedp.KeyEvent("\r"))
	}
	waitFor(t, ctx, `document.getElementById("guide").hidden && document.activeElement.id === "tour"`)
	do(t, ctx, chromedp.KeyEvent("\r"))
	waitFor(t, ctx, `!document.getElementById("guide").hidden`)
	do(t, ctx, chromedp.KeyEvent("\x1b"))
	waitFor(t, ctx, `document.getElementById("guide").hidden`)
}

// TestDemoPageFirstScreen measures both sizes: the message box and the chart are in sight, the
// conversation has half of the screen, the message box half of its row.
func TestDemoPageFirstScreen(t *testing.T) {
	t.Parallel()
	ctx := browse(t, startDemo(t))
	suggest(t, ctx, "telegram", "Add milk and eggs to my shopping list", 1)
	says(t, ctx, "telegram", "milk, eggs")
	for _, size := range []struct{ width, height int64 }{{1280, 720}, {390, 844}} {
		do(t, ctx, chromedp.EmulateViewport(size.width, size.height))
		waitFor(t, ctx, `innerWidth === `+fmt.Sprint(size.width))
		for _, part := range []string{"textarea", ".chart", ".groups"} {
			waitFor(t, ctx, fmt.Sprintf(`(() => { const r = document.querySelector("#telegram %s").getBoundingClientRect();
				return r.height > 0 && r.top >= 0 && r.bottom <= innerHeight && r.left >= 0 && r.right <= innerWidth; })()`, part))
		}
		waitFor(t, ctx, `document.querySelector("#telegram .log").getBoundingClientRect().height >= innerHeight / 2`)
		waitFor(t, ctx, `(() => { const pane = document.getElementById("telegram");
			return pane.querySelector("textarea").getBoundingClientRect().width >= pane.getBoundingClientRect().width / 2; })()`)
		staysInside(t, ctx, "demo-first")
		picture(t, ctx, fmt.Sprintf("demo-first-%d", size.width))
	}
}

// TestDemoPageInvites looks at the two empty chats: each has six or eight suggestions in two columns, grouped by what
// they show, all in sight, and one sentence about the bars. Then each chat looks as in its app.
func TestDemoPageInvites(t *testing.T) {
	t.Parallel()
	ctx := browse(t, startDemo(t))
	do(t, ctx, chromedp.Evaluate[chromedp.Void](`(() => { window.wrong = [];
		for (const kind of ["error", "unhandledrejection"]) addEventListener(kind, (e) => wrong.push(e.message ?? String(e.reason))); })()`))
	for _, size := range []struct{ width, height int64 }{{1280, 720}, {390, 844}} {
		do(t, ctx, chromedp.EmulateViewport(size.width, size.height))
		for _, pane := range []string{"telegram", "slack"} {
			do(t, ctx, chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`document.querySelector('.which button[value="%s"]').click()`, pane)))
			waitFor(t, ctx, fmt.Sprintf(`(() => { const pane = document.getElementById(%q);
				const groups = [...pane.querySelectorAll(".ideas .grid > div")].filter((g) => g.checkVisibility());
				const all = groups.flatMap((g) => [...g.querySelectorAll("button")].filter((b) => b.checkVisibility()));
				const places = all.map((b) => b.getBoundingClientRect());
				return [6, 8].includes(all.length) && groups.every((g) => g.querySelector("h3").innerText !== "") &&
					new Set(places.map((p) => p.left)).size === 2 && places.every((p) => p.top >= 0 && p.bottom <= pane.querySelector("textarea").getBoundingClientRect().top) &&
					pane.querySelector("figcaption").innerText.startsWith("Each bar is one call of the model") && document.documentElement.scrollWidth <= innerWidth; })()`, pane))
			staysInside(t, ctx, "demo-invites-"+pane)
			picture(t, ctx, fmt.Sprintf("demo-invites-%s-%d", pane, size.width))
		}
	}
	do(t, ctx, chromedp.EmulateViewport(1280, 720))
	axe := axeCore(t)
	looks := func(name string) {
		t.Helper()
		for _, s := range []string{"dark", "light"} {
			scheme(t, ctx, s)
			accessible(t, ctx, axe, name+" "+s, `{}`)
		}
	}
	looks("empty chats")
	for _, pane := range []string{"telegram", "slack"} {
		suggest(t, ctx, pane, "Run echo hello", 1)
		says(t, ctx, pane, "May I run")
		waitFor(t, ctx, fmt.Sprintf(`!document.querySelector("#%s .ideas").open`, pane))
	}
	looks("cards")
	waitFor(t, ctx, `document.querySelector("#telegram .mine .ticks").innerText === "✓✓"`)
	waitFor(t, ctx, `document.querySelector("#telegram .buttons").getBoundingClientRect().top >= [...document.querySelectorAll("#telegram .body")].at(-1).getBoundingClientRect().bottom`)
	waitFor(t, ctx, `[...document.querySelectorAll("#slack .msg")].every((m) => m.querySelector(".face") && m.querySelector(".who b").innerText && m.querySelector(".who .time").innerText)`)
	// What one can do with a message is there when one comes to it.
	point := func(pane string) {
		t.Helper()
		waitFor(t, ctx, fmt.Sprintf(`[...document.querySelectorAll("#%s .reply")].every((b) => getComputedStyle(b).opacity === "0")`, pane))
		do(t, ctx, chromedp.Focus(chromedp.CSS("#"+pane+" .reply")))
		waitFor(t, ctx, fmt.Sprintf(`getComputedStyle(document.querySelector("#%s .reply")).opacity === "1"`, pane))
	}
	do(t, ctx, chromedp.Click(chromedp.CSS("h1")), chromedp.KeyEvent("\t")) // away from the messages, and on by the keyboard
	point("telegram")
	point("slack")
	// The channel shows how its threads begin, and each leads to its thread: beside the channel, or in its place.
	for _, size := range []struct {
		width, height int64
		beside        bool
	}{{1440, 900, true}, {1280, 720, true}, {1000, 720, false}, {390, 844, false}} {
		do(t, ctx, chromedp.EmulateViewport(size.width, size.height))
		do(t, ctx, chromedp.Evaluate[chromedp.Void](`document.querySelector('.which button[value="slack"]').click()`))
		waitFor(t, ctx, fmt.Sprintf(`(() => { const thread = document.getElementById("slack-thread").getBoundingClientRect(), log = document.querySelector("#slack > .log"), pane = document.getElementById("slack").getBoundingClientRect();
			return document.documentElement.scrollWidth <= innerWidth && thread.right <= pane.right && log.checkVisibility() === %[1]t &&
				(%[1]t ? log.getBoundingClientRect().right <= thread.left + 1 && log.getBoundingClientRect().width >= 280 : thread.width >= pane.width - 3); })()`, size.beside))
		for _, s := range []string{"dark", "light"} {
			scheme(t, ctx, s)
			staysInside(t, ctx, "demo-thread")
			picture(t, ctx, fmt.Sprintf("demo-thread-%d-%s", size.width, s))
		}
		do(t, ctx, chromedp.Click(chromedp.CSS("#slack-thread .back")))
		waitFor(t, ctx, `!document.getElementById("slack-thread").checkVisibility() && document.querySelectorAll("#slack > .log .msg").length === 1 && document.querySelector("#slack .thread").innerText === "1 reply"`)
		do(t, ctx, chromedp.Click(chromedp.CSS("#slack .thread")))
		waitFor(t, ctx, `document.getElementById("slack-thread").checkVisibility() && document.querySelectorAll("#slack-thread .msg").length === 2`)
		says(t, ctx, "slack", "May I run")
	}
	if wrong, err := chromedp.Run(ctx, chromedp.Evaluate[string](`wrong.join("; ")`)); wrong != "" || err != nil {
		t.Errorf("the scripts of the page fail: %s, %v", wrong, err)
	}
}

// TestDemoAnswersOnlyItself sends what a foreign page would.
func TestDemoAnswersOnlyItself(t *testing.T) {
	t.Parallel()
	address := startDemo(t)
	for _, c := range []struct{ name, flag, header string }{
		{"foreign host", "Host: evil.example", ""},
		{"foreign origin", "Origin: https://evil.example", "Sec-Fetch-Site: cross-site"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		status := request(ctx, t, address+"/restart", c.flag, c.header)
		cancel()
		if status != 403 {
			t.Errorf("%s: %d, want 403", c.name, status)
		}
	}
	if out, err := labCommand(t.Context(), t, nil, "demo", "--addr", "0.0.0.0:0").CombinedOutput(); err == nil || !strings.HasPrefix(string(out), "oneclaw-lab: --addr 0.0.0.0:0: the demo listens on loopback only") {
		t.Errorf("an open address: %s", out)
	}
}

func request(ctx context.Context, t *testing.T, address string, headers ...string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			r.Host = value
		} else if name != "" {
			r.Header.Set(name, value)
		}
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	return response.StatusCode
}

// suggest opens the suggestions, presses one and waits until it is the person's n-th message.
func suggest(t *testing.T, ctx context.Context, pane, text string, n int) {
	t.Helper()
	id, err := chromedp.Run(ctx, chromedp.Evaluate[string](fmt.Sprintf(`(() => { const pane = document.querySelector("%s"), ideas = pane.querySelector(".ideas");
		ideas.open = true; ideas.classList.add("all"); return pane.id; })()`, inside(pane))))
	if err != nil {
		t.Fatal(err)
	}
	do(t, ctx, chromedp.Click(fmt.Sprintf(`//section[@id=%q]/details//button[.=%q]`, id, text)))
	waitFor(t, ctx, fmt.Sprintf(`document.querySelectorAll("%s .msg.mine").length === %d`, inside(pane), n))
}

// TestDemoPageMail connects the emulated Google account as a person would, in the
// browser, and asks about mail, calendar and a spreadsheet.
func TestDemoPageMail(t *testing.T) {
	t.Parallel()
	ctx := browse(t, startDemo(t))
	said := 0
	idea := func(text, answer string) {
		said++
		suggest(t, ctx, "telegram", text, said)
		says(t, ctx, "telegram", answer)
	}
	idea("Check my email", "/connect google")
	idea("/connect google gmail calendar sheets", "ten minutes")
	connect(t, ctx, "telegram")
	said++
	idea("Check my email", "in your inbox")
	idea("Delete the spam ones", "on 61 things at once")
	do(t, ctx, chromedp.Click(`//section[@id="telegram"]//*[@class="buttons"]//button[.="Allow once"]`))
	says(t, ctx, "telegram", "one call for all of it")
	idea("What is in my calendar?", "In your calendar")
	idea("Read the budget sheet", "Budget")
	waitFor(t, ctx, `document.querySelectorAll("#telegram .chip").length === 3`)
	picture(t, ctx, "demo-mail")
}

// connect follows the link of the newest answer, consents, and sends the code that the
// page shows at the end.
func connect(t *testing.T, ctx context.Context, pane string) {
	t.Helper()
	link, err := chromedp.Run(ctx, chromedp.Evaluate[string](fmt.Sprintf(`[...document.querySelectorAll("#%s .msg a")].at(-1).href`, pane)))
	if err != nil {
		t.Fatal(err)
	}
	tab, cancel := chromedp.NewContext(ctx)
	defer cancel()
	do(t, tab, chromedp.EmulateViewport(390, 844), chromedp.Navigate(link))
	waitFor(t, tab, `document.body.innerText.includes("(telegram:")`)
	staysInside(t, tab, "sign-in")
	picture(t, tab, "before")
	for _, button := range []string{"a", "button"} {
		if _, err := chromedp.RunResponse(tab, chromedp.Click(chromedp.CSS(button))); err != nil {
			t.Fatal(err)
		}
		staysInside(t, tab, "sign-in after "+button)
		picture(t, tab, "after-"+button)
	}
	proof, err := chromedp.Run(tab, chromedp.Evaluate[string](`document.querySelector("code").innerText`))
	if err != nil {
		t.Fatal(err)
	}
	do(t, tab, chromedp.Click(chromedp.CSS("button")))
	waitFor(t, tab, `document.querySelector("button").innerText === "Copied" || String(getSelection()) === document.querySelector("code").innerText`)
	do(t, ctx, chromedp.Focus(chromedp.CSS(inside(pane)+" textarea")), chromedp.KeyEvent(proof), chromedp.KeyEvent("\r"))
	says(t, ctx, pane, "is connected")
}
