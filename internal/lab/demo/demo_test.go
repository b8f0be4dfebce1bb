package demo_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"oneclaw/internal/config"
	"oneclaw/internal/lab/demo"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// page is the demo as a browser talks to it, with a bot of a few lines.
type page struct {
	t       *testing.T
	address string
	client  *http.Client
	env     chan demo.Environment
	routing chan string
}

func newPage(t *testing.T) *page {
	t.Helper()
	p := &page{t: t, env: make(chan demo.Environment, 1), routing: make(chan string, 1), client: &http.Client{Transport: &http.Transport{}}}
	d, err := demo.New(demo.Config{Settings: config.Default(), DataDir: t.TempDir(), Bot: func(ctx context.Context, env demo.Environment) error {
		env.Ready(demo.Controls{
			Routings: []string{"groups", "all"},
			Routing:  func(context.Context) (string, error) { return "groups", nil },
			SetRouting: func(_ context.Context, name string) error {
				if name == "magic" {
					return errors.New("there is no such routing")
				}
				p.routing <- name
				return nil
			},
		})
		p.env <- env
		<-ctx.Done()
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.address = "http://" + l.Addr().String()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx, l) }()
	t.Cleanup(func() {
		p.client.CloseIdleConnections()
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return p
}

// call sends JSON and returns the status and what came back.
func (p *page) call(address string, body any) (int, []byte) {
	p.t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		p.t.Fatal(err)
	}
	return p.send(address, "application/json", "", data)
}

func (p *page) send(address, kind, token string, data []byte) (int, []byte) {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, address, bytes.NewReader(data))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Content-Type", kind)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := p.client.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return res.StatusCode, answer
}

// shown is what the page knows of a pane.
type shown struct {
	Messages []struct {
		ID        string
		Bot       bool
		Text      string
		Forwarded string
		Files     []struct{ Name, Type string }
		Buttons   [][]struct{ Label, Data, Style string }
		Reactions []string
	}
}

type seen struct {
	Bot             string
	Routing         string
	Routings        []string
	Telegram, Slack shown
}

// until reads what the page is told until a condition holds.
func (p *page) until(what string, cond func(seen) bool) seen {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.address+"/events", nil)
	if err != nil {
		p.t.Fatal(err)
	}
	res, err := p.client.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var v seen
		if err := json.Unmarshal([]byte(data), &v); err != nil {
			p.t.Fatal(err)
		}
		if cond(v) {
			return v
		}
	}
	p.t.Fatalf("the page never showed %s: %v", what, lines.Err())
	return seen{}
}

func TestRoutingIsChosenOnThePage(t *testing.T) {
	p := newPage(t)
	v := p.until("a running bot", func(v seen) bool { return v.Bot == "running" })
	if v.Routing != "groups" || len(v.Routings) != 2 {
		t.Errorf("shown is %q of %v", v.Routing, v.Routings)
	}
	if status, text := p.call(p.address+"/routing", map[string]string{"routing": "all"}); status != 204 {
		t.Fatalf("%d %s", status, text)
	}
	if got := <-p.routing; got != "all" {
		t.Errorf("the bot was given %q", got)
	}
	p.until("the new routing", func(v seen) bool { return v.Routing == "all" })
	for _, body := range []any{map[string]string{"routing": "magic"}, "no object"} {
		if status, text := p.call(p.address+"/routing", body); status != 400 {
			t.Errorf("%v: %d %s", body, status, text)
		}
	}
}

