package telegram

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/platformtest"
	emulator "oneclaw/internal/emulator/telegram"
	"oneclaw/internal/redact"
	"oneclaw/storage"
	"oneclaw/storage/bolt"
)

// balancer hands each request to one of the platforms behind it, in turn.
type balancer struct {
	behind atomic.Pointer[[]*platform]
	next   atomic.Int64
}

func (b *balancer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	all := *b.behind.Load()
	if len(all) == 0 {
		http.Error(w, "nobody there", http.StatusBadGateway)
		return
	}
	all[int(b.next.Add(1))%len(all)].Events().ServeHTTP(w, r)
}

// postedEmulated is a service that posts updates to a balancer.
type postedEmulated struct {
	*emulated
	*balancer
	public string
}

func newPostedEmulated(t *testing.T) *postedEmulated {
	t.Helper()
	b := &balancer{}
	b.behind.Store(&[]*platform{})
	web := httptest.NewTLSServer(b)
	t.Cleanup(web.Close)
	return &postedEmulated{newEmulated(t, emulator.Config{WebhookClient: web.Client(), WebhookRetryDelay: 10 * time.Millisecond}), b, web.URL}
}

// join puts one more platform behind the balancer.
func (s *postedEmulated) join(t *testing.T, kv storage.KV) *platform {
	t.Helper()
	p, err := newPlatform(config{
		Settings:   Settings{Token: redact.Secret(s.Token()), APIURL: s.url, Webhook: true, public: s.public},
		httpClient: &http.Client{Transport: s.transport(t)}, kv: kv,
	})
	if err != nil {
		t.Fatal(err)
	}
	all := append(slices.Clone(*s.behind.Load()), p)
	s.behind.Store(&all)
	return p
}

func openStore(t *testing.T) storage.Store {
	t.Helper()
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "db"), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

// postedHarness is the suite's harness with a bot that is posted its updates.
type postedHarness struct {
	*harness
	posts *postedEmulated
}

func (w *postedHarness) Adapter() chats.Platform {
	p := w.posts.join(w.t, nil)
	w.posts.behind.Store(&[]*platform{p}) // the one before has been stopped
	return p
}

func (w *postedHarness) Inject(in platformtest.Place, fault platformtest.Fault) {
	if fault.Effect != platformtest.DuplicateDelivery {
		w.harness.Inject(in, fault)
		return
	}
	chat, _ := w.at(in)
	w.inject(w.t, emulator.Fault{Method: "webhook", Chat: chat, Times: 1, Effect: emulator.Duplicate})
}

// TestConformanceWithAWebhook tries what reaches the bot in another way than by polls.
func TestConformanceWithAWebhook(t *testing.T) {
	platformtest.RunDeliveries(t, func(t *testing.T) platformtest.Harness {
		s := newPostedEmulated(t)
		w := harnessOver(t, s.emulated)
		w.Service = &postedHarness{w.Service.(*harness), s}
		return w
	})
}

// TestWebhookOnSeveralReplicas has three take what is posted, of which one is stopped while
// the store has trouble: each message is accepted, in the order of its chat.
func TestWebhookOnSeveralReplicas(t *testing.T) {
	t.Parallel()
	s := newPostedEmulated(t)
	in := newInbox(errors.New("disk full"), errors.New("disk full"))
	group := s.chat(t, emulator.ChatSpec{Kind: emulator.Group, Title: "G", User: s.ann})
	defer run(t, s.join(t, nil), in)()
	defer run(t, s.join(t, nil), in)()
	stop := run(t, s.join(t, nil), in)
	s.until(t, func(st emulator.State) bool { return st.CallCount("setwebhook") == 3 })
	for i := range 6 {
		s.say(t, s.ann, fmt.Sprint("direct ", i), nil)
		s.say(t, group, fmt.Sprint("/ask@", s.Bot().Username, " ", i), nil)
		if i == 2 {
			stop()
		}
	}
	in.wait(t, atLeast(12))
	s.until(t, func(st emulator.State) bool { return st.PendingCount() == 0 })
	seen := map[string][]string{}
	for _, m := range in.accepted {
		if m.Chat.ID != fmt.Sprint(s.ann) {
			m.Text = "direct " + strings.TrimPrefix(m.Text, "/ask ")
		}
		seen[m.Chat.ID] = append(seen[m.Chat.ID], m.Text)
	}
	for chat, texts := range seen {
		if !slices.IsSorted(texts) || len(texts) != 6 {
			t.Errorf("in %s was accepted %q", chat, texts)
		}
	}
}

