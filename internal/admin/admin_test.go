package admin_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"oneclaw/agent"
	"oneclaw/bridge/access"
	"oneclaw/bridge/audit"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/bridge/turn"
	"oneclaw/bridge/why"
	"oneclaw/internal/admin"
	"oneclaw/internal/admin/signin"
	"oneclaw/internal/budget"
	"oneclaw/internal/doctor"
	"oneclaw/internal/telemetry"
	"oneclaw/storage"
	"oneclaw/storage/bolt"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/mcp"
)

// harness is the pages over a real store. It stands for the bridge, too: what it is asked to do it writes down.
type harness struct {
	testing.TB

	store     storage.Store
	jobs      queue.Store
	now       time.Time
	cfg       admin.Config
	announced []string
	// known are the people in the register, asked the calls that wait, and did what was asked for.
	known []access.Person
	asked []interact.ApprovalRequest
	did   []string
	// ring has what log was told.
	ring *telemetry.Ring
	log  *slog.Logger
}

func newRig(t testing.TB, change ...func(*admin.Config)) *harness {
	t.Helper()
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "db"), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	r := &harness{TB: t, store: store, now: time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)}
	r.jobs = queue.Store{Store: store, LeaseToken: func(chats.Chat) string { return "me" }, Base: new(atomic.Int64)}
	explainer := why.Explainer{Store: store, Jobs: r.jobs, IsAnswering: func(chats.Chat, string) bool { return false }}
	redact := func(text string) string { return strings.ReplaceAll(text, "hunter2", "•••") }
	r.ring = telemetry.NewRing(redact)
	r.log = slog.New(r.ring.WrapHandler(slog.DiscardHandler))
	now := func() time.Time { return r.now }
	ledger, err := budget.Open(budget.Config{Store: store, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	registry, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{})
	if err != nil {
		t.Fatal(err)
	}
	r.cfg = admin.Config{
		Store: store, Explain: explainer.ExplainJob, Now: now, Ledger: ledger, People: r, Approvals: r, Errors: r.ring, Log: r.log,
		Texts: admin.Texts{Announce: func(_ context.Context, chat chats.Chat, _, text string) error {
			r.announced = append(r.announced, chat.String()+" "+text)
			return nil
		}},
		Bot: admin.Bot{
			Health: func(context.Context) []doctor.Finding {
				return []doctor.Finding{{Check: "telegram", Status: doctor.VerdictOK}}
			},
			QueueStats: func() queue.Stats { return queue.Stats{} },
			ChatName: func(_ context.Context, chat chats.Chat) string {
				return map[string]string{"telegram:-100": "Team", "slack:C1": "#general"}[chat.String()]
			},
			Examine: func(context.Context) []doctor.Finding { return nil },
		},
		Tools: admin.ToolSource{Registry: func() *toolgroups.Registry { return registry }, Servers: func() []mcp.Status { return nil }},
		Visitor: func(*http.Request) (signin.Session, bool) {
			return signin.Session{User: "telegram:1", Name: "Ann <i>", CSRF: "token"}, true
		},
		Redact: redact, RedactCards: func(text string) string { return text }, Zone: func() *time.Location { return time.UTC },
	}
	for _, f := range change {
		f(&r.cfg)
	}
	return r
}

// ListPeople implements admin.People.
func (r *harness) ListPeople() []access.Person { return r.known }

// Settings implements admin.People.
func (r *harness) Settings() access.Access { return access.Access{Admins: []string{"slack:U1"}} }

// Admit implements admin.People.
func (r *harness) Admit(_ context.Context, author audit.Author, user string, admin bool) (string, error) {
	r.did = append(r.did, fmt.Sprint("give ", user, " ", admin, " by ", author.By, " ", author.Name, " ", author.Chat))
	return "`" + user + "` may talk to me now.", nil
}

