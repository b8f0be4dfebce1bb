package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/telegram"
)

// TestBadAnswersOfAModelAreOneSentence has a server answer what is no answer: the person is
// told one sentence, the log has the cause, and the question is
// still there when the server is well again.
func TestBadAnswersOfAModelAreOneSentence(t *testing.T) {
	t.Parallel()
	bad := map[string]struct {
		answer func(w http.ResponseWriter, r *http.Request)
		cause  string
	}{
		"page":    {answersWith("text/html", 200, "<!doctype html><h1>CAUSE page</h1>"), "CAUSE page"},
		"empty":   {answersWith("text/event-stream", 200, ""), "without a finish reason"},
		"half":    {answersWith("application/json", 200, `{"choices":[{"message":{"content":"CAUSE`), "decode a piece of the reply"},
		"foreign": {answersWith("application/json", 500, `{"error":{"message":"CAUSE 内部错误"}}`), "CAUSE 内部错误"},
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://cause.test/sign-in", http.StatusFound)
		}, "https://cause.test"},
		"stream": {answersWith("text/event-stream", 200, "event: error\ndata: {\"error\":\"CAUSE in a stream\"}\n\n"), "CAUSE in a stream"},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Messages []struct{ Role, Content string }
		}
		if !strings.HasSuffix(r.URL.Path, "/chat/completions") || json.NewDecoder(r.Body).Decode(&body) != nil {
			http.NotFound(w, r)
			return
		}
		last := body.Messages[len(body.Messages)-1].Content
		if kind, ok := bad[strings.TrimPrefix(last, "be ")]; ok {
			kind.answer(w, r)
			return
		}
		var all []string
		for _, m := range body.Messages[1:] {
			if m.Role == "user" {
				all = append(all, m.Content)
			}
		}
		stream(`{"content":` + asJSON(strings.Join(all, "|")) + `}`)(w)
	}))
	t.Cleanup(server.Close)
	w := newHarness(t, openai.Offline{})
	w.env["OPENAI_BASE_URL"] = server.URL + "/v1"
	bot := w.run()
	people := map[string]int64{}
	for kind := range bad {
		people[kind] = w.person(kind)
		w.say(people[kind], "be "+kind, nil)
	}
	sentence := regexp.MustCompile(`^(I could not reach the language model\. Please try again in a minute|The model gave no answer\. Please try again)\.$`)
	for kind, who := range people {
		w.until(bot, "answer to "+kind, func(s telegram.State) bool { return s.CountAnswers(who) > 0 })
		if told := w.answers(who); len(told) != 1 || !sentence.MatchString(told[0]) {
			t.Errorf("%s: told %q", kind, told)
		}
		if got := w.ask(bot, who, "and now?", nil); !strings.Contains(got, "be "+kind) || !strings.Contains(got, "and now?") {
			t.Errorf("%s: the model reads %q", kind, got)
		}
		bot.out.await(t, bad[kind].cause)
	}
}

// answersWith answers with a body.
func answersWith(kind string, status int, body string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func asJSON(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(raw)
}