// TestWebhookAlbums has the items of an album reach different processes.
func TestWebhookAlbums(t *testing.T) {
	s := newPostedEmulated(t)
	store := openStore(t)
	in := newInbox()
	defer run(t, s.join(t, store), in)()
	defer run(t, s.join(t, store), in)()
	group := s.chat(t, emulator.ChatSpec{Kind: emulator.Group, Title: "G", User: s.ann, BotAdmin: true})
	var items []emulator.Attachment
	for i := range 5 {
		items = append(items, emulator.Attachment{Name: fmt.Sprint(i, ".txt"), Data: []byte("x")})
	}
	for _, caption := range []string{"between us", "look @" + s.Bot().Username} {
		if _, err := s.SayAlbum(group, s.ann, caption, items...); err != nil {
			t.Fatal(err)
		}
	}
	s.until(t, func(st emulator.State) bool { return st.PendingCount() == 0 && st.CallCount("setwebhook") == 2 })
	if got := in.wait(t, atLeast(5)); len(got) != 5 || got[0].Text != "look" {
		t.Errorf("accepted %+v", got)
	}
}

// TestWebhookLongTexts has the pieces of texts reach different processes. Only the first one mentions the bot.
func TestWebhookLongTexts(t *testing.T) {
	s := newPostedEmulated(t)
	store := openStore(t)
	in := newInbox()
	defer run(t, s.join(t, store), in)()
	defer run(t, s.join(t, store), in)()
	group := s.chat(t, emulator.ChatSpec{Kind: emulator.Group, Title: "G", User: s.ann, BotAdmin: true})
	s.until(t, func(st emulator.State) bool { return st.CallCount("setwebhook") == 2 })
	long := strings.Repeat("word ", 2000)
	for _, text := range []string{"between us " + long, "@" + s.Bot().Username + " " + long, "between us"} {
		if _, err := s.SayLong(group, s.ann, text, nil); err != nil {
			t.Fatal(err)
		}
	}
	s.until(t, func(st emulator.State) bool { return st.PendingCount() == 0 })
	words := 0
	got := in.wait(t, atLeast(1))
	for _, m := range got {
		words += strings.Count(m.Text, "word")
	}
	if len(got) != 3 || words != 2000 {
		t.Errorf("accepted %d messages with %d words", len(got), words)
	}
}

// TestAnAlbumGoesOnAfterARestart has a poller continue an album that another one began.
func TestAnAlbumGoesOnAfterARestart(t *testing.T) {
	store := openStore(t)
	raws := readBatch(t, "testdata/updates/album.json")
	d := newDecoder()
	d.albums = newAlbumStore(store)
	if events, _, _, err := d.decodeBatch(t.Context(), raws[1:2]); len(events) != 1 || err != nil {
		t.Fatalf("the item with the mention gave %v, %v", events, err)
	}
	d.albums = newAlbumStore(store)
	if events, _, _, err := d.decodeBatch(t.Context(), raws[:1]); len(events) != 1 || err != nil {
		t.Errorf("a later item gave %v, %v", events, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	d.albums = newAlbumStore(store)
	if events, _, _, err := d.decodeBatch(ended, raws[:1]); len(events) != 0 || err == nil {
		t.Errorf("where the store does not tell: %v, %v", events, err)
	}
}

// The items of an album that arrive before the one that mentions the bot are not lost, and not kept for long.
func TestTheItemsBeforeTheMentionComeWithIt(t *testing.T) {
	raws := readBatch(t, "testdata/updates/album.json")
	for name, c := range map[string]struct {
		wait time.Duration
		want int
	}{
		"soon":     {time.Second, 2},
		"too late": {undecidedAge + watchInterval, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := openStore(t)
				first, second := newDecoder(), newDecoder()
				first.albums, second.albums = newAlbumStore(store), newAlbumStore(store)
				for range 2 { // the second time Telegram delivers it again
					if events, _, _, err := first.decodeBatch(t.Context(), raws[:1]); len(events) != 0 || err != nil {
						t.Fatalf("an item without a mention gave %v, %v", events, err)
					}
				}
				time.Sleep(c.wait)
				for range 2 {
					events, last, _, err := second.decodeBatch(t.Context(), raws[1:2])
					if len(events) != c.want || last != 144 || err != nil {
						t.Errorf("the item with the mention gave %v, %v", events, err)
					}
				}
				if err := first.albums.undecided.deleteOld(t.Context()); err != nil {
					t.Fatal(err)
				}
				if _, err := store.Get(t.Context(), undecidedKey); errors.Is(err, storage.ErrNotFound) != (c.want == 1) {
					t.Errorf("kept: %v", err)
				}
			})
		})
	}
}