// Revoke implements admin.People.
func (r *harness) Revoke(_ context.Context, author audit.Author, user string) (string, error) {
	r.did = append(r.did, fmt.Sprint("take ", user, " by ", author.By))
	return "Only my owner can remove an administrator.", nil
}

// Waiting implements admin.Approvals.
func (r *harness) Waiting(context.Context, string, int) ([]interact.ApprovalRequest, error) {
	return r.asked, nil
}

// Press implements admin.Approvals.
func (r *harness) Press(_ context.Context, user, name, data string) (bool, error) {
	r.did = append(r.did, "press "+data+" by "+user+" "+name)
	return data == "data-allow", nil
}

// PressResult implements admin.Approvals.
func (r *harness) PressResult(context.Context, string) (string, error) { return "Allowed.", nil }

func (r *harness) serve(method, target, body string) *http.Response {
	r.Helper()
	handler, err := admin.New(r.cfg)
	if err != nil {
		r.Fatal(err)
	}
	request := httptest.NewRequestWithContext(r.Context(), method, target, strings.NewReader(body))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, request)
	return w.Result()
}

// get returns a page, which has to be there, and post the page that follows a form.
func (r *harness) get(target string) string {
	r.Helper()
	return r.body(target, r.serve(http.MethodGet, target, ""))
}

func (r *harness) post(target string, form url.Values) string {
	r.Helper()
	return r.body(target, r.serve(http.MethodPost, target, form.Encode()))
}

func (r *harness) body(target string, response *http.Response) string {
	r.Helper()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		r.Fatalf("%s: %s, %v\n%s", target, response.Status, err, body)
	}
	return string(body)
}

// rows returns the cells of the table with a caption that begins so, without its head.
func (r *harness) rows(page, caption string) (rows [][]string) {
	r.Helper()
	for _, n := range nodes(r, page) {
		if n.DataAtom != atom.Table || !strings.HasPrefix(textOf(n), caption) {
			continue
		}
		for row := range n.Descendants() {
			if row.DataAtom == atom.Tr && row.Parent.DataAtom == atom.Tbody {
				var cells []string
				for c := range row.ChildNodes() {
					cells = append(cells, textOf(c))
				}
				rows = append(rows, cells)
			}
		}
	}
	return rows
}

// textOf returns the text below a node, in one line.
func textOf(n *html.Node) string {
	var text strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			text.WriteString(d.Data + " ")
		}
	}
	return strings.Join(strings.Fields(text.String()), " ")
}

// says checks that a page says some things, and does not say others.
func (r *harness) says(page string, want, not []string) {
	r.Helper()
	for _, part := range want {
		if !strings.Contains(page, part) {
			r.Errorf("the page lacks %q:\n%s", part, page)
		}
	}
	for _, part := range not {
		if strings.Contains(page, part) {
			r.Errorf("the page has %q:\n%s", part, page)
		}
	}
}

// said is a message with what became of it.
type said struct {
	chat, id, user, name, text string
	at                         time.Time
	took                       time.Duration
	state                      receipts.State
	incident                   string
	turn                       []agent.Message
}

// accept accepts a message, which stays open.
func (r *harness) accept(s said) *queue.Run {
	r.Helper()
	chat, err := chats.ParseChat(s.chat)
	if err != nil {
		r.Fatal(err)
	}
	m := chats.Message{Chat: chat, ID: s.id, Kind: chats.KindText, User: s.user, UserName: s.name, Text: s.text, Direct: true, Time: s.at.Add(-3 * time.Second)}
	j := &queue.Run{Job: queue.Job{Message: m, State: receipts.Open, Accepted: s.at, LeaseToken: "me"}}
	turn.WorkOf(j).Generation = 1
	if added, err := r.jobs.Add(r.Context(), j); !added || err != nil {
		r.Fatal(added, err)
	}
	return j
}

