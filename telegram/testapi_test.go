package telegram

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"testing"

	"oneclaw/bridge/chats"
	"oneclaw/internal/emulator/npmtest"
	"oneclaw/internal/redact"
)

// testAPIScript is a server that others have made for the tests of their bots (telegram-test-api), with a user: she
// writes twice, and sees the answer change. The ids of its button presses are numbers, which those of Telegram are not.
const testAPIScript = `
const assert = require("node:assert/strict");
const TelegramServer = require("telegram-test-api");
const { token, port } = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
async function talk() {
  const server = new TelegramServer({ host: "127.0.0.1", port, storeTimeout: 600 });
  await server.start();
  const ann = server.getClient(token, { timeout: 60000 });
  await ann.sendMessage(ann.makeMessage("hello"));
  const [answer] = (await ann.getUpdates()).result;
  assert.deepEqual([answer.message.text, answer.message.parse_mode], ["<b>hello</b>", "HTML"]);
  const edited = new Promise((done) => server.on("EditedMessageText", done));
  await ann.sendMessage(ann.makeMessage("go on"));
  await edited;
  const history = await ann.getUpdatesHistory();
  assert.equal(history.find((u) => u.messageId === answer.messageId).message.text, "<b>Done</b>");
}
talk().then(() => process.exit(0), (error) => (console.error(error), process.exit(1)));
`

// answering answers the first message in bold with a button, and changes the answer at the next.
type answering struct {
	*inbox
	t      *testing.T
	p      *platform
	answer string
}

func (a *answering) Accept(ctx context.Context, messages ...chats.Message) error {
	for _, m := range messages {
		to := chats.Address{Chat: m.Chat}
		var err error
		if a.answer == "" {
			a.answer, err = a.p.Send(ctx, to, chats.Part{Text: "<b>" + m.Text + "</b>", Plain: m.Text, Buttons: [][]chats.Button{{{Label: "Yes", Data: "yes"}}}})
		} else {
			err = a.p.Edit(ctx, to, a.answer, chats.Part{Text: "<b>Done</b>", Plain: "Done"})
		}
		if err != nil {
			a.t.Error(err)
		}
	}
	return a.inbox.Accept(ctx, messages...)
}

func TestTheBotTalksToAServerOfOthers(t *testing.T) {
	t.Parallel()
	var lc net.ListenConfig
	ln, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := ln.Addr().(*net.TCPAddr).Port
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	p, err := newPlatform(config{Settings: Settings{Token: redact.Secret(testToken), APIURL: "http://127.0.0.1:" + strconv.Itoa(port)}, httpClient: client})
	if err != nil {
		t.Fatal(err)
	}
	stop := run(t, p, &answering{inbox: newInbox(), t: t, p: p})
	defer stop()
	npmtest.Run(t, testAPIScript, map[string]any{"token": testToken, "port": port}, "telegram-test-api")
}