func TestUndecidedItemsAreBounded(t *testing.T) {
	store := openStore(t)
	u := newAlbumStore(store).undecided
	for i := range maxUndecided + 1 {
		raw := json.RawMessage(fmt.Sprintf(`{"update_id":%d}`, i))
		if err := u.keep(t.Context(), undecidedItem{int64(i), album{1, "g"}, time.Now(), raw}); err != nil {
			t.Fatal(err)
		}
	}
	if raws, err := u.find(t.Context(), album{1, "g"}); len(raws) != maxUndecided || string(raws[0]) != `{"update_id":1}` || err != nil {
		t.Errorf("%d kept: %v", len(raws), err)
	}
	large := json.RawMessage(`"` + strings.Repeat("x", maxUndecidedBytes*2/3) + `"`)
	for i, group := range []string{"h", "i"} {
		if err := u.keep(t.Context(), undecidedItem{int64(1000 + i), album{1, group}, time.Now(), json.RawMessage(`["` + group + `",` + string(large) + `]`)}); err != nil {
			t.Fatal(err)
		}
	}
	for group, want := range map[string]int{"g": 0, "h": 0, "i": 1} {
		if raws, err := u.find(t.Context(), album{1, group}); len(raws) != want || err != nil {
			t.Errorf("album %s: %d kept, want %d: %v", group, len(raws), want, err)
		}
	}
}