// finish accepts a message, answers it and closes it.
func (r *harness) finish(s said) *queue.Run {
	r.Helper()
	j := r.accept(s)
	m, chat := j.Message, j.Message.Chat
	if len(s.turn) > 0 {
		r.append(conversation.Session{Chat: chat, Generation: 1}.Log(), s.turn)
		c := conversation.Conversation{Owner: m.Owner(), Chat: chat, Generation: 1, Title: s.text, StartedAt: s.at}
		if err := c.AddToList(r.Context(), r.store); err != nil {
			r.Fatal(err)
		}
	}
	j.State, j.Incident, j.Closed = s.state, s.incident, s.at.Add(s.took)
	turn.WorkOf(j).Parts = []receipts.Part{{State: receipts.PartSent, ID: "p" + s.id}}
	if err := r.jobs.Close(r.Context(), j, nil); err != nil {
		r.Fatal(err)
	}
	return j
}

func (r *harness) append(log string, messages []agent.Message) {
	r.Helper()
	after := storage.Position(0)
	for record, err := range r.store.Records(r.Context(), log, storage.Query{Backward: true, Limit: 1}) {
		if err != nil {
			r.Fatal(err)
		}
		after = record.Pos
	}
	for _, m := range messages {
		record, err := conversation.Encode(m)
		if err == nil {
			after, err = r.store.Append(r.Context(), log, after, record)
		}
		if err != nil {
			r.Fatal(err)
		}
	}
}

// a turn with two tools, whose texts are given.
func (r *harness) turn(ref, text string, at time.Time) []agent.Message {
	after := func(ms int) time.Time { return at.Add(time.Duration(ms) * time.Millisecond) }
	return []agent.Message{
		{Role: agent.RoleUser, Time: after(100), Text: text, Ref: ref, Sender: text, Files: []toolgroups.File{{Path: text}}},
		{
			Role: agent.RoleAssistant, Time: after(1100), Text: text, Model: "gpt-x", Usage: &agent.Usage{Input: 1000, Cached: 400, Output: 20},
			Calls: []agent.Call{{ID: "a", Name: "read_pdf", Arguments: text}, {ID: "b", Name: "send_mail", Arguments: text}},
		},
		{Role: agent.RoleTool, Time: after(1400), CallID: "a", Tool: "read_pdf", Status: agent.StatusOK, Text: text},
		{Role: agent.RoleStarted, Time: after(1500), CallID: "b", Tool: "send_mail", ApprovedBy: "telegram:1"},
		{Role: agent.RoleTool, Time: after(1900), CallID: "b", Tool: "send_mail", Status: agent.StatusError, Code: "refused", Text: text},
		{Role: agent.RoleAssistant, Time: after(2900), Text: text, Final: true, Model: "gpt-x", Usage: &agent.Usage{Input: 1100, Output: 30}},
	}
}

// next is where the link to the next page leads; empty where there is none.
func next(t testing.TB, page string) string {
	t.Helper()
	for _, n := range nodes(t, page) {
		if n.DataAtom == atom.A && attribute(n, "rel") == "next" {
			return attribute(n, "href")
		}
	}
	return ""
}

