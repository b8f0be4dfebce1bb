package telegram

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oneclaw/bridge/chats"
	emulator "oneclaw/internal/emulator/telegram"
	"oneclaw/internal/redact"
)

// TestFaultsAtEveryRequest lets every few calls go wrong in one of all the ways, in
// several chats at once, with a real bridge. Each message must be answered in order; a
// second copy of an answer is there only where the bot was not told of the one before,
// and says so.
func TestFaultsAtEveryRequest(t *testing.T) {
	t.Parallel()
	for seed := range 5 {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const each = 25
				s := flooded(t, nil)
				s.faultsEverywhere(t, seed)
				p, err := newPlatform(config{Settings: Settings{Token: redact.Secret(s.Token()), APIURL: "http://telegram.test"}, httpClient: &http.Client{Transport: inMemory(s)}})
				if err != nil {
					t.Fatal(err)
				}
				stop := runBridge(t, p)
				defer stop()
				chats := []int64{s.ann}
				for range 3 {
					chats = append(chats, s.chat(t, emulator.ChatSpec{Kind: emulator.Group, User: s.ann}))
				}
				for i := range each {
					for _, chat := range chats {
						s.say(t, chat, fmt.Sprintf("@oneclaw_bot question %02d", i), nil)
					}
					time.Sleep(time.Duration(i%5) * 3 * time.Second)
				}
				time.Sleep(2 * time.Hour)
				for _, chat := range chats {
					checkCopies(t, s.answers(chat), each)
				}
			})
		})
	}
}

func (s *emulated) faultsEverywhere(t *testing.T, seed int) {
	t.Helper()
	inject := func(method string, every, count int, effects ...emulator.Effect) {
		for i := range count {
			s.inject(t, emulator.Fault{Method: method, Nth: 1 + seed + every*i, Effect: effects[(seed+i)%len(effects)], RetryAfter: 1 + i%4})
		}
	}
	inject("sendMessage", 3, 30, emulator.CutAfter, emulator.ServerError, emulator.TooManyRequests, emulator.CutBefore, emulator.BadJSON)
	inject("getUpdates", 2, 30, emulator.Duplicate, emulator.Conflict, emulator.CutAfter, emulator.TooManyRequests, emulator.BadJSON, emulator.ServerError, emulator.CutBefore)
	inject("sendChatAction", 2, 10, emulator.ServerError, emulator.CutAfter, emulator.TooManyRequests)
}

// checkCopies checks the answers of one chat, those that may be repeats among them.
func checkCopies(t *testing.T, answers []emulator.Message, each int) {
	t.Helper()
	at := 0
	for i := range each {
		want := fmt.Sprintf("re: question %02d", i)
		copies := 0
		for ; at < len(answers) && strings.HasPrefix(answers[at].Text, want); at++ {
			marked := strings.Contains(answers[at].Text, chats.RepeatNotice)
			if copies > 0 && (!marked || answers[at-1].DroppedResponses == 0) {
				t.Errorf("%q stands there again; it is marked: %v, the bot was told of the one before: %v", want, marked, answers[at-1].DroppedResponses == 0)
			}
			copies++
		}
		if copies == 0 {
			t.Errorf("%q is not in its place", want)
		}
	}
	for ; at < len(answers); at++ {
		t.Errorf("%q stands where it should not", answers[at].Text)
	}
}
