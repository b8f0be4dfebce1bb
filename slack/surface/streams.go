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

// Methods of streams and of agent sessions.
const (
	startStream   = "chat.startStream"
	appendStream  = "chat.appendStream"
	stopStream    = "chat.stopStream"
	sessionStatus = "agents.sessions.setStatus"
)

const (
	// maxStreams bounds the open and ended streams in memory.
	maxStreams = 1000
	// maxStreamed bounds the text of a stream, in bytes. Slack allows 12,000 characters.
	maxStreamed = 11_000
	// maxTask bounds the title of a task, in characters.
	maxTask = 200
)

// stream is the state of a streamed message. Slack accepts only additions.
type stream struct {
	reply      string // the shown part of the current reply
	size       int    // of all shown text, in bytes
	taskNumber int    // number of the last task
	taskTitle  string // title of the current task; empty if it has ended
	chat       chats.Chat
}

// Room returns when more of a stream may be shown; see [chats.Previewer].
func (s *Surface) Room(chat, id string) (wait time.Duration, streams bool) {
	if !s.IsOpen(id) {
		return 0, false
	}
	if s.cfg.Busy(appendStream) {
		return time.Second, true
	}
	return s.appendLimiter.Take(chat+"/"+id, appendGap, 0), true
}

// IsOpen reports whether a message is an open stream of this process.
func (s *Surface) IsOpen(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.streams[id] != nil
}

// WasStream reports whether a message was a stream that this process has ended.
func (s *Surface) WasStream(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, was := s.ended[id]
	return was
}

// CanStream reports whether an answer can be streamed in a chat now. In channels all but one user would
// only see the finished text (agentconnect-md/agentconnect issue 1494), so messages are edited there
// instead.
func (s *Surface) CanStream(chat chats.Chat) bool {
	s.mu.Lock()
	many := len(s.streams) >= maxStreams
	s.mu.Unlock()
	return strings.HasPrefix(chat.ID, "D") && chat.Thread != "" && !many && s.canUse(startStream) && !s.cfg.Busy(startStream) && s.startLimiter.Take(chat.String(), 0, 0) == 0
}

// Begin begins a stream and returns the id of its message.
func (s *Surface) Begin(ctx context.Context, chat chats.Chat, show chats.Preview) (ts string, err error) {
	st := &stream{chat: chat}
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
		s.markEnded(id)
		return false, nil
	}
	if err == nil {
		*st = next // an answer has one preview at a time
	}
	return true, err
}

// End ends a stream with the content that it shows, even one of an earlier process. It is idempotent.
func (s *Surface) End(ctx context.Context, channel, id string) error {
	s.mu.Lock()
	st := s.streams[id]
	s.mu.Unlock()
	var options []slack.MsgOption
	if st != nil && st.taskTitle != "" {
		options = append(options, slack.MsgOptionChunks(st.completionChunk()))
	}
	err := s.cfg.Call(ctx, stopStream, func(ctx context.Context, api *slack.Client) error {
		_, _, err := api.StopStreamContext(ctx, channel, id, options...)
		return err
	})
	switch code := s.cfg.Code(err); {
	case err == nil, st != nil && code != "" && !transientRefusals[code]:
		if s.markEnded(id); st != nil && s.isWaiting(st.chat) {
			s.SetWaiting(ctx, st.chat, true) // the end of a stream has reset the session's status
		}
		return nil
	case code == "message_not_in_streaming_state", code == "message_not_found":
		return nil
	}
	return err
}

// transientRefusals lists the error codes of refusals that do not last.
var transientRefusals = map[string]bool{
	"ratelimited": true, "rate_limited": true, "internal_error": true, "fatal_error": true, "service_unavailable": true, "request_timeout": true,
}

func (s *Surface) markEnded(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.streams, id)
	if len(s.ended) >= maxStreams {
		clear(s.ended)
	}
	s.ended[id] = struct{}{}
}

// MarkIdle tells Slack, after its stop button was pressed, that nothing runs in a thread: Slack itself
// ends the stream, and then the session.
func (s *Surface) MarkIdle(ctx context.Context, channel, thread string) error {
	if !s.canUse(sessionStatus) {
		return nil
	}
	return s.setSessionStatus(ctx, channel, thread, slack.AgentSessionStatusActive)
}

// grow returns the next state of a stream, and the chunks to send.
func (st stream) grow(show chats.Preview) (stream, []slack.StreamChunk) {
	var chunks []slack.StreamChunk
	doing := ""
	if show.Part.Note != chats.NoteMore {
		doing = wording.Clip(show.Part.Note, maxTask)
	}
	if doing != st.taskTitle && st.taskTitle != "" {
		chunks = append(chunks, st.completionChunk())
	}
	if doing != st.taskTitle && doing != "" {
		st.taskNumber++
		chunks = append(chunks, st.taskChunk(doing, slack.TaskCardStatusInProgress))
	}
	st.taskTitle = doing
	reply, begin := stablePrefix(show.UnclosedText), ""
	if !strings.HasPrefix(reply, st.reply) {
		if strings.HasPrefix(st.reply, reply) {
			return st, chunks // less of the text is stable than before
		}
		st.reply, begin = "", "\n\n" // another reply begins
	}
	if more := reply[len(st.reply):]; more != "" && st.size+len(more) <= maxStreamed {
		st.reply, st.size = reply, st.size+len(begin)+len(more)
		chunks = append(chunks, slack.NewMarkdownTextChunk(begin+picturePattern.ReplaceAllString(breakMentions(more), "[")))
	}
	return st, chunks
}

func (st stream) taskChunk(title string, status slack.TaskCardStatus) slack.StreamChunk {
	card := slack.NewTaskUpdateChunk(strconv.Itoa(st.taskNumber), title)
	card.Status = status
	return card
}

// completionChunk returns the chunk that completes the current task.
func (st stream) completionChunk() slack.StreamChunk {
	return st.taskChunk(st.taskTitle, slack.TaskCardStatusComplete)
}

// stablePrefix returns the part of a growing text that no longer changes, without an unfinished link or
// table row, and without marks at its end that can begin a mention or a picture.
func stablePrefix(growing string) string {
	shown := markdown.CloseUnfinished(growing)
	n := 0
	for n < len(shown) && n < len(growing) && shown[n] == growing[n] {
		n++
	}
	for n > 0 && n < len(growing) && !utf8.RuneStart(growing[n]) {
		n--
	}
	return strings.TrimRight(growing[:n], "<!")
}

// picturePattern matches the beginnings of pictures, whose addresses Slack would fetch. What is left of one is a link,
// as in the finished answer.
var picturePattern = regexp.MustCompile(`!+\[`)

// mentionPattern matches mentions.
var mentionPattern = regexp.MustCompile(`<([!@#])`)

// breakMentions disables mentions: a growing text must not notify users.
func breakMentions(text string) string { return mentionPattern.ReplaceAllString(text, "<\u2060$1") }