func nodes(t testing.TB, page string) (all []*html.Node) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	for n := range root.Descendants() {
		if n.Type == html.ElementNode {
			all = append(all, n)
		}
	}
	return all
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// All that was finished is found once, the newest first, however it is spread over pages.
func TestMessagesByTime(t *testing.T) {
	for _, n := range []int{0, 1, 50, 51, 130} {
		r, random := newRig(t), rand.New(rand.NewPCG(1, uint64(n)))
		want := make(map[string]bool)
		for i := range n {
			at := r.now.Add(-time.Duration(random.IntN(5000)) * time.Second)
			failed := random.IntN(3) == 0
			s := said{chat: fmt.Sprintf("telegram:%d", i%7), id: fmt.Sprint(i), user: "5", at: at, took: time.Second, state: receipts.Done}
			if failed {
				s.state, s.incident = receipts.Failed, "AB12CD34"
			}
			want[r.finish(s).Key()] = failed
		}
		for query, fits := range map[string]func(failed bool) bool{"": func(bool) bool { return true }, "?state=failed": func(f bool) bool { return f }, "?find=ab12cd34": func(f bool) bool { return f }} {
			seen, before := make(map[string]bool), "9"
			for target := admin.Root + "messages" + query; target != ""; {
				page := r.get(target)
				for _, node := range nodes(t, page) {
					link := attribute(node, "href")
					if key, ok := strings.CutPrefix(link, admin.Root+"message?key="); ok {
						key, _ = url.QueryUnescape(key)
						at := attribute(node.FirstChild, "datetime")
						if seen[key] || at > before || !fits(want[key]) {
							t.Fatalf("%s (%s after %s) comes twice, too late or is none", key, at, before)
						}
						seen[key], before = true, at
					}
				}
				target = next(t, page)
			}
			for key, failed := range want {
				if fits(failed) != seen[key] {
					t.Fatalf("%q: %s is shown: %t", query, key, seen[key])
				}
			}
		}
	}
}

// What is told of a message is its way, and nothing of what was said, unless somebody asked for
// that, which the chat and the audit are told.
func TestMessage(t *testing.T) {
	r := newRig(t)
	sent := r.now.Add(-time.Hour)
	text := "my words <script>alert(1)</script> hunter2 "
	text += strings.Repeat("x", 3995-len(text)) + "hunter2" // only half of it is shown
	ref := "telegram:7/1/text"
	r.finish(said{chat: "telegram:7", id: "1", user: "5", name: "Bob", text: text, at: sent, took: 3400 * time.Millisecond, state: receipts.Done, turn: r.turn(ref, text, sent)})
	view, address := admin.Root+"message", admin.Root+"message?key="+url.QueryEscape(ref)
	r.says(r.get(address), []string{"Answered.", "gpt-x", "read_pdf (done, ", "send_mail (failed: refused", "approved by telegram:1", "Bob (telegram:5)", "telegram:7/1"}, []string{"words"})
	form := url.Values{"key": {ref}}
	if response := r.serve(http.MethodPost, view, form.Encode()); response.StatusCode != http.StatusNotFound || len(r.announced) > 0 {
		t.Errorf("without the setting: %s, announced %q", response.Status, r.announced)
	}
	r.cfg.Texts.Allowed = true
	r.says(r.get(address), nil, []string{"words"})
	r.says(r.post(view, form), []string{"my words &lt;script&gt;"}, []string{"hunt"})
	if len(r.announced) != 1 || !strings.HasPrefix(r.announced[0], "telegram:7 Ann  i , an administrator, reads") {
		t.Errorf("announced %q", r.announced)
	}
	entries, err := audit.List(t.Context(), r.store, 10)
	if err != nil || len(entries) != 1 || entries[0].Action != "read" || entries[0].About != "telegram:7/1" || entries[0].By != "telegram:1" {
		t.Errorf("the audit has %+v, %v", entries, err)
	}
	r.now = r.now.Add(2 * time.Hour)
	r.says(r.get(address), nil, []string{"words"})
}

// A failed message has its cause as far as this process has logged it, with what to do; else the number by which
// the log has it. A scheduled task has the id of its owner alone, and the list shows the name that is known.
func TestMessagesHaveCausesAndNames(t *testing.T) {
	r := newRig(t)
	r.known = []access.Person{{User: "telegram:7", Name: "Cem"}}
	r.log.Error("no answer", "incident", "830E5118", "job", "telegram:7/1/text", "remedy", "Check the key.", "err", errors.New("openai: status 401: invalid key hunter2"))
	for id, incident := range map[string]string{"1": "830E5118", "2": "AAAA0000"} {
		r.finish(said{chat: "telegram:7", id: id, user: "7", text: "hello", at: r.now.Add(-time.Hour), took: time.Second, state: receipts.Failed, incident: incident})
	}
	list := r.get(admin.Root + "messages")
	r.says(list, []string{"Check the key. (openai: status 401: invalid key •••)", "the log has the cause: incident AAAA0000", "Cem (telegram:7)"}, []string{"hunter2"})
	r.says(r.get(admin.Root+"message?key="+url.QueryEscape("telegram:7/1/text")), []string{"Check the key."}, nil)
}