func TestButtonsCanBePressed(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	env := <-p.env
	bot := fmt.Sprintf("%s/bot%s/", env.Config.Telegram.APIURL, string(env.Config.Telegram.Token))
	if status, text := p.call(p.address+"/say", map[string]string{"pane": "telegram", "text": "may I?"}); status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	var updates struct {
		Result []struct {
			ID      int `json:"update_id"`
			Message struct{ Chat struct{ ID int64 } }
			Press   struct{ Data string } `json:"callback_query"`
		}
	}
	_, text := p.call(bot+"getUpdates", map[string]any{"timeout": 20})
	if err := json.Unmarshal(text, &updates); err != nil || len(updates.Result) != 1 {
		t.Fatalf("%s, %v", text, err)
	}
	status, text := p.call(bot+"sendMessage", map[string]any{
		"chat_id": updates.Result[0].Message.Chat.ID, "text": "Sure?",
		"reply_markup": map[string]any{"inline_keyboard": [][]any{{map[string]string{"text": "Yes", "callback_data": "y"}, map[string]string{"text": "No", "callback_data": "n"}}}},
	})
	if status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	v := p.until("the buttons", func(v seen) bool {
		return len(v.Telegram.Messages) == 2 && len(v.Telegram.Messages[1].Buttons) == 1
	})
	m := v.Telegram.Messages[1]
	if m.Buttons[0][1].Label != "No" || m.Buttons[0][1].Data != "n" {
		t.Errorf("shown are %+v", m.Buttons)
	}
	if status, text := p.call(p.address+"/press", map[string]string{"pane": "telegram", "message": m.ID, "data": "n"}); status != 204 {
		t.Fatalf("%d %s", status, text)
	}
	_, text = p.call(bot+"getUpdates", map[string]any{"timeout": 20, "offset": updates.Result[0].ID + 1})
	if err := json.Unmarshal(text, &updates); err != nil || len(updates.Result) != 1 || updates.Result[0].Press.Data != "n" {
		t.Errorf("the bot was told %s, %v", text, err)
	}

	p.slackButtons(env)
	for _, bad := range []map[string]string{
		{"pane": "telegram", "message": m.ID, "data": "forged"},
		{"pane": "telegram", "message": "x", "data": "n"},
		{"pane": "slack", "message": "1.2", "data": "n"},
		{"pane": "mail"},
	} {
		if status, _ := p.call(p.address+"/press", bad); status != 400 {
			t.Errorf("%v: status %d", bad, status)
		}
	}
}

// slackButtons posts a card as a bot would and presses it on the page.
func (p *page) slackButtons(env demo.Environment) {
	p.t.Helper()
	_, text := p.call(p.address+"/say", map[string]string{"pane": "slack", "text": "may I?"})
	var said struct{ Channel, TS string }
	if err := json.Unmarshal(text, &said); err != nil || said.TS == "" {
		p.t.Fatalf("%s, %v", text, err)
	}
	form := url.Values{"channel": {said.Channel}, "thread_ts": {said.TS}, "text": {"Sure?"}, "blocks": {
		`[{"type":"section","text":{"type":"mrkdwn","text":"Sure?"}},{"type":"actions","elements":[
		{"type":"button","action_id":"a","value":"y","text":{"type":"plain_text","text":"Yes"},"style":"primary"}]}]`,
	}}
	status, text := p.send(strings.TrimSuffix(env.Config.Slack.APIURL, "/")+"/chat.postMessage", "application/x-www-form-urlencoded", string(env.Config.Slack.BotToken), []byte(form.Encode()))
	if status != 200 || !strings.Contains(string(text), `"ok":true`) {
		p.t.Fatalf("%d %s", status, text)
	}
	v := p.until("the card", func(v seen) bool { return len(v.Slack.Messages) == 2 && len(v.Slack.Messages[1].Buttons) == 1 })
	card := v.Slack.Messages[1]
	if b := card.Buttons[0][0]; b.Label != "Yes" || b.Data != "y" || b.Style != "primary" || card.Text != "Sure?" {
		p.t.Errorf("shown is %+v", card)
	}
	if status, text := p.call(p.address+"/press", map[string]string{"pane": "slack", "message": card.ID, "data": "y"}); status != 204 {
		p.t.Errorf("%d %s", status, text)
	}
}

