package main

import (
	"context"
	"fmt"
	"html"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/telegram"
)

// hookAddress is where the bot of a test is said to be reached.
const hookAddress = "https://bot.example"

// poster is a service that posts to a webhook of the bot, to one of several programs, and
// posts again what was not taken.
type poster struct {
	*harness
	who          int64    // whose webhook it is
	at           []string // where the programs listen
	path, secret string
	running      sync.WaitGroup

	mu      sync.Mutex
	posted  int
	pending []int
}

// hooking is a model that tells the number of what a webhook brings; what else it is asked another one answers.
func hooking(otherwise openai.Responder) openai.Responder {
	return openai.ResponderFunc(func(ctx context.Context, req openai.Request) (openai.Reply, error) {
		_, received, ok := strings.Cut(req.Messages[len(req.Messages)-1].Content, "data from outside ---\n")
		if !ok {
			return otherwise.Reply(ctx, req)
		}
		var n int
		if _, err := fmt.Sscanf(received, `{"n":%d}`, &n); err != nil {
			return openai.Reply{}, err
		}
		return openai.Reply{Text: fmt.Sprint("hooked ", n)}, nil
	})
}

var hookLinks = regexp.MustCompile(hookAddress + `(/hook/[a-z0-9]+)(/secret/[a-z0-9]+)`)

// newPoster makes a webhook in a chat of its own.
func newPoster(w *harness, bot *process, at ...string) *poster {
	w.t.Helper()
	return posterOf(w, bot, w.person("hooks"), tellNumber, at...)
}

// tellNumber is what the webhook of a model that is hooking has to do.
const tellNumber = "Tell the number."

// posterOf makes a webhook of somebody, which does a task.
func posterOf(w *harness, bot *process, who int64, task string, at ...string) *poster {
	w.t.Helper()
	p := &poster{harness: w, who: who, at: at}
	links := hookLinks.FindStringSubmatch(w.ask(bot, p.who, "/hook new ci "+task, nil))
	if links == nil {
		w.t.Fatal("/hook new has no addresses")
	}
	p.path = links[1]
	_, page := p.request(at[0], links[1]+links[2], "", nil)
	p.secret = secretIn(page)
	if p.secret == "" {
		w.t.Fatalf("no secret: %s", page)
	}
	return p
}

// secretIn returns the secret that the page of a webhook shows.
func secretIn(page string) string {
	return regexp.MustCompile(`whsec_[A-Za-z0-9+/=]+`).FindString(html.UnescapeString(page))
}

// request posts something and returns the status and the answer; 0 where there is none.
func (p *poster) request(at, path, body string, header map[string]string) (int, string) {
	return p.requestWithin(patience, at, path, body, header)
}

func (p *poster) requestWithin(within time.Duration, at, path, body string, header map[string]string) (int, string) {
	ctx, cancel := context.WithTimeout(p.t.Context(), within)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+at+path, strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	for name, value := range header {
		r.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err.Error()
	}
	return answer.StatusCode, string(text)
}

// deliver posts a body that has to be taken.
func (p *poster) deliver(body string) {
	p.t.Helper()
	if status, text := p.request(p.at[0], p.path, body, map[string]string{"Authorization": "Bearer " + p.secret}); status != http.StatusAccepted {
		p.t.Fatalf("%d %s", status, text)
	}
}

// try posts a delivery once. It may be known already.
func (p *poster) try(n, at int) {
	header := map[string]string{"Authorization": "Bearer " + p.secret, "Idempotency-Key": fmt.Sprint("delivery-", n)}
	status, _ := p.requestWithin(5*time.Second, p.at[at%len(p.at)], p.path, fmt.Sprintf(`{"n":%d}`, n), header)
	if status != http.StatusAccepted {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.pending = append(p.pending, n)
	}
}

// post posts so many deliveries more, at the same time.
func (p *poster) post(more int) {
	for range more {
		p.posted++
		n := p.posted
		p.running.Go(func() { p.try(n, n) })
	}
}

// again posts what was not taken, each to another program than before, and some that were.
func (p *poster) again() {
	p.running.Wait()
	p.mu.Lock()
	pending := p.pending
	p.pending = nil
	p.mu.Unlock()
	for _, n := range append(pending, p.posted, max(1, p.posted-3)) {
		p.try(n, n+1)
	}
}