// The overview says in one look whether all is well: what works, what to do about what does not, what today cost,
// and who waits for what, by name.
func TestOverview(t *testing.T) {
	r := newRig(t, func(cfg *admin.Config) {
		limits := func(context.Context) (budget.Limits, error) {
			return budget.Limits{Total: budget.Limit{Money: 5_000_000_000}}, nil
		}
		var err error
		if cfg.Ledger, err = budget.Open(budget.Config{Store: cfg.Store, Now: cfg.Now, Limits: limits}); err != nil {
			t.Fatal(err)
		}
	})
	r.known = []access.Person{{User: "telegram:7", Name: "Cem"}, {User: "telegram:8", Name: "Dora", Standing: "asked"}}
	r.asked = []interact.ApprovalRequest{
		{Chat: chats.Chat{Platform: "slack", ID: "C1", Thread: "1.2"}, Tool: "send", Requester: "telegram:9"},
		{Chat: chats.Chat{Platform: "telegram", ID: "7"}, Direct: true, Tool: "exec", Requester: "telegram:7", DenyData: "data-deny"},
	}
	r.accept(said{chat: "telegram:9", id: "9", user: "9", name: "Eve", text: "hello", at: r.now}) // her only message
	if _, err := r.store.Put(t.Context(), "account/2026-11-23/total/", []byte(`{"calls":3,"input":1500,"money":420000000}`), storage.Absent); err != nil {
		t.Fatal(err)
	}
	r.finish(said{chat: "telegram:7", id: "1", user: "7", text: "hello", at: r.now.Add(-time.Hour), took: time.Second, state: receipts.Done})
	r.finish(said{chat: "telegram:7", id: "2", user: "7", text: "hello", at: r.now.Add(-25 * time.Hour), took: time.Second, state: receipts.Failed, incident: "AB12CD34"})
	at := func() string {
		var main *html.Node
		for _, n := range nodes(t, r.get(admin.Root)) {
			if n.DataAtom == atom.Main {
				main = n
			}
		}
		return textOf(main)
	}
	r.says(at(), []string{
		"All is well Telegram ✓ Store ✓", "Messages 1 Cost $0.42 of $5.00 Tokens 1,500", "Cem a decision about exec direct chat Eve another person's decision about send #general Dora being let in", "No error since this process began",
	}, []string{"telegram:7", "telegram:9", "C1", "✗"})
	r.leadsTo(r.get(admin.Root), "a decision about exec", "Approval: exec for “Cem”")
	r.leadsTo(r.get(admin.Root), "being let in", "People")

	r.cfg.Bot.Health = func(context.Context) []doctor.Finding {
		refused := doctor.FailError(fmt.Errorf("the server refuses the key: check OPENAI_API_KEY: %w", errors.New("dial tcp: hunter2")))
		check := doctor.Check{Name: "model", Run: func(context.Context) *doctor.Finding { return refused }}
		return slices.Collect(doctor.Run(t.Context(), []doctor.Check{check}, time.Minute, r.cfg.Redact))
	}
	r.cfg.Bot.QueueStats = func() queue.Stats { return queue.Stats{OldestDue: r.now.Add(-time.Hour)} }
	r.log.Error("no answer", "err", errors.New("refused"), "remedy", "Check the key.", "job", "telegram:7/3/text")
	r.now = time.Now()
	r.finish(said{chat: "telegram:7", id: "3", user: "7", text: "hello", at: r.now, state: receipts.Failed, incident: "AB12CD35"})
	r.says(at(), []string{"Something needs you Model ✗", "Model: the server refuses the key: check OPENAI_API_KEY", "no answer: Check the key.", "Check the key. (refused)", "A message has been open since", "Today 1 message ended without an answer"}, []string{"All is well", "dial tcp"})
	if err := r.store.Close(); err != nil {
		t.Fatal(err)
	}
	r.says(at(), []string{"Store ✗", "Store: the database cannot be read: oneclaw doctor checks it", "the overview cannot be read"}, []string{"Who waits"})
}

