package bill

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"oneclaw/toolgroups"
)

// player is the scripted model behind a client: it reads each request as a server would, stores
// its bytes, and replies with the conversation's next step.
type player struct {
	conversation Conversation
	meter        *meter
	groups       map[string]string     // by tool
	claudeTools  map[string]claudeTool // by their JSON
	turn, step   int
	// described, sought and loaded are set once the tools of this step were described, searched for,
	// or loaded with their groups.
	described, sought, loaded bool
	lastID                    int
	// elapsed is the time from the beginning to the next request.
	elapsed time.Duration

	requests []request
	err      error
}

type request struct {
	at            time.Duration
	segments      []segment // the tools, then the messages
	marks         []bool    // Anthropic's cache marks, by segment
	cachedForHour bool      // cached for an hour
	output        string
	turn          int // the turn of the conversation
}

// now returns the time in the conversation.
func (p *player) now() time.Time { return time.Unix(0, 0).UTC().Add(time.Hour + p.elapsed) }

// requestInterval is the time between two requests of a turn.
const requestInterval = 10 * time.Second

// RoundTrip implements http.RoundTripper.
func (p *player) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, fmt.Errorf("bill: read the request: %w", err)
	}
	p.elapsed += requestInterval
	var stream string
	if strings.HasSuffix(r.URL.Path, "/messages") {
		stream, err = p.answerMessages(body)
	} else {
		stream, err = p.answerChat(body)
	}
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: http.StatusOK, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(stream)),
	}, nil
}

// answerChat answers a request to Chat Completions.
func (p *player) answerChat(body []byte) (string, error) {
	segments, view, err := p.splitChat(body)
	if err != nil {
		return "", err
	}
	text, calls := p.nextReply(view)
	if p.err != nil {
		return "", p.err
	}
	stream, output, err := encodeChat(text, calls)
	p.requests = append(p.requests, request{at: p.elapsed, segments: segments, output: output, turn: p.turn})
	return stream, err
}

// splitChat splits a request into its tools and messages, byte for byte.
func (p *player) splitChat(body []byte) (segments []segment, seen toolView, err error) {
	var parts struct{ Tools, Messages []json.RawMessage }
	if err := json.Unmarshal(body, &parts); err != nil {
		return nil, seen, fmt.Errorf("bill: decode the request: %w", err)
	}
	seen.direct = map[string]bool{}
	for _, raw := range slices.Concat(parts.Tools, parts.Messages) {
		segments = append(segments, p.meter.intern(string(raw)+","))
		var part struct {
			Role, Content string
			Function      struct{ Name string }
		}
		if err := json.Unmarshal(raw, &part); err != nil {
			return nil, seen, fmt.Errorf("bill: decode the request: %w", err)
		}
		switch part.Role {
		case "":
			seen.direct[part.Function.Name] = true
		case "tool":
			seen.texts = append(seen.texts, part.Content)
		}
	}
	return segments, seen, nil
}

// plannedCall is a call as the model writes it.
type plannedCall struct{ id, name, arguments string }

// errNoAnswer ends a turn that has no answer in the conversation.
var errNoAnswer = errors.New("bill: the turn has no answer")

// nextReply returns the model's next reply: the answer, the calls of the step, or the calls that
// make the tools of the step callable.
func (p *player) nextReply(view toolView) (string, []plannedCall) {
	turn := p.conversation.Turns[p.turn]
	if p.step == len(turn.Steps) {
		if turn.Answer == "" {
			p.err = errNoAnswer
		}
		return turn.Answer, nil
	}
	step := turn.Steps[p.step]
	var missing []Call
	var calls []plannedCall
	for _, c := range step.Calls {
		switch {
		case view.direct[c.Tool], view.deferred[c.Tool]:
			calls = append(calls, p.encodeCall(c.Tool, c.arguments()))
		case view.direct[toolgroups.ToolCall] && view.knows(c.Tool):
			calls = append(calls, p.encodeCall(toolgroups.ToolCall, map[string]any{"name": c.Tool, "arguments": c.arguments()}))
		default:
			missing = append(missing, c)
		}
	}
	if len(missing) > 0 {
		return "", p.obtain(missing, view)
	}
	p.step++
	p.described, p.sought, p.loaded = false, false, false
	return step.Text, calls
}

