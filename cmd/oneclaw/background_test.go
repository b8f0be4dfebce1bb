package main

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"oneclaw/internal/emulator/openai"
)

// isTask says for which messages of the kill tests the model starts a background task.
func isTask(message int) bool { return message%5 == 2 }

const (
	workOn    = "work on "
	taskCalls = "task_" // begins the ids of the calls that employing makes for its tasks
)

// taskResult is how the model sees the result of a task for a message, whose number it finds.
var taskResult = regexp.MustCompile(`(?s)\[The background task "[^"]*?(\d+)" is done\..*?\[End of the result\.\]`)

// quotes are what Slack's threads quote above a message, such as the second copy of an answer to /clear.
var quotes = regexp.MustCompile(`(?s)\[quoted, .*? The message itself:\]\s*`)

// employing starts a background task for each message that needs one, and then has another model go on,
// which learns neither of these calls nor more of a result than "result N". A task has one effect. The
// answer to a message whose task was one too many ends with "refused N", with "uncertain N" if kills have cut
// off the call that starts it, or the server of the store failed throughout it.
func employing(effect func(text string) openai.ToolCall, otherwise openai.Responder) openai.Responder {
	return openai.ResponderFunc(func(ctx context.Context, req openai.Request) (openai.Reply, error) {
		call := func(id, name string, arguments map[string]string) (openai.Reply, error) {
			data, err := json.Marshal(arguments)
			return openai.Reply{Calls: []openai.ToolCall{{ID: id, Name: name, Arguments: string(data)}}}, err
		}
		ended, cut := "", false
		made := map[string]bool{} // since the last answer
		all := req.Messages
		req.Messages = nil
		for _, m := range all {
			m.Content = taskResult.ReplaceAllString(quotes.ReplaceAllString(m.Content, ""), "result $1")
			number, own := strings.CutPrefix(m.ToolCallID, taskCalls)
			switch {
			case own && strings.Contains(m.Content, "which is the limit"):
				ended += joined + "refused " + number
			case own && strings.Contains(m.Content, "did not end within"): // the server failed for as long as the call may take
				ended += joined + "uncertain " + number
			case own && !strings.Contains(m.Content, "cut off twice"): // by two kills; it is not run again
			case own && number == "load":
				cut = true
			case own:
				ended += joined + "uncertain " + number
			case m.Role == "assistant" && len(m.ToolCalls) == 0:
				ended, cut, made = "", false, map[string]bool{}
			case m.Role == "assistant":
				own = strings.HasPrefix(m.ToolCalls[0].ID, taskCalls)
				made[m.ToolCalls[0].ID] = true
			}
			if !own {
				req.Messages = append(req.Messages, m)
			}
		}
		said := unanswered(req)
		if _, ok := numberOf(strings.Join(said, " ")); !ok {
			return otherwise.Reply(ctx, req)
		}
		if strings.Contains(said[0], workOn) { // behind a name in a shared chat
			if all[len(all)-1].Role == "user" {
				return openai.Reply{Calls: []openai.ToolCall{effect(said[0])}}, nil
			}
			return openai.Reply{Text: "done"}, nil
		}
		for _, text := range said {
			n, _ := numberOf(text)
			id := taskCalls + strconv.Itoa(n)
			if isOutcome(text) || !isTask(n) || made[id] {
				continue
			}
			if cut {
				ended += joined + "uncertain " + strconv.Itoa(n)
				continue
			}
			if slices.ContainsFunc(req.Tools, func(t openai.Tool) bool { return t.Name == "start_background_task" }) {
				return call(id, "start_background_task", map[string]string{"task": workOn + text, "title": text})
			}
			return call(taskCalls+"load", "load_tool_group", map[string]string{"group_name": "background"})
		}
		if isOutcome(said[0]) { // no approval lasts for what begins so
			return openai.Reply{Text: "re: " + strings.Join(said, joined) + ended}, nil
		}
		reply, err := otherwise.Reply(ctx, req)
		if len(reply.Calls) == 0 {
			reply.Text += ended
		}
		return reply, err
	})
}

// numberOf returns the number at the end of a text.
func numberOf(text string) (int, bool) {
	n, err := strconv.Atoi(text[strings.LastIndex(text, " ")+1:])
	return n, err == nil
}

// writing is an effect that adds a line to a file.
func writing(text string) openai.ToolCall {
	return openai.ToolCall{ID: "call_1", Name: "write_file", Arguments: fmt.Sprintf(`{"path":%q,"content":%q,"mode":"append"}`, effects, text+"\n")}
}

// isOutcome reports whether an answer says so what became of a task or a fact.
func isOutcome(text string) bool {
	return slices.ContainsFunc([]string{"result ", "refused ", "uncertain ", "noted "}, func(kind string) bool { return strings.HasPrefix(text, kind) })
}

// latest is more than is said between two waits for all answers.
const latest = 40

// lately is how many of the last messages of a chat have the answers that unsettled looks at among them:
// the tests often ask, and there are thousands.
const lately = 8 * latest