// What works with a warning makes the overview not red, and the warning is told.
func TestOverviewTellsWarnings(t *testing.T) {
	r := newRig(t, func(cfg *admin.Config) {
		cfg.Bot.Health = func(context.Context) []doctor.Finding {
			return []doctor.Finding{{Check: "model", Status: doctor.VerdictWarn, Text: "the server lists no models"}}
		}
	})
	page := r.get(admin.Root)
	r.says(page, []string{"All is well", `<dt>Model</dt><dd>!</dd>`, "Model: the server lists no models"}, []string{"Something needs you"})
}

// An outage that is over, and the error of a message that is counted already, are no lines of their own.
func TestOverviewSaysOnceWhatIsWrong(t *testing.T) {
	r := newRig(t)
	r.now = time.Now()
	r.log.Error("telegram is not ready", "platform", "telegram", "err", errors.New("no poll has succeeded"))
	r.says(r.get(admin.Root), []string{"All is well", "no poll has succeeded"}, []string{"Something needs you"})
	r.log.Error("the disk is full", "remedy", "Free some of it.")
	r.finish(said{chat: "telegram:7", id: "1", user: "7", text: "hello", at: r.now, state: receipts.Failed, incident: "AB12CD35"})
	r.log.Error("no answer", "job", "telegram:7/1/text", "err", errors.New("refused"))
	verdict, _, _ := strings.Cut(r.get(admin.Root), "Who waits for what")
	r.says(verdict, []string{"Something needs you", "the disk is full: Free some of it.", "Today 1 message ended without an answer"}, []string{"no answer"})
	r.leadsTo(verdict, "Today 1 message ended without an answer: see which", "Finished") // before all that is open
	r.log.Error("job closed without its final steps", "job", "telegram:7/2/text", "err", errors.New("conflict"))
	verdict, _, _ = strings.Cut(r.get(admin.Root), "Who waits for what")
	r.says(verdict, []string{"job closed without its final steps"}, nil) // of another message

	over := newRig(t)
	over.now = time.Now()
	over.log.Error("no answer", "job", "telegram:7/1/text", "err", errors.New("refused"), "remedy", "Check the key.")
	over.says(over.get(admin.Root), []string{"Something needs you", "no answer: Check the key."}, nil)
	over.finish(said{chat: "telegram:7", id: "2", user: "7", text: "hello", at: over.now.Add(time.Minute), state: receipts.Done})
	over.says(over.get(admin.Root), []string{"All is well"}, []string{"Something needs you"})
}

// A message without an answer is red while it is new and none was answered since. Later it is a line with a link.
func TestOverviewIsRedForWhatIsSoNow(t *testing.T) {
	for name, tc := range map[string]struct {
		failed, answered time.Duration // ago; 0 for none
		red              bool
	}{
		"just now":                 {failed: time.Minute, red: true},
		"answered before":          {failed: time.Minute, answered: 2 * time.Minute, red: true},
		"answered since":           {failed: 2 * time.Minute, answered: time.Minute},
		"two hours ago":            {failed: 2 * time.Hour},
		"two hours ago and before": {failed: 2 * time.Hour, answered: 3 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			if tc.answered > 0 {
				r.finish(said{chat: "telegram:7", id: "1", user: "7", text: "hello", at: r.now.Add(-tc.answered), state: receipts.Done})
			}
			r.finish(said{chat: "telegram:7", id: "2", user: "7", text: "hello", at: r.now.Add(-tc.failed), state: receipts.Failed, incident: "AB12CD35"})
			page := r.get(admin.Root)
			want, not := "All is well", "Something needs you"
			if tc.red {
				want, not = not, want
			}
			r.says(page, []string{want, "Today 1 message ended without an answer"}, []string{not})
			r.leadsTo(page, "Today 1 message ended without an answer: see which", "Finished")
		})
	}
}

