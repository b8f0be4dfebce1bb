package surface

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"oneclaw/bridge/chats"
	"oneclaw/internal/markdown"
	"oneclaw/internal/wording"
)

// Methods of streams.
const (
	startStream   = "chat.startStream"
	appendStream  = "chat.appendStream"
	stopStream    = "chat.stopStream"
	sessionStatus = "agents.sessions.setStatus"
)

const (
	// maxStreams bounds how many streams, and ended ones, are remembered.
	maxStreams = 1000
	// maxStreamed bounds the text of a stream, in bytes: Slack takes 12,000 characters.
	maxStreamed = 11_000
	// maxTask bounds the title of a task, in characters.
	maxTask = 200
)

// stream is the state of a streamed message. Slack takes only additions.
type stream struct {
	reply string // the shown part of the current reply
	size  int    // of all that is shown
	task  int    // number of the last task
	doing string // its title; empty if it is over
	in    chats.Chat
}

// Room returns when more of a stream may be shown, as [chats.Previewer] says.
func (s *Surface) Room(chat, id string) (wait time.Duration, streams bool) {
	if !s.Open(id) {
		return 0, false
	}
	if s.cfg.Busy(appendStream) {
		return time.Second, true
	}
	return s.more.Take(chat+"/"+id, appendGap, 0), true
}

// Open reports whether a message is an open stream of this process.
func (s *Surface) Open(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.streams[id] != nil
}

// Was reports whether a message was a stream that this process has ended.
func (s *Surface) Was(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, was := s.ended[id]
	return was
}

// Streams reports whether an answer can be streamed in a chat now. In channels all but one user would
// only see the finished text (agentconnect-md/agentconnect issue 1494), so there messages are edited
// instead.
func (s *Surface) Streams(chat chats.Chat) bool {
	s.mu.Lock()
	many := len(s.streams) >= maxStreams
	s.mu.Unlock()
	return strings.HasPrefix(chat.ID, "D") && chat.Thread != "" && !many && s.may(startStream) && !s.cfg.Busy(startStream) && s.begins.Take(chat.String(), 0, 0) == 0
}

// Begin begins a stream and returns the id of its message.
func (s *Surface) Begin(ctx context.Context, chat chats.Chat, show chats.Preview) (ts string, err error) {
	st := &stream{in: chat}
	next, chunks := st.grow(show)
	if len(chunks) == 0 {
		chunks = append(chunks, slack.NewMarkdownTextChunk(" "))
	}
	err = s.call(ctx, startStream, func(ctx context.Context, api *slack.Client) (err error) {
		_, ts, err = api.StartStreamContext(ctx, chat.ID, slack.MsgOptionTS(chat.Thread), slack.MsgOptionChunks(chunks...))
		return err
	})
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.streams[ts] = &next
	}
	return ts, err
}

// Append appends to a stream. It reports whether the message still is a stream: Slack ends long ones,
// and their messages can be edited from then on.
func (s *Surface) Append(ctx context.Context, channel, id string, show chats.Preview) (streams bool, err error) {
	s.mu.Lock()
	st := s.streams[id]
	s.mu.Unlock()
	if st == nil {
		return false, nil
	}
	next, chunks := st.grow(show)
	if len(chunks) == 0 {
		return true, nil
	}
	err = s.call(ctx, appendStream, func(ctx context.Context, api *slack.Client) error {
		_, _, err := api.AppendStreamContext(ctx, channel, id, slack.MsgOptionChunks(chunks...))
		return err
	})
	if code := s.cfg.Code(err); code == "message_not_in_streaming_state" || permanentRefusals[code] {
		s.forget(id)
		return false, nil
	}
	if err == nil {
		*st = next // an answer has one preview at a time
	}
	return true, err
}

// End ends a stream with what it shows, including one of a former process. It is idempotent.
func (s *Surface) End(ctx context.Context, channel, id string) error {
	s.mu.Lock()
	st := s.streams[id]
	s.mu.Unlock()
	var options []slack.MsgOption
	if st != nil && st.doing != "" {
		options = append(options, slack.MsgOptionChunks(st.over()))
	}
	err := s.cfg.Call(ctx, stopStream, func(ctx context.Context, api *slack.Client) error {
		_, _, err := api.StopStreamContext(ctx, channel, id, options...)
		return err
	})
	switch code := s.cfg.Code(err); {
	case err == nil, st != nil && code != "" && !transientRefusals[code]:
		if s.forget(id); st != nil && s.waits(st.in) {
			s.SetWaiting(ctx, st.in, true) // the end of a stream has reset the session's status
		}
		return nil
	case code == "message_not_in_streaming_state", code == "message_not_found":
		return nil
	}
	return err
}

// transientRefusals lists refusals that do not last.
var transientRefusals = map[string]bool{
	"ratelimited": true, "rate_limited": true, "internal_error": true, "fatal_error": true, "service_unavailable": true, "request_timeout": true,
}

func (s *Surface) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.streams, id)
	if len(s.ended) >= maxStreams {
		clear(s.ended)
	}
	s.ended[id] = struct{}{}
}

// Stopped tells Slack, after its stop button was pressed, that nothing runs in a thread: Slack itself
// ends the stream, and then the session.
func (s *Surface) Stopped(ctx context.Context, channel, thread string) error {
	if !s.may(sessionStatus) {
		return nil
	}
	return s.setSession(ctx, channel, thread, slack.AgentSessionStatusActive)
}

// grow returns the next state of a stream, and the chunks to send.
func (st stream) grow(show chats.Preview) (stream, []slack.StreamChunk) {
	var chunks []slack.StreamChunk
	doing := ""
	if show.Part.Note != chats.NoteMore {
		doing = wording.Clip(show.Part.Note, maxTask)
	}
	if doing != st.doing && st.doing != "" {
		chunks = append(chunks, st.over())
	}
	if doing != st.doing && doing != "" {
		st.task++
		chunks = append(chunks, st.card(doing, slack.TaskCardStatusInProgress))
	}
	st.doing = doing
	reply, begin := settled(show.Growing), ""
	if !strings.HasPrefix(reply, st.reply) {
		if strings.HasPrefix(st.reply, reply) {
			return st, chunks // less is settled than before
		}
		st.reply, begin = "", "\n\n" // another reply begins
	}
	if more := reply[len(st.reply):]; more != "" && st.size+len(more) <= maxStreamed {
		st.reply, st.size = reply, st.size+len(begin)+len(more)
		chunks = append(chunks, slack.NewMarkdownTextChunk(begin+breakMentions(more)))
	}
	return st, chunks
}

func (st stream) card(title string, status slack.TaskCardStatus) slack.StreamChunk {
	card := slack.NewTaskUpdateChunk(strconv.Itoa(st.task), title)
	card.Status = status
	return card
}

// over returns the chunk that completes the current task.
func (st stream) over() slack.StreamChunk { return st.card(st.doing, slack.TaskCardStatusComplete) }

// settled returns the length of the part of a growing text that no longer changes, excluding an
// unfinished link or table row.
func settled(growing string) string {
	shown := markdown.Unfinished(growing)
	n := 0
	for n < len(shown) && n < len(growing) && shown[n] == growing[n] {
		n++
	}
	for n > 0 && n < len(growing) && !utf8.RuneStart(growing[n]) {
		n--
	}
	return strings.TrimRight(growing[:n], "<")
}

// calling matches mentions.
var calling = regexp.MustCompile(`<([!@#])`)

// breakMentions disables mentions: a growing text must not notify users.
func breakMentions(text string) string { return calling.ReplaceAllString(text, "<\u2060$1") }
