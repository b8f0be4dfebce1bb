package slack

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"oneclaw/bridge/chats"
	emulator "oneclaw/internal/emulator/slack"
)

// recorder keeps the requests that go through it.
type recorder struct {
	base http.Transport

	mu   sync.Mutex
	seen []*http.Request // with bodies that can be read
	said []string        // what they were answered
}

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	kept, sent := req.Clone(req.Context()), req.Clone(req.Context())
	kept.Body = http.NoBody
	if req.Body != nil && req.Body != http.NoBody {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		kept.Body, sent.Body = io.NopCloser(bytes.NewReader(body)), io.NopCloser(bytes.NewReader(body))
	}
	resp, err := r.base.RoundTrip(sent)
	if err != nil {
		return nil, err
	}
	answer, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(answer))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen, r.said = append(r.seen, kept), append(r.said, string(answer))
	return resp, nil
}

// Slack's own library has the token in the header of each call, where proxies in
// front of Slack look for it.
func TestTheHeaderOfEachCallHasTheToken(t *testing.T) {
	over := &recorder{}
	t.Cleanup(over.base.CloseIdleConnections)
	f := setup(t, quick(), func(c *config) { c.httpClient = &http.Client{Transport: over} })
	to := chats.Address{Chat: chatOf(f.channel, "")}
	part := chats.Part{Text: "see https://a.test", Plain: "see https://a.test"}
	_, sent := f.p.Send(t.Context(), to, part)
	_, ephemeral := f.p.SendEphemeral(t.Context(), to, f.user, part)
	_, filed := f.p.SendFile(t.Context(), to, out("a.txt", "a", []byte("x")))
	if err := errors.Join(f.p.Ping(t.Context()), sent, ephemeral, filed); err != nil {
		t.Fatal(err)
	}
	calls := map[string]string{}
	for _, req := range over.seen {
		body, _ := io.ReadAll(req.Body)
		if method, isCall := strings.CutPrefix(req.URL.Path, "/api/"); isCall {
			calls[method] = string(body)
		}
		if req.Header.Get("Authorization") != "Bearer "+f.BotToken() {
			t.Errorf("%s has no token in its header", req.URL.Path)
		}
	}
	if len(calls) != 5 {
		t.Errorf("called %d methods", len(calls))
	}
	// Only messages that stay have links that could unfold.
	for method, want := range map[string]bool{postMessage: true, postEphemeral: false} {
		if got := strings.Contains(calls[method], "unfurl_"); got != want {
			t.Errorf("%s is told of links: %v", method, got)
		}
	}
}

// What takes uploads is a host of its own. Where it does not, messages go on.
func TestARefusedUploadIsNoOutageOfSlack(t *testing.T) {
	f := setup(t, quick(), nil)
	for _, fault := range []emulator.Fault{
		{Effect: emulator.ServerError, Status: 403}, {Effect: emulator.ServerError, Status: 404}, {Effect: emulator.ServerError}, {Effect: emulator.CutBefore},
	} {
		fault.Method, fault.Times = uploadMethod, 1
		f.inject(fault)
		_, err := f.sendFile(chatOf(f.dm, ""), out("a.txt", "a", []byte("x")))
		if failure, ok := errors.AsType[*chats.SendError](err); !ok || failure.Outcome != chats.Later || failure.Outage {
			t.Errorf("status %d, %s: %+v", fault.Status, fault.Effect, err)
		}
	}
	f.inject(emulator.Fault{Method: "files.getUploadURLExternal", Effect: emulator.ServerError, Times: 1})
	_, err := f.sendFile(chatOf(f.dm, ""), out("a.txt", "a", []byte("x")))
	if failure, ok := errors.AsType[*chats.SendError](err); !ok || !failure.Outage {
		t.Errorf("trouble of Slack itself: %+v", err)
	}
}