// Pictures and recordings are served as what they are, and everything else for saving only: no file that
// comes into a chat acts as a page of the demo.
func TestFilesOfMessagesAreServed(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	picture := []byte("\x89PNG\r\n\x1a\n")
	files := []map[string]any{
		{"name": "a.png", "type": "image/png", "data": picture},
		{"name": "a.html", "type": "text/html", "data": []byte("<script>alert(1)</script>")},
		{"name": "a.svg", "type": "image/svg+xml", "data": []byte("<svg xmlns='http://www.w3.org/2000/svg'/>")},
	}
	if status, text := p.call(p.address+"/say", map[string]any{"pane": "slack", "text": "look", "files": files}); status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	v := p.until("the files", func(v seen) bool { return len(v.Slack.Messages) == 1 && len(v.Slack.Messages[0].Files) == 3 })
	m := v.Slack.Messages[0]
	for n, want := range []struct{ kind, disposition string }{{"image/png", ""}, {"application/octet-stream", "attachment; filename=a.html"}, {"application/octet-stream", "attachment; filename=a.svg"}} {
		address := fmt.Sprintf("%s/file?pane=slack&place=&message=%s&n=%d", p.address, m.ID, n)
		status, header, body := p.get(address)
		if status != 200 || header.Get("Content-Type") != want.kind || header.Get("Content-Disposition") != want.disposition || header.Get("X-Content-Type-Options") != "nosniff" || !bytes.Equal(body, files[n]["data"].([]byte)) {
			t.Errorf("%s: %d %v %q", m.Files[n].Name, status, header, body)
		}
	}
	if m.Files[0].Type != "image/png" || m.Files[1].Type != "" {
		t.Errorf("shown are %+v", m.Files)
	}
	for _, query := range []string{"", "pane=slack&message=" + m.ID + "&n=3", "pane=slack&message=" + m.ID + "&n=-1", "pane=slack&message=1.2&n=0", "pane=telegram&message=" + m.ID + "&n=0"} {
		if status, _, _ := p.get(p.address + "/file?" + query); status != 404 {
			t.Errorf("%q: status %d", query, status)
		}
	}
}

func (p *page) get(address string) (int, http.Header, []byte) {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, address, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	res, err := p.client.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return res.StatusCode, res.Header, body
}

func TestReactionsAreShown(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	env := <-p.env
	var said struct {
		Channel, TS string
		ID          int64 `json:"message_id"`
	}
	tell := func(pane string) {
		t.Helper()
		status, text := p.call(p.address+"/say", map[string]string{"pane": pane, "text": "hello"})
		if err := json.Unmarshal(text, &said); status != 200 || err != nil {
			t.Fatalf("%d %s, %v", status, text, err)
		}
	}
	tell("slack")
	form := url.Values{"channel": {said.Channel}, "timestamp": {said.TS}, "name": {"eyes"}}
	_, text := p.send(strings.TrimSuffix(env.Config.Slack.APIURL, "/")+"/reactions.add", "application/x-www-form-urlencoded", string(env.Config.Slack.BotToken), []byte(form.Encode()))
	if !strings.Contains(string(text), `"ok":true`) {
		t.Fatalf("%s", text)
	}
	tell("telegram")
	v := p.until("the messages", func(v seen) bool { return len(v.Telegram.Messages) == 1 && len(v.Slack.Messages) == 1 })
	bot := fmt.Sprintf("%s/bot%s/", env.Config.Telegram.APIURL, string(env.Config.Telegram.Token))
	_, text = p.call(bot+"getUpdates", map[string]any{"timeout": 20})
	var updates struct {
		Result []struct {
			Message struct{ Chat struct{ ID int64 } }
		}
	}
	if err := json.Unmarshal(text, &updates); err != nil || len(updates.Result) != 1 {
		t.Fatalf("%s, %v", text, err)
	}
	if status, text := p.call(bot+"setMessageReaction", map[string]any{
		"chat_id": updates.Result[0].Message.Chat.ID, "message_id": v.Telegram.Messages[0].ID, "reaction": []map[string]string{{"type": "emoji", "emoji": "👀"}},
	}); status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	p.until("the reactions", func(v seen) bool {
		return fmt.Sprint(v.Slack.Messages[0].Reactions, v.Telegram.Messages[0].Reactions) == "[eyes] [👀]"
	})
}