func TestAlbumsAreBounded(t *testing.T) {
	store := openStore(t)
	a, b := newAlbumStore(store), newAlbumStore(store)
	for i := range maxStoredAlbums + 1 {
		if err := a.add(t.Context(), album{int64(-i), "g"}); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range map[int]bool{0: false, maxStoredAlbums: true} {
		one := album{int64(-i), "g"}
		if err := b.refresh(t.Context(), one); err != nil || b.known.Has(one) != want {
			t.Errorf("album %d: %v, %v", i, b.known.Has(one), err)
		}
	}
}

// request is one to the webhook as Telegram makes it, unless it is changed.
func request(t *testing.T, p *platform, body string, change func(*http.Request)) *httptest.ResponseRecorder {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, hookPath, strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(secretHeader, p.hook.secret)
	if change != nil {
		change(req)
	}
	w := httptest.NewRecorder()
	p.Events().ServeHTTP(w, req)
	return w
}

func TestWebhookTakesNothingElse(t *testing.T) {
	s := newPostedEmulated(t)
	logged, log := newLog()
	p := s.join(t, nil)
	p.log = log
	if w := request(t, p, hello, nil); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != "1" {
		t.Errorf("before Run: %d %v", w.Code, w.Header())
	}
	in := newInbox()
	stop := run(t, p, in)
	s.until(t, func(st emulator.State) bool { a, _ := st.Webhook(); return a == s.public+hookPath })
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	for name, tt := range map[string]struct {
		body   string
		change func(*http.Request)
		want   int
	}{
		"no secret":          {hello, func(r *http.Request) { r.Header.Del(secretHeader) }, 401},
		"another secret":     {hello, header(secretHeader, strings.Repeat("x", len(p.hook.secret))), 401},
		"half of the secret": {hello, header(secretHeader, p.hook.secret[:10]), 401},
		"the token":          {hello, header(secretHeader, s.Token()), 401},
		"GET":                {"", func(r *http.Request) { r.Method = http.MethodGet }, 405},
		"a form":             {"a=b", header("Content-Type", "application/x-www-form-urlencoded"), 415},
		"no type":            {hello, func(r *http.Request) { r.Header.Del("Content-Type") }, 415},
		"too large":          {`{"update_id":1,"message":"` + strings.Repeat("x", maxUpdate) + `"}`, nil, 413},
		"no JSON":            {"hello", nil, 400},
		"no update":          {`{"message":{}}`, nil, 400},
		"broken update":      {`{"update_id":5,"message":{"message_id":"x"}}`, nil, 200},
	} {
		if w := request(t, p, tt.body, tt.change); w.Code != tt.want {
			t.Errorf("%s: %d, want %d", name, w.Code, tt.want)
		}
	}
	if in.calls != 0 {
		t.Errorf("accepted %+v", in.accepted)
	}
	if w := request(t, p, hello, nil); w.Code != http.StatusOK || len(in.accepted) != 1 {
		t.Errorf("an update: %d, accepted %+v", w.Code, in.accepted)
	}
	stop()
	if w := request(t, p, hello, nil); w.Code != http.StatusServiceUnavailable {
		t.Errorf("after Run: %d", w.Code)
	}
	if n := strings.Count(logged.String(), "requests refused"); n != 1 {
		t.Errorf("the log tells %d times of refused requests", n)
	}
	for _, secret := range []string{p.hook.secret, s.Token()} {
		if strings.Contains(logged.String(), secret) {
			t.Error("the log has a secret")
		}
	}
	if token := s.Token(); strings.Contains(p.hook.address, token) || strings.Contains(p.hook.secret, token[10:]) {
		t.Error("the token is in the webhook")
	}
	poller := s.platform(t, s.Token())
	if w := request(t, poller, hello, nil); w.Code != http.StatusNotFound {
		t.Errorf("where the bot polls: %d", w.Code)
	}
	if !poller.ReceivesExclusively() || p.ReceivesExclusively() {
		t.Error("one alone may poll, any may be posted to")
	}
}

// TestWebhookIsKept has another program take the webhook away, and the service refuse to
// set it at first.
func TestWebhookIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hook atomic.Pointer[url.Values]
		refusals := 2
		p, logged := newFake(t, func(_ context.Context, method string, form url.Values) (int, string, error) {
			switch method {
			case "getMe":
				return ok(me)
			case "setWebhook":
				if refusals--; refusals >= 0 {
					return 429, `{"ok":false,"error_code":429,"description":"Too Many Requests: retry after 3","parameters":{"retry_after":3}}`, nil
				}
				hook.Store(&form)
				return ok(`true`)
			case "getWebhookInfo":
				if hook.Load() == nil {
					return ok(`{"url":"","pending_update_count":0}`)
				}
				return ok(`{"url":"` + hook.Load().Get("url") + `","pending_update_count":3,"last_error_date":5,"last_error_message":"Connection refused"}`)
			}
			return refusal(400, "Bad Request: "+method)
		})
		if err := p.hook.configure(testToken, "https://bot.example/path"); err != nil {
			t.Fatal(err)
		}
		stop := run(t, p, newInbox())
		time.Sleep(10 * time.Second)
		form := hook.Load()
		if form == nil {
			t.Fatal("no webhook is set")
		}
		want := url.Values{
			"url": {"https://bot.example/path/telegram/updates"}, "secret_token": {p.hook.secret},
			"allowed_updates": {allowedUpdates}, "max_connections": {"40"},
		}
		if form.Encode() != want.Encode() {
			t.Errorf("set %v", form)
		}
		if err := p.Health(); err != nil {
			t.Errorf("Health = %v", err)
		}
		time.Sleep(3 * time.Minute)
		if n := strings.Count(logged.String(), "Connection refused"); n != 1 {
			t.Errorf("the log tells %d times of one refusal", n)
		}
		hook.Store(nil)
		time.Sleep(2 * time.Minute)
		if hook.Load() == nil || !strings.Contains(logged.String(), "webhook was removed") {
			t.Error("the webhook is not set again")
		}
		if err := p.Health(); err != nil {
			t.Errorf("Health = %v", err)
		}
		stop()
	})
}

// TestWebhookHealthComesBack has nothing posted to a bot that counts as ill.
func TestWebhookHealthComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := newFake(t, func(_ context.Context, method string, _ url.Values) (int, string, error) {
			switch method {
			case "getMe":
				return ok(me)
			case "getWebhookInfo":
				return ok(`{"url":"https://bot.example/telegram/updates"}`)
			}
			return ok(`true`)
		})
		if err := p.hook.configure(testToken, "https://bot.example"); err != nil {
			t.Fatal(err)
		}
		stop := run(t, p, newInbox(errors.New("disk full")))
		synctest.Wait()
		if w := request(t, p, hello, nil); w.Code != http.StatusServiceUnavailable {
			t.Errorf("not kept: %d", w.Code)
		}
		if err := p.Health(); err == nil || !strings.Contains(err.Error(), "disk full") {
			t.Errorf("Health = %v", err)
		}
		time.Sleep(unhealthyPeriod)
		if err := p.Health(); err != nil {
			t.Errorf("Health later = %v", err)
		}
		stop()
	})
}