// obtain makes tools callable. Where a search is offered, it asks once for the parameters of tools that
// a result names, and searches once. Otherwise it loads the groups of the tools.
func (p *player) obtain(missing []Call, view toolView) []plannedCall {
	var wanted []string // queries, or groups
	want := func(text string) {
		if !slices.Contains(wanted, text) {
			wanted = append(wanted, text)
		}
	}
	if view.direct[toolgroups.ToolSearch] && !p.described && !slices.ContainsFunc(missing, func(c Call) bool { return !view.mentions(c.Tool) }) {
		p.described = true
		for _, c := range missing {
			want(c.Tool)
		}
		return []plannedCall{p.encodeCall(toolgroups.ToolDescribe, map[string]any{"names": wanted})}
	}
	if view.direct[toolgroups.ToolSearch] && !p.sought {
		p.sought = true
		for _, c := range missing {
			want(cmp.Or(c.Query, strings.ReplaceAll(c.Tool, "_", " ")))
		}
		if len(wanted) > 1 {
			return []plannedCall{p.encodeCall(toolgroups.ToolSearch, map[string]any{"queries": wanted})}
		}
		return []plannedCall{p.encodeCall(toolgroups.ToolSearch, map[string]any{"query": wanted[0]})}
	}
	if p.loaded {
		p.err = fmt.Errorf("bill: %s, turn %d: the model cannot reach %s", p.conversation.Name, p.turn+1, missing[0].Tool)
		return nil
	}
	p.loaded = true
	for _, c := range missing {
		want(cmp.Or(p.groups[c.Tool], "none"))
	}
	var calls []plannedCall
	for _, group := range wanted {
		calls = append(calls, p.encodeCall(toolgroups.LoadToolGroup, map[string]any{"group_name": group}))
	}
	return calls
}

// encodeCall encodes a call. It records an encoding error in the player.
func (p *player) encodeCall(name string, arguments map[string]any) plannedCall {
	p.lastID++
	text, err := toolgroups.EncodeJSON(arguments)
	p.err = errors.Join(p.err, err)
	return plannedCall{id: fmt.Sprintf("call_%03d", p.lastID), name: name, arguments: string(text)}
}

// toolView describes the tools that a request offers, and the tool results that it contains.
type toolView struct {
	direct map[string]bool
	// deferred are the tools that the provider's search can find.
	deferred map[string]bool
	texts    []string // tool results in the request
}

// knows reports whether a load or a search has shown the parameters of a tool.
func (v toolView) knows(tool string) bool {
	return slices.ContainsFunc(v.texts, func(text string) bool {
		return strings.Contains(text, `"name":"`+tool+`","use":`) || strings.Contains(text, `"`+tool+`":{`) ||
			strings.Contains(text, "\n- "+tool+"(")
	})
}

// mentions reports whether a search result names a tool.
func (v toolView) mentions(tool string) bool {
	return slices.ContainsFunc(v.texts, func(text string) bool { return strings.Contains(text, `"`+tool+`"`) })
}

// encodeChat encodes a reply as server-sent events, and returns the billed output.
func encodeChat(text string, calls []plannedCall) (stream, output string, err error) {
	finish, pieces := "stop", []any{}
	output = text
	for i, c := range calls {
		finish = "tool_calls"
		output += c.name + c.arguments
		pieces = append(pieces, map[string]any{
			"index": i, "id": c.id, "type": "function", "function": map[string]string{"name": c.name, "arguments": c.arguments},
		})
	}
	if output == "" {
		return "", "", errors.New("bill: an empty reply")
	}
	chunk, err := toolgroups.EncodeJSON(map[string]any{"choices": []any{
		map[string]any{"delta": map[string]any{"content": text, "tool_calls": pieces}, "finish_reason": finish},
	}})
	return "data: " + string(chunk) + "\n\ndata: [DONE]\n\n", output, err
}