func TestCellsThatArePastedInSlackAreATable(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	if status, text := p.call(p.address+"/say", map[string]string{"pane": "slack", "text": "which is dearer?\nItem\tPrice\ntea\t3"}); status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	v := p.until("the message", func(v seen) bool { return len(v.Slack.Messages) == 1 })
	if got := v.Slack.Messages[0].Text; !strings.HasSuffix(got, "which is dearer?\nItem | Price\ntea | 3") {
		t.Errorf("shown is %q", got)
	}
}

// What a phone can send besides words and files is sent, shown, and given to the bot as Telegram gives it.
func TestPlacesContactsPollsStickersAndForwardsAreSent(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	env := <-p.env
	bot := fmt.Sprintf("%s/bot%s/", env.Config.Telegram.APIURL, string(env.Config.Telegram.Token))
	for i, tc := range []struct{ sample, text, shown, given string }{
		{"place", "", "📍 Harbour Café, 1 Quay Street, London", `"venue":{"location":{"latitude":51.5079`},
		{"contact", "", "👤 Iris Holm, +442079460123", `"contact":{"phone_number":"+442079460123"`},
		{"poll", "", "📊 Where do we eat?\n○ Harbour Café (2)\n○ At home (1)", `"poll":{"id":"1","question":"Where do we eat?"`},
		{"sticker", "", "👍", `"sticker":{"file_id":"sticker-1"`},
		{"forward", "The train is late.", "The train is late.", `"forward_origin":{"type":"user"`},
	} {
		if status, text := p.call(p.address+"/say", map[string]string{"pane": "telegram", "sample": tc.sample, "text": tc.text}); status != 200 {
			t.Fatalf("%s: %d %s", tc.sample, status, text)
		}
		v := p.until(tc.sample, func(v seen) bool { return len(v.Telegram.Messages) == i+1 })
		if got := v.Telegram.Messages[i].Text; got != tc.shown {
			t.Errorf("%s: shown is %q, want %q", tc.sample, got, tc.shown)
		}
		if _, text := p.call(bot+"getUpdates", map[string]any{"timeout": 20, "offset": i + 1}); !strings.Contains(string(text), tc.given) {
			t.Errorf("%s: the bot was given %s, want %s", tc.sample, text, tc.given)
		}
	}
	v := p.until("the forwarded message", func(v seen) bool { return len(v.Telegram.Messages) == 5 })
	if got := v.Telegram.Messages[4].Forwarded; got != "Anna Berg" {
		t.Errorf("forwarded from %q", got)
	}
	for _, bad := range []map[string]string{{"pane": "telegram", "sample": "game"}, {"pane": "slack", "sample": "place"}} {
		if status, _ := p.call(p.address+"/say", bad); status != 400 {
			t.Errorf("%v: status %d", bad, status)
		}
	}
}

func TestMessagesAreEdited(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	for _, pane := range []string{"telegram", "slack"} {
		shown := func(v seen) shown {
			if pane == "slack" {
				return v.Slack
			}
			return v.Telegram
		}
		if status, text := p.call(p.address+"/say", map[string]string{"pane": pane, "text": "helo"}); status != 200 {
			t.Fatalf("%d %s", status, text)
		}
		v := p.until("the message", func(v seen) bool { return len(shown(v).Messages) == 1 })
		if status, text := p.call(p.address+"/say", map[string]string{"pane": pane, "text": "hello", "edit": shown(v).Messages[0].ID}); status != 200 {
			t.Fatalf("%d %s", status, text)
		}
		p.until("the edit", func(v seen) bool {
			return len(shown(v).Messages) == 1 && strings.HasSuffix(shown(v).Messages[0].Text, "hello")
		})
		if status, _ := p.call(p.address+"/say", map[string]string{"pane": pane, "text": "hello", "edit": "77.1"}); status != 400 {
			t.Errorf("%s: an unknown message was edited: %d", pane, status)
		}
	}
}