// answered waits until all is told that there is to tell.
func (p *poster) answered(bot *process) {
	p.t.Helper()
	for range 20 {
		if p.again(); len(p.pending) == 0 {
			break
		}
	}
	p.until(bot, "answer to all deliveries", func(s telegram.State) bool {
		seen := map[string]bool{}
		for _, m := range s.Answers(p.who) {
			seen[hooked(m.Text)] = true
		}
		for n := 1; n <= p.posted; n++ {
			if !seen[fmt.Sprint("hooked ", n)] {
				return false
			}
		}
		return true
	})
}

// hooked is what an answer tells of a delivery.
func hooked(answer string) string {
	_, text, _ := strings.Cut(answer, "[Webhook] ci\n\n")
	text, _, _ = strings.Cut(text, "\n\n"+chats.RepeatNotice)
	return text
}

// check finds what came twice without a mark, or should not have come, and counts the marks.
func (p *poster) check(t complainer) (marks int) {
	t.Helper()
	unmarked := map[string]bool{}
	for _, answer := range p.answers(p.who)[1:] { // the first is that to /hook new
		text := hooked(answer)
		marked := strings.Contains(answer, chats.RepeatNotice)
		if n := 0; !marked && unmarked[text] {
			t.Errorf("%q came twice without a mark", text)
		} else if _, err := fmt.Sscanf(text, "hooked %d", &n); err != nil {
			t.Errorf("a webhook is answered with %q", answer)
		}
		if marked {
			marks++
		} else {
			unmarked[text] = true
		}
	}
	return marks
}

// TestHooksOfTheProgram posts to the program in every state of a webhook.
func TestHooksOfTheProgram(t *testing.T) {
	t.Parallel()
	w := newHarness(t, hooking(openai.Offline{}))
	address := freeAddress(t)
	w.env["ONECLAW_LISTEN"], w.env["ONECLAW_PUBLIC_URL"] = address, hookAddress
	bot := w.run()
	p := newPoster(w, bot, address)
	p.post(5)
	p.answered(bot)
	if why := w.ask(bot, p.who, "/why", nil); !strings.Contains(why, "The webhook delivery") || !strings.Contains(why, "delivery-") {
		t.Errorf("/why says %q", why)
	}
	wantIn(t, w.ask(bot, p.who, "/hook", nil), "taken, the last on")
	for path, want := range map[string]int{p.path: http.StatusUnauthorized, "/hook/nobody": http.StatusNotFound} {
		if status, text := p.request(address, path, `{"n":9}`, map[string]string{"Authorization": "Bearer whsec_AAAA"}); status != want {
			t.Errorf("%s: %d %s, want %d", path, status, text, want)
		}
	}
	for size, most := range map[int]int{128<<10 + 1: 1, 10 << 20: 10} { // who stands still while it posts much may find the connection closed
		status, text := 0, ""
		for n := 0; n < most && status == 0; n++ {
			status, text = p.request(address, p.path, strings.Repeat("x", size), map[string]string{"Authorization": "Bearer " + p.secret})
		}
		if status != http.StatusRequestEntityTooLarge || !strings.Contains(text, "at most 128 KiB") {
			t.Errorf("%d bytes: %d %s", size, status, text)
		}
	}
	wantIn(t, w.ask(bot, p.who, "/hook remove ci", nil), "is removed")
	if status, _ := p.request(address, p.path, `{"n":9}`, map[string]string{"Authorization": "Bearer " + p.secret}); status != http.StatusNotFound {
		t.Errorf("after it was removed: %d", status)
	}
	bot.kill(syscall.SIGTERM)
	did := fmt.Sprintf("telegram:%d hooks in telegram:%[1]d: ci", p.who)
	w.did("hook new: "+did, "hook remove: "+did)
}

// TestWebhooksOfTheOwnerAreNotThoseOfAGuest: a task of a webhook has the rights of an ordinary user, and
// the budget of whoever made the webhook.
func TestWebhooksOfTheOwnerAreNotThoseOfAGuest(t *testing.T) {
	t.Parallel()
	w := newHarness(t, hooking(openai.Offline{}))
	delete(w.env, "ONECLAW_ALLOW")
	address := freeAddress(t)
	w.env["ONECLAW_LISTEN"], w.env["ONECLAW_PUBLIC_URL"], w.env["ONECLAW_BUDGET_GUEST_TOKENS"] = address, hookAddress, "1"
	bot := w.run()
	_, code := offered(t, bot)
	owner := w.person("Ann")
	wantIn(t, w.ask(bot, owner, "claim "+code, nil), "Welcome, Ann")
	w.ask(bot, owner, "hello", nil) // more than a guest may use
	posterOf(w, bot, owner, tellNumber, address).post(1)
	w.shows(bot, owner, "hooked 1")
}