// The costs of the last days are bars, below all else that happened.
func TestOverviewShowsTheCostsOfDays(t *testing.T) {
	r := newRig(t)
	put := func(day, usage string) {
		t.Helper()
		if _, err := r.store.Put(t.Context(), "account/"+day+"/total/", []byte(usage), storage.Absent); err != nil {
			t.Fatal(err)
		}
	}
	put("2026-11-23", `{"calls":3,"input":1500,"money":500000000}`)
	r.says(r.get(admin.Root), nil, []string{"Cost by day"})
	put("2026-11-21", `{"calls":3,"input":1500,"money":2000000000}`)
	page := r.get(admin.Root)
	if got := fmt.Sprint(r.rows(page, "The last 14 days")); got != "[[2026-11-23 $0.50 ] [2026-11-21 $2.00 ]]" {
		t.Errorf("the days are %s", got)
	}
	r.says(page, []string{`<meter value="0.25"`, `<meter value="1"`}, nil)
	if strings.Index(page, "Cost by day") < strings.Index(page, "What went wrong") {
		t.Error("the chart comes before what went wrong")
	}
}

// leadsTo checks that a link of a page leads to a section with a title.
func (r *harness) leadsTo(page, link, title string) {
	r.Helper()
	for _, n := range nodes(r, page) {
		if n.DataAtom != atom.A || textOf(n) != link {
			continue
		}
		address, id, _ := strings.Cut(attribute(n, "href"), "#")
		for _, s := range nodes(r, r.get(address)) {
			if s.DataAtom == atom.Section && attribute(s, "id") == id && strings.HasPrefix(textOf(s), title) {
				return
			}
		}
	}
	r.Errorf("the link %q does not lead to %q", link, title)
}

// At the press of a button the overview has the findings of doctor.
func TestOverviewMakesTheChecks(t *testing.T) {
	r := newRig(t, func(cfg *admin.Config) {
		cfg.Bot.Examine = func(context.Context) []doctor.Finding {
			return []doctor.Finding{
				{Check: "user", Status: doctor.VerdictOK, Text: "not root"},
				{Check: "disk", Status: doctor.VerdictFail, Text: "full"},
				{Check: "telegram", Status: doctor.VerdictFail, Text: "said above"},
			}
		}
	})
	page := r.post(admin.Root, nil)
	r.says(page, []string{"Something needs you", "Disk: full"}, []string{"Telegram: said above"})
	if got := fmt.Sprint(r.rows(page, "What oneclaw doctor finds")); got != "[[user ok not root] [disk fail full] [telegram fail said above]]" {
		t.Errorf("found %s", got)
	}
}

// The address of a page that went leads to the page that has it now, or is told where to look.
func TestOldAddresses(t *testing.T) {
	r := newRig(t)
	for old, now := range map[string]string{"spending?day=2026-11-01": "costs", "approvals": "people", "errors": "", "conversation?log=x": "messages"} {
		if response := r.serve(http.MethodGet, admin.Root+old, ""); response.StatusCode != http.StatusSeeOther || response.Header.Get("Location") != admin.Root+now {
			t.Errorf("%s: %s to %q", old, response.Status, response.Header.Get("Location"))
		}
	}
	for old, told := range map[string]string{"audit": "oneclaw audit", "settings": "oneclaw config", "schedules": "/hook"} {
		response := r.serve(http.MethodGet, admin.Root+old, "")
		if body, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusNotFound || !strings.Contains(string(body), told) {
			t.Errorf("%s: %s %s", old, response.Status, body)
		}
	}
}

