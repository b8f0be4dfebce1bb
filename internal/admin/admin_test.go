package admin_test

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
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
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/bridge/turn"
	"oneclaw/bridge/why"
	"oneclaw/internal/admin"
	"oneclaw/internal/admin/frame"
	"oneclaw/storage"
	"oneclaw/storage/bolt"
	"oneclaw/toolgroups"
)

// harness is a page over a real store.
type harness struct {
	testing.TB

	store     storage.Store
	jobs      queue.Store
	now       time.Time
	cfg       admin.Config
	announced []string
	// handler, if not nil, serves in the place of a new one for each request.
	handler http.Handler
}

func newRig(t testing.TB, change ...func(*admin.Config)) *harness {
	t.Helper()
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "db"), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	return newRigOver(t, store, change...)
}

// newRigOver is newRig over a store, which it closes.
func newRigOver(t testing.TB, store storage.Store, change ...func(*admin.Config)) *harness {
	t.Helper()
	t.Cleanup(func() { _ = store.Close() })
	r := &harness{TB: t, store: store, now: time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)}
	r.jobs = queue.Store{Store: store, LeaseToken: func(chats.Chat) string { return "me" }, Base: new(atomic.Int64)}
	explainer := why.Explainer{Store: store, Jobs: r.jobs, IsAnswering: func(chats.Chat, string) bool { return false }}
	r.cfg = admin.Config{
		Store: store, Explain: explainer.ExplainJob, Now: func() time.Time { return r.now },
		Texts: admin.Texts{Announce: func(_ context.Context, chat chats.Chat, _, text string) error {
			r.announced = append(r.announced, chat.String()+" "+text)
			return nil
		}},
		Bot: admin.Bot{ReceiveErrors: func() map[string]error { return map[string]error{"telegram": errors.New("no route <b>")} }, QueueStats: func() queue.Stats { return queue.Stats{Open: 2, Undecided: 1, Oldest: r.now} }},
		Visitor: func(*http.Request) (frame.Visitor, bool) {
			return frame.Visitor{Person: "telegram:1", Name: "Ann <i>", CSRF: "token"}, true
		},
		Redact: func(text string) string { return strings.ReplaceAll(text, "hunter2", "•••") },
	}
	for _, f := range change {
		f(&r.cfg)
	}
	return r
}

func (r *harness) serve(method, target, body string) *http.Response {
	r.Helper()
	handler := r.handler
	if handler == nil {
		var err error
		if handler, err = admin.New(r.cfg); err != nil {
			r.Fatal(err)
		}
	}
	return r.serveFrom(handler, method, target, body)
}

func (r *harness) serveFrom(handler http.Handler, method, target, body string) *http.Response {
	request := httptest.NewRequestWithContext(r.Context(), method, target, strings.NewReader(body))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, request)
	return w.Result()
}

// get returns a page, which has to be there.
func (r *harness) get(target string) string {
	r.Helper()
	return r.body(target, r.serve(http.MethodGet, target, ""))
}

// getFrom is get from a page that was made before.
func (r *harness) getFrom(handler http.Handler, target string) string {
	r.Helper()
	return r.body(target, r.serveFrom(handler, http.MethodGet, target, ""))
}

func (r *harness) body(target string, response *http.Response) string {
	r.Helper()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		r.Fatalf("%s: %s, %v\n%s", target, response.Status, err, body)
	}
	return string(body)
}

// file returns the rows of a table as its file has them, with the head.
func (r *harness) file(target, name string) [][]string {
	r.Helper()
	u, err := url.Parse(target)
	if err != nil {
		r.Fatal(err)
	}
	query := u.Query()
	query.Set("csv", name)
	u.RawQuery = query.Encode()
	return r.rows(u.String())
}