// unsettled returns which of the latest of so many messages are not answered, and which of the results of
// their tasks.
func unsettled(answers []string, said int) (missing []string) {
	answered := map[string]bool{}
	for _, answer := range answers {
		all, _, _ := saidIn(answer)
		for _, text := range all {
			if n, ok := numberOf(text); ok && !isOutcome(text) {
				text = fmt.Sprint("message ", n)
			}
			answered[text] = true
		}
	}
	for n := max(1, said-latest); n <= said; n++ {
		if text := fmt.Sprint("message ", n); !answered[text] {
			missing = append(missing, text)
		}
		if text := fmt.Sprint("result ", n); isTask(n) && !answered[text] && !answered[fmt.Sprint("refused ", n)] && !answered[fmt.Sprint("uncertain ", n)] {
			missing = append(missing, text)
		}
	}
	return missing
}

// checkTasks checks that each task was refused or its result is in the input of one answer, unless it is
// uncertain whether it was started, and counts the results.
func checkTasks(t complainer, answers []string, said int) (results int) {
	t.Helper()
	in := map[string]string{}
	for _, answer := range answers {
		all, _, _ := saidIn(answer)
		for _, text := range all {
			if other, ok := in[text]; ok && isOutcome(text) && other != strings.Join(all, joined) {
				t.Errorf("%q is in %q and in %q", text, other, all)
			}
			in[text] = strings.Join(all, joined)
		}
	}
	for n := range said + 1 {
		_, done := in[fmt.Sprint("result ", n)]
		_, uncertain := in[fmt.Sprint("uncertain ", n)]
		if _, refused := in[fmt.Sprint("refused ", n)]; isTask(n) && done == refused && !uncertain {
			t.Errorf("task %d: it has a result: %v, it was refused: %v", n, done, refused)
		}
		if done {
			results++
		}
	}
	return results
}

// The offline model starts a task, goes on, and tells the result.
func TestAnOfflineTaskInTheBackground(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	ann := w.person("Ann")
	bot := w.run()
	w.say(ann, "in the background, what time is it in Tokyo?", nil)
	// The card and the result may stand below the answer before the test looks.
	wantIn(t, w.shownTo(bot, ann, "I work on it in the background: what time is it in Tokyo?").Text, "the result comes here")
	wantIn(t, w.shownTo(bot, ann, "From the background, what time is it in Tokyo?").Text, "The clock in Asia/Tokyo says")
}

// sharing starts two tasks for "both KEY", each of which adds a line to the same file once both have begun.
func sharing() openai.Responder {
	var mu sync.Mutex
	meetings := map[string]*meeting{}
	return openai.ResponderFunc(func(ctx context.Context, req openai.Request) (openai.Reply, error) {
		last, at := req.Messages[len(req.Messages)-1], 0
		for i, m := range req.Messages {
			if m.Role == "user" {
				at = i
			}
		}
		said := taskResult.ReplaceAllString(req.Messages[at].Content, "result $1")
		verb, key, _ := strings.Cut(said, " ")
		switch {
		case last.Role == "tool" && last.ToolCallID != "load":
			return openai.Reply{Text: "done: " + said}, nil
		case verb == "append":
			mu.Lock()
			_, key, _ = strings.Cut(key, " ")
			if meetings[key] == nil {
				meetings[key] = newMeeting(2)
			}
			both := meetings[key]
			mu.Unlock()
			both.join(ctx)
			return openai.Reply{Calls: []openai.ToolCall{writing(said)}}, nil
		case verb != "both":
			return openai.Reply{Text: "told " + said}, nil
		case !slices.ContainsFunc(req.Tools, func(t openai.Tool) bool { return t.Name == "start_background_task" }):
			return openai.Reply{Calls: []openai.ToolCall{{ID: "load", Name: "load_tool_group", Arguments: `{"group_name":"background"}`}}}, nil
		}
		var calls []openai.ToolCall
		for n := range 2 {
			calls = append(calls, openai.ToolCall{ID: fmt.Sprint("task_", n), Name: "start_background_task", Arguments: fmt.Sprintf(`{"task":"append %d %s","title":"number %d"}`, n, key, n)})
		}
		return openai.Reply{Calls: calls}, nil
	})
}

// Two tasks of a chat write one file at the same time, and both lines are there. A copy of the person's data
// has the conversations of the tasks.
func TestTasksInTheBackgroundShareTheirFiles(t *testing.T) {
	t.Parallel()
	onBothEngines(t, sharing(), func(s *botChat) {
		bot := s.start()
		s.say(0, "both "+s.t.Name())
		s.one("told result 0")
		s.one("told result 1")
		bot.kill(syscall.SIGKILL)
		s.start()
		s.say(0, s.sign+"export")
		var file []byte
		s.until("the copy", func(all []shown) bool {
			for _, m := range all {
				if strings.HasSuffix(m.file.name, ".zip") {
					file = m.file.data
				}
			}
			return file != nil
		})
		s.holds(file, map[string]string{
			"files/" + effects: "append 0 " + s.t.Name() + "\n", "files/": "append 1 " + s.t.Name() + "\n",
			"conversations/": "done: append 0 ", "conversations/0": "done: append 1 ",
		})
	})
}