// Costs names people as the register or their last message does, and says where a price is missing and what
// people may use who were let in from a chat.
func TestCosts(t *testing.T) {
	r := newRig(t, func(cfg *admin.Config) { cfg.Allowance = "300,000 tokens (about $0.60)" })
	r.known = []access.Person{{User: "telegram:1", Name: "Ann"}}
	r.finish(said{chat: "telegram:7", id: "1", user: "7", name: "Bo", text: "hello", at: r.now.Add(-time.Minute), took: time.Second, state: receipts.Done})
	day := "account/2026-11-23"
	for key, value := range map[string]string{
		"/user/telegram:1": `{"calls":1,"input":7,"money":5000000}`, "/user/telegram:7": `{"calls":1,"input":6,"unpriced":1}`,
		"/user/telegram:8": `{"calls":1,"input":5}`, "/chat/telegram:7": `{"calls":1,"input":5}`, "/total/": `{"calls":3,"input":15,"unpriced":1}`,
	} {
		if _, err := r.store.Put(t.Context(), day+key, []byte(value), storage.Absent); err != nil {
			t.Fatal(err)
		}
	}
	page := r.get(admin.Root + "costs")
	r.says(page, []string{"Where a price is unknown, add prices"}, nil)
	if got := fmt.Sprint(r.rows(page, "Budgets now")); !strings.Contains(got, "[each person who was let in from a chat, a day 300,000 tokens (about $0.60)") {
		t.Errorf("the budgets are %s", got)
	}
	got := fmt.Sprint(r.rows(page, "Costs of 2026-11-23 by person"), r.rows(page, "Costs of 2026-11-23 by chat"), r.rows(page, "The last 30 days"))
	want := "[[Ann (telegram:1) 1 7 0 0 $0.0050] [Bo (telegram:7) 1 6 0 0 price of 1 call unknown] [telegram:8 1 5 0 0 $0.00]] [[Bo (telegram:7) 1 5 0 0 $0.00]] [[2026-11-23 3 15 0 0 price of 1 call unknown]]"
	if got != want {
		t.Errorf("the tables are\n%s, want\n%s", got, want)
	}
}

// The page of tools says what waits at a server, and who has connected what.
func TestTools(t *testing.T) {
	r := newRig(t, func(cfg *admin.Config) {
		cfg.Tools.Servers = func() []mcp.Status {
			return []mcp.Status{{Name: "notes", PendingChanges: []mcp.Change{{Tool: "send", Description: "says now that it only reads"}}, ChangesCode: "abc"}}
		}
	})
	r.known = []access.Person{{User: "telegram:7", Name: "Cem"}}
	for _, key := range []string{"google/account/telegram:7", "mcp/account/notes/telegram:8"} {
		if _, err := r.store.Put(t.Context(), key, []byte("sealed"), storage.Absent); err != nil {
			t.Fatal(err)
		}
	}
	page := r.get(admin.Root + "tools")
	r.says(page, []string{"says what no administrator has allowed yet: /mcp notes shows how"}, nil)
	for state, servers := range map[string]mcp.Status{"changed": r.cfg.Tools.Servers()[0], "does not work": {Name: "notes", Problem: "dial tcp: refused"}} {
		r.cfg.Tools.Servers = func() []mcp.Status { return []mcp.Status{servers} }
		overview := r.get(admin.Root)
		r.says(overview, []string{"Something needs you"}, []string{"dial tcp"})
		r.leadsTo(overview, "MCP server notes "+state+": see why", "MCP servers")
		servers.LastAsked = r.now.Add(-time.Hour)
		asked := servers.LastAsked.UTC().Format("15:04")
		r.leadsTo(r.get(admin.Root), "MCP server notes "+state+", last asked "+asked+": see why", "MCP servers")
	}
	if got := fmt.Sprint(r.rows(page, "Connected accounts")); got != "[[Cem (telegram:7) google] [telegram:8 notes]]" {
		t.Errorf("connected are %s", got)
	}
}