// TestPollsComeBackAfterAWebhookOfOurs has a process that is posted its updates set the
// webhook after the poller has begun, as when one follows the other.
func TestPollsComeBackAfterAWebhookOfOurs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := flooded(t, nil)
		p, _ := s.twin(t)
		in := newInbox()
		stop := run(t, p, in)
		defer stop()
		time.Sleep(time.Second)
		if err := p.api.call(t.Context(), "setWebhook", map[string]string{"url": "https://bot.example" + hookPath}, nil); err != nil {
			t.Fatal(err)
		}
		s.say(t, s.ann, "are you there?", nil)
		time.Sleep(5 * time.Minute)
		if got := in.texts(); !slices.Equal(got, []string{"are you there?"}) {
			t.Errorf("accepted %q", got)
		}
		if err := p.Health(); err != nil {
			t.Errorf("Health = %v", err)
		}
	})
}

func TestWebhookSettings(t *testing.T) {
	for _, tt := range []struct {
		public, api string
		fine        bool
	}{
		{"https://bot.example/", "", true},
		{"https://bot.example/", defaultAPIURL, true},
		{"http://bot.example", "", false},
		{"", "", false},
		{"http://10.0.0.1:8787", "http://10.0.0.2:8081", true}, // a server of one's own
		{"", "http://10.0.0.2:8081", false},
	} {
		s := Settings{Token: testToken, APIURL: tt.api, Webhook: true}
		s.Publish(tt.public)
		err := s.Validate()
		if (err == nil) != tt.fine || err != nil && !strings.Contains(err.Error(), "ONECLAW_PUBLIC_URL") {
			t.Errorf("%q with %q: %v", tt.public, tt.api, err)
		}
		if _, err := newPlatform(config{Settings: s}); (err == nil) != tt.fine {
			t.Errorf("New with %q and %q: %v", tt.public, tt.api, err)
		}
	}
}

func TestWebhookDoctor(t *testing.T) {
	s := newPostedEmulated(t)
	settings := Settings{Token: redact.Secret(s.Token()), APIURL: s.url, Webhook: true, public: s.public}
	find := func() string { return fmt.Sprintf("%+v", *settings.Doctor(t.Context())) }
	if got := find(); !strings.Contains(got, "when oneclaw run starts") {
		t.Errorf("before: %s", got)
	}
	stop := run(t, s.join(t, nil), newInbox())
	s.until(t, func(st emulator.State) bool { a, _ := st.Webhook(); return a != "" })
	if got := find(); !strings.Contains(got, "Telegram posts to") {
		t.Errorf("while it runs: %s", got)
	}
	stop()
	s.say(t, s.ann, "hello", nil)
	s.until(t, func(st emulator.State) bool { _, why := st.Webhook(); return why != "" })
	if got := find(); !strings.Contains(got, "503") {
		t.Errorf("while nobody takes updates: %s", got)
	}
	settings.public = "https://elsewhere.example"
	if got := find(); !strings.Contains(got, "another webhook") {
		t.Errorf("elsewhere: %s", got)
	}
}

func FuzzPosted(f *testing.F) {
	f.Add([]byte(hello), "application/json")
	p, err := newPlatform(config{Settings: Settings{Token: testToken, Webhook: true, public: "https://bot.example"}})
	if err != nil {
		f.Fatal(err)
	}
	in := newInbox()
	r := &receiver{platform: p, in: in, seenTexts: newSeenTexts(), slots: make(chan struct{}), decode: decoder{
		self: user{ID: 42, Username: "oneclaw_bot"}, albums: p.albums, forums: p.forums, log: p.log,
	}}
	p.hook.begin(r)
	f.Fuzz(func(t *testing.T, body []byte, kind string) {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, hookPath, bytes.NewReader(body))
		req.Header.Set("Content-Type", kind)
		req.Header.Set(secretHeader, p.hook.secret)
		w := httptest.NewRecorder()
		p.Events().ServeHTTP(w, req)
		if !slices.Contains([]int{200, 400, 413, 415}, w.Code) {
			t.Errorf("answered %d", w.Code)
		}
	})
}