// rows returns those of a file.
func (r *harness) rows(address string) [][]string {
	r.Helper()
	rows, err := csv.NewReader(strings.NewReader(r.get(address))).ReadAll()
	if err != nil {
		r.Fatal(err)
	}
	return rows
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

// finish accepts a message, answers it and closes it.
func (r *harness) finish(s said) *queue.Run {
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
	if len(s.turn) > 0 {
		r.append(conversation.Session{Chat: chat, Generation: 1}.Log(), s.turn)
		c := conversation.Conversation{Owner: m.Owner(), Chat: chat, Generation: 1, Title: s.text, StartedAt: s.at}
		if err := c.AddToLists(r.Context(), r.store); err != nil {
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
			for target := frame.Root + "messages" + query; target != ""; {
				page := r.get(target)
				for _, node := range nodes(t, page) {
					link := attribute(node, "href")
					if key, ok := strings.CutPrefix(link, frame.Root+"message?key="); ok {
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
	at := r.now.Add(-time.Hour)
	text := "my words <script>alert(1)</script> hunter2"
	ref := "telegram:7/1/text"
	r.finish(said{chat: "telegram:7", id: "1", user: "5", name: "Bob", text: text, at: at, took: 3400 * time.Millisecond, state: receipts.Done, turn: r.turn(ref, text, at)})
	address := frame.ViewURL("message", "key", ref)
	page := r.get(address)
	for _, want := range []string{"Answered.", "gpt-x", "read_pdf (done, ", "send_mail (failed: refused", "approved by telegram:1", "Bob (telegram:5)", "telegram:7/1"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q:\n%s", want, page)
		}
	}
	if strings.Contains(page, "words") {
		t.Error("the page shows what was said")
	}
	var steps []string
	for _, row := range r.file(address, "steps")[1:] {
		steps = append(steps, strings.Join(row[:3], " "))
	}
	got := strings.Join(steps, "; ")
	if want := "On its way 0 ms 3.0 s; Waited 3.0 s 100 ms; Model 3.1 s 1.0 s; read_pdf 4.1 s 300 ms; send_mail 4.5 s 400 ms; Model 4.9 s 1.0 s; Delivery 5.9 s 500 ms"; got != want {
		t.Errorf("steps\n%s\nwant\n%s", got, want)
	}

	form := url.Values{"key": {ref}}.Encode()
	if response := r.serve(http.MethodPost, frame.Root+"message", form); response.StatusCode != http.StatusNotFound || len(r.announced) > 0 {
		t.Errorf("without the setting: %s, announced %q", response.Status, r.announced)
	}
	r.cfg.Texts.Allowed = true
	if page := r.get(address + "&texts=1"); strings.Contains(page, "words") {
		t.Error("texts are shown to somebody who has not said so")
	}
	response := r.serve(http.MethodPost, frame.Root+"message", form)
	page = r.get(response.Header.Get("Location"))
	if !strings.Contains(page, "my words &lt;script&gt;") || strings.Contains(page, "hunter2") {
		t.Errorf("the page with texts:\n%s", page)
	}
	if len(r.announced) != 1 || !strings.HasPrefix(r.announced[0], "telegram:7 Ann  i , an administrator, reads") {
		t.Errorf("announced %q", r.announced)
	}
	entries, err := audit.List(t.Context(), r.store, 10)
	entries = slices.DeleteFunc(entries, func(e audit.Entry) bool { return e.Action == "export" })
	if err != nil || len(entries) != 1 || entries[0].Action != "read" || entries[0].About != "telegram:7/1" || entries[0].By != "telegram:1" {
		t.Errorf("the audit has %+v, %v", entries, err)
	}
	if page := r.get(frame.ViewURL("conversation", "log", "telegram:7/1", "texts", "1")); !strings.Contains(page, "my words") {
		t.Error("the conversation is not shown")
	}
	r.now = r.now.Add(2 * time.Hour)
	if page := r.get(address + "&texts=1"); strings.Contains(page, "words") {
		t.Error("texts are shown for ever")
	}
}

// The sums are those of all that was finished, wherever they come from.
func TestSums(t *testing.T) {
	for seed := range uint64(8) {
		r, random := newRig(t), rand.New(rand.NewPCG(2, seed))
		var want receipts.Tally
		for i := range 20 + random.IntN(40) {
			if i == 30 {
				if _, err := receipts.Prune(t.Context(), r.store, r.now, nil); err != nil {
					t.Fatal(err)
				}
				r.now = r.now.Add(time.Minute)
			}
			took := time.Duration((1 + random.IntN(400_000))) * time.Millisecond
			closed := r.now.Add(-time.Duration(random.IntN(30)) * time.Second)
			state := []receipts.State{receipts.Done, receipts.Failed, receipts.Stopped}[random.IntN(3)]
			j := r.finish(said{chat: "slack:C", id: fmt.Sprint(i), user: "U", at: closed.Add(-took), took: took, state: state})
			want.Add(receipts.Entry{State: j.State, TookMillis: took.Milliseconds()})
		}
		rows := r.file(frame.Root, "days")
		if len(rows) != 2 || rows[1][1] != fmt.Sprint(want.Messages) || rows[1][2] != fmt.Sprint(want.Answered) || rows[1][3] != fmt.Sprint(want.Failed) {
			t.Fatalf("%v, want %+v", rows, want)
		}
	}
}

// Each conversation is found once, the newest first, and what was taken off the lists not any more.
func TestConversationsByBeginning(t *testing.T) {
	r := newRig(t)
	for i := range 120 {
		chat := chats.Chat{Platform: "slack", ID: fmt.Sprint("C", i%40)}
		c := conversation.Conversation{Owner: chat.String(), Chat: chat, Generation: i/40 + 1, StartedAt: r.now.Add(-time.Duration(i*7919%120) * time.Minute)}
		if err := c.AddToLists(t.Context(), r.store); err != nil {
			t.Fatal(err)
		}
		switch i {
		case 9:
			if err := c.Remove(t.Context(), r.store, storage.Any); err != nil {
				t.Fatal(err)
			}
		}
	}
	for query, want := range map[string]int{"": 119, "?kind=task": 0, "?owner=slack:C3": 3} {
		seen, before := make(map[string]bool), "9"
		for target := frame.Root + "conversations" + query; target != ""; {
			page := r.get(target)
			for _, n := range nodes(t, page) {
				link := attribute(n, "href")
				if !strings.HasPrefix(link, frame.Root+"conversation?") {
					continue
				}
				at := attribute(n.FirstChild, "datetime")
				if seen[link] || query == "" && at > before {
					t.Fatalf("%s (%s after %s) comes twice or too late", link, at, before)
				}
				seen[link], before = true, at
			}
			target = next(t, page)
		}
		if len(seen) != want {
			t.Errorf("%q has %d conversations, want %d", query, len(seen), want)
		}
	}
}

// Long conversations are read page by page.
func TestTurnsOfAConversation(t *testing.T) {
	r := newRig(t)
	for i := range 60 {
		r.append("telegram:9/1", r.turn(fmt.Sprint("telegram:9/", i, "/text"), "words", r.now.Add(time.Duration(i)*time.Minute)))
	}
	var times []string
	for target := frame.ViewURL("conversation", "log", "telegram:9/1"); target != ""; {
		for _, row := range r.file(target, "turns")[1:] {
			times = append(times, row[0])
			if got := strings.Join(row[1:7], " "); got != "gpt-x 2 2 2,100 400 50" {
				t.Fatalf("a turn has %q", got)
			}
		}
		target = next(t, r.get(target))
	}
	if len(times) != 60 || !slices.IsSortedFunc(times, func(a, b string) int { return strings.Compare(b, a) }) {
		t.Errorf("%d turns: %q", len(times), times)
	}
}

// A scheduled task has the id of its owner alone; the list shows the name that is known for it.
func TestMessagesShowTheNamesOfPeopleWhoAreKnown(t *testing.T) {
	r := newRig(t, func(c *admin.Config) {
		c.People = func() []access.Person { return []access.Person{{User: "telegram:7", Name: "Ann"}} }
	})
	r.finish(said{chat: "telegram:7", id: "1", user: "7", text: "Remind me", at: r.now.Add(-time.Hour), state: receipts.Done})
	if from := r.file("/admin/messages", "messages")[1][4]; from != "Ann (telegram:7)" {
		t.Errorf("from %q", from)
	}
}
