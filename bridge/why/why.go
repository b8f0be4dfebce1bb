// Package why explains to users how a message was handled.
package why

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/internal/wording"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

const (
	// maxWhyMessages bounds the records of a conversation that are searched for a turn.
	maxWhyMessages = 2000
	// maxWhyLines bounds the listed tools and parts.
	maxWhyLines = 15
	// maxQuoted bounds the quoted beginning of a message, in characters.
	maxQuoted = 60
)

// Explainer explains how messages were handled.
type Explainer struct {
	// Redact masks secrets.
	Redact func(text string) string
	// Store holds the jobs and the conversations; Jobs reads the jobs.
	Store storage.Store
	Jobs  queue.Store
	// Explains reports whether to explain a job.
	Explains func(*receipts.Receipt) bool
	// Listening says which messages of the shared chat of a message the bot answers and keeps.
	Listening func(chats.Message) string
	// IsAdmin reports whether the sender of a message is also shown errors from sending, and where to
	// find the cause of an incident.
	IsAdmin func(chats.Message) bool
	// Zone is the time zone of displayed times; nil means UTC.
	Zone *time.Location
	// IsAnswering reports whether a job of this chat is being answered.
	IsAnswering func(chat chats.Chat, key string) bool
}

// Explain explains how the last message of a chat was handled, from its receipt and its turn in the
// conversation. It shows names and outcomes, which all users of the chat could see, but neither the
// arguments nor the results of tools.
func (e Explainer) Explain(ctx context.Context, j *queue.Run, _ string) (string, error) {
	last, err := e.last(ctx, j)
	if err != nil {
		return "", err
	}
	if last == nil {
		text := "I have no message of the last week to explain here."
		if !j.Message.Direct {
			text += " " + e.Listening(j.Message)
		}
		return text, nil
	}
	w := story{redact: e.Redact, job: last, forAdmin: e.IsAdmin(j.Message), zone: e.zone()}
	if last.JoinedTo != "" {
		if with, err := e.Jobs.Find(ctx, last.JoinedTo); err != nil {
			return "", err
		} else if with != nil {
			w.job, w.part = with, last
		}
	}
	if w.turn, err = e.turn(ctx, w.job); err != nil {
		return "", err
	}
	w.running = e.IsAnswering(j.Message.Chat, w.job.Key())
	return w.text(), nil
}

// last returns the newest message or task of a chat before a job, open or closed; nil if there is none.
func (e Explainer) last(ctx context.Context, before *queue.Run) (*receipts.Receipt, error) {
	chat := before.Message.Chat
	var last *receipts.Receipt
	for _, prefix := range []string{receipts.Prefix, queue.OpenPrefix} {
		for entry, err := range e.Store.List(ctx, storage.Range{Prefix: prefix + chat.WithoutThread().String() + "/"}) {
			if err != nil {
				return nil, fmt.Errorf("look for the last message of %s: %w", chat, err)
			}
			r, err := e.read(prefix, entry)
			if err != nil || r.Message.Chat != chat || r.Seq >= before.Seq || !e.Explains(r) {
				continue
			}
			if last == nil || r.Seq > last.Seq {
				last = r
			}
		}
	}
	return last, nil
}

// read decodes a record under one of the key prefixes of jobs as a receipt.
func (e Explainer) read(prefix string, entry storage.Entry) (*receipts.Receipt, error) {
	if prefix == receipts.Prefix {
		return e.Jobs.DecodeReceipt(entry)
	}
	j, err := e.Jobs.DecodeJob(entry)
	if err != nil {
		return nil, err
	}
	return j.Receipt(), nil
}

// turn reads the turn of a job from the conversation: its question and the messages up to the next
// question. It is empty if the turn never began, or is not among the last maxWhyMessages messages.
func (e Explainer) turn(ctx context.Context, j *receipts.Receipt) ([]agent.Message, error) {
	session, begun := conversation.AnsweredSession(ctx, e.Store, j)
	if !begun {
		return nil, nil
	}
	var turn []agent.Message
	read := 0
	for m, err := range conversation.RecentMessages(ctx, e.Store, session.Log()) {
		if queue.IsDamaged(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read the turn of %s: %w", j.Key(), err)
		}
		if read++; read > maxWhyMessages {
			return nil, nil
		}
		turn = append(turn, m)
		if m.Ref == j.Key() {
			slices.Reverse(turn)
			return turn, nil
		}
		if m.BeginsTurn() {
			turn = nil
		}
	}
	return nil, nil
}

func (e Explainer) zone() *time.Location {
	if e.Zone == nil {
		return time.UTC
	}
	return e.Zone
}

// story writes the explanation of a job and its turn.
type story struct {
	redact func(text string) string
	job    *receipts.Receipt
	turn   []agent.Message
	// part is the message that the user asked about, if it is only a part of the job.
	part     *receipts.Receipt
	forAdmin bool // also shows errors from sending, and where to find causes
	// zone is the time zone of displayed times.
	zone *time.Location
	// running is set while the job is being answered.
	running bool
	// omitTexts is set if no text of a user may be quoted.
	omitTexts bool
}

func (s story) text() string {
	m := s.job.Message
	whose := "Your message"
	switch {
	case s.job.Task != nil && s.job.Task.Hook != "":
		whose = "The webhook delivery"
	case m.Kind == receipts.KindTask:
		whose = "The scheduled task"
	case m.Kind == receipts.KindBackground:
		whose = "The background task"
	case m.Kind == receipts.KindResult:
		whose = "The result of the background task"
	case !m.Direct:
		whose = "The last message"
	}
	title := ""
	if s.job.Task != nil {
		title = s.job.Task.Title
	}
	first := fmt.Sprintf("**%s** %s", whose, s.quote(firstNonEmpty(title, m.Text)))
	if s.part != nil && s.job.PieceCount <= 1 {
		first = fmt.Sprintf("**%s** %s came while I worked on %s, and is answered with that", whose,
			s.quote(firstNonEmpty(s.part.Message.Text)), s.quote(firstNonEmpty(m.Text)))
	}
	lines := []string{first, ""}
	for _, line := range s.facts() {
		lines = append(lines, "- "+line)
	}
	return strings.Join(lines, "\n")
}

// facts returns the lines below the first.
func (s story) facts() []string {
	lines := slices.Concat([]string{s.outcome(), s.triggerText(), s.receivedText(), s.joinedText()}, s.modelLines(), s.toolLines(), s.deliveryLines(), s.adminLines())
	return slices.DeleteFunc(lines, func(line string) bool { return line == "" })
}

func firstNonEmpty(texts ...string) string {
	for _, t := range texts {
		if strings.TrimSpace(t) != "" {
			return t
		}
	}
	return "(no text)"
}

func (s story) quote(text string) string {
	return wording.EscapeMarkdown(wording.Quote(s.excerpt(text), maxQuoted+2))
}

// excerpt returns the beginning of a text. It is masked before it is cut, because half a secret cannot be recognized.
func (s story) excerpt(text string) string {
	line, more, _ := strings.Cut(strings.TrimSpace(s.redact(text)), "\n")
	if short := wording.Clip(line, maxQuoted); short != line {
		return short
	}
	if more != "" {
		line += " …"
	}
	return line
}

func (s story) outcome() string { //nolint:cyclop // A sentence for each outcome.
	j := s.job
	switch {
	case j.State == receipts.Cleared:
		return "Not answered: a /clear came before the answer."
	case j.State == receipts.Stopped && j.Message.Kind == receipts.KindBackground:
		return "It was cancelled."
	case j.State == receipts.Stopped:
		return "Not answered: a /stop came before the answer."
	case j.State == receipts.Revoked && !receipts.IsTask(j.Message):
		return "Not answered: its sender may no longer talk to me."
	case j.State == receipts.Revoked:
		return "Not run: the owner of this task may no longer talk to me."
	case j.Answer.Notice != "" && j.Incident == "":
		return s.noticeText()
	case j.State == receipts.Failed && j.Incident == "" && len(j.Answer.Parts) == 0:
		return "I can no longer read what I stored about it."
	case j.State == receipts.Failed && j.Incident == "":
		return "Answered, but the answer, or a part of it, could not be delivered."
	case j.Turn.Refused:
		return "Not answered: a budget is used up. /usage shows it."
	case j.Incident != "":
		line := fmt.Sprintf("No answer because of an error: incident `%s`.", j.Incident)
		if s.forAdmin && !s.omitTexts {
			line += " The admin pages show its cause."
		}
		return line
	case j.State == receipts.Waiting && !j.Turn.IsUndecided():
		return "It waits for background tasks: see /tasks."
	case j.State == receipts.Waiting:
		return "It waits for an approval: see the card with the buttons."
	case j.State == receipts.Open && len(j.Answer.Parts) > 0:
		return "The answer is being delivered."
	case j.State == receipts.Open && s.running:
		return "I am working on it."
	case j.State == receipts.Open:
		return "It waits for its turn."
	}
	return s.answeredText()
}

func (s story) noticeText() string {
	if s.omitTexts {
		return "Not sent to the model; I answered with a notice."
	}
	return "Not sent to the model; I answered: " + s.quote(s.job.Answer.Notice)
}

func (s story) answeredText() string {
	if t := s.job.Task; t != nil && t.Silent {
		return "Ended in silence: there was nothing to tell."
	}
	if s.job.Message.Kind == receipts.KindBackground {
		return "Done: its result went to this chat."
	}
	return "Answered."
}

func (s story) startedAt() time.Time {
	if len(s.turn) == 0 {
		return time.Time{}
	}
	return s.turn[0].Time
}

// modelLines says which model answered, in how many rounds and for how many tokens.
func (s story) modelLines() []string {
	rounds, used, kept := 0, agent.Usage{}, time.Duration(0)
	models := map[string]bool{}
	var end time.Time
	for _, m := range s.turn {
		if m.Role != agent.RoleAssistant {
			continue
		}
		if end = m.Time; m.Usage == nil {
			continue
		}
		rounds, kept = rounds+1, m.CacheFor
		used.Input, used.Cached, used.Output = used.Input+m.Usage.Input, used.Cached+m.Usage.Cached, used.Output+m.Usage.Output
		if m.Model != "" {
			models[wording.InlineCode(m.Model)] = true
		}
	}
	if rounds == 0 {
		return nil
	}
	text := []string{
		fmt.Sprintf("Model: %s, %s in %s.", wording.JoinOr(slices.Sorted(maps.Keys(models)), "not named"), wording.Plural(rounds, "reply", "replies"), wording.ShortDuration(end.Sub(s.startedAt()))),
		fmt.Sprintf("Tokens: %d in (%d of them from the provider's cache), %d out.", used.Input, used.Cached, used.Output),
	}
	if kept > 0 {
		text = append(text, fmt.Sprintf("Because of the pauses in this conversation, I asked the provider to cache it for %s.", wording.ShortDuration(kept)))
	}
	return text
}

// toolLines lists the calls with their outcomes, and the loaded groups.
func (s story) toolLines() []string {
	var ran, loaded []string
	asked := time.Time{}
	loads, approved := map[string]string{}, map[string]string{}
	for _, m := range s.turn {
		if m.ApprovedBy != "" {
			approved[m.CallID] = ", approved by " + m.ApprovedBy
		}
		switch m.Role {
		case agent.RoleAssistant:
			asked = m.Time
			for _, call := range m.Calls {
				if group := loadedGroup(call); group != "" {
					loads[call.ID] = group
				}
			}
		case agent.RoleTool:
			if group := loads[m.CallID]; group != "" && m.Tool == toolgroups.LoadToolGroup && m.Status == agent.StatusOK {
				loaded = append(loaded, group)
				continue
			}
			outcome := "done"
			if m.Status != agent.StatusOK {
				outcome = "failed: " + m.Code
			}
			ran = append(ran, fmt.Sprintf("%s (%s, %s%s)", wording.InlineCode(m.Tool), outcome, wording.ShortDuration(m.Time.Sub(asked)), approved[m.CallID]))
			delete(approved, m.CallID)
		}
	}
	var lines []string
	if len(loaded) > 0 {
		lines = append(lines, "Tool groups loaded: "+strings.Join(loaded, ", ")+".")
	}
	if len(ran) > 0 {
		lines = append(lines, "Tools: "+joinBounded(ran)+".")
	}
	return lines
}

func loadedGroup(call agent.Call) string {
	if call.EffectiveTool() != toolgroups.LoadToolGroup {
		return ""
	}
	var arguments struct {
		Group string `json:"group_name"`
	}
	if json.Unmarshal([]byte(call.EffectiveArguments()), &arguments) != nil {
		return ""
	}
	return arguments.Group
}

func (s story) deliveryLines() []string {
	words := map[receipts.PartState]string{
		receipts.PartSent: "sent", receipts.PartPending: "waits to be sent", receipts.PartSending: "is being sent",
		receipts.PartUnknown: "may have arrived", receipts.PartFailed: "could not be sent",
	}
	var parts []string
	for _, p := range s.job.Answer.Parts {
		if p.RemovesButtons {
			continue
		}
		text := words[p.State]
		if p.Incident != "" {
			text = "refused by the platform, incident " + p.Incident
		}
		if p.Repeat {
			text += ", marked as a possible repeat"
		}
		if p.ID != "" && s.omitTexts {
			text += " as `" + p.ID + "`"
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return nil
	}
	line := fmt.Sprintf("Answer in %s: %s", wording.Plural(len(parts), "part", "parts"), joinBounded(countRepeats(parts)))
	if !s.job.Closed.IsZero() {
		line += ", finished " + wording.ClockTime(s.job.Closed.In(s.zone))
	}
	if s.job.Answer.DeadLetter != "" {
		line += ". The platform was out of order for a day: the rest was set aside, incident " + s.job.Answer.DeadLetter
	}
	return []string{line + ".", s.ratingLine()}
}

// countRepeats returns each distinct text, with the number of its occurrences.
func countRepeats(texts []string) []string {
	var lines []string
	for rest := texts; len(rest) > 0; {
		others := slices.DeleteFunc(slices.Clone(rest), func(text string) bool { return text == rest[0] })
		if n := len(rest) - len(others); n == 1 || n == len(texts) {
			lines = append(lines, rest[0])
		} else {
			lines = append(lines, fmt.Sprintf("%d %s", n, rest[0]))
		}
		rest = others
	}
	return lines
}

// ratingLine returns the ratings of the answer.
func (s story) ratingLine() string {
	good, bad := receipts.CountFeedback(s.job.Turn.Feedback)
	if good+bad == 0 {
		return ""
	}
	return fmt.Sprintf("Ratings: 👍 %d, 👎 %d.", good, bad)
}

// adminLines returns, on the administrators' pages, the names of the job and its session in the log,
// which quote no user. In a chat it returns the error of a failed send.
func (s story) adminLines() []string {
	switch {
	case s.omitTexts:
		line := "In the log: `" + s.job.Key() + "`"
		if s.job.Turn.Generation > 0 && !receipts.IsTask(s.job.Message) {
			line += fmt.Sprintf(", session `%s`", conversation.ChatLog(s.job.Message.Chat, s.job.Turn.Generation))
		}
		return []string{line}
	case s.forAdmin:
		for _, p := range s.job.Answer.Parts {
			if p.Error != "" {
				return []string{"Last problem while sending: " + wording.EscapeMarkdown(s.excerpt(p.Error))}
			}
		}
	}
	return nil
}

func joinBounded(list []string) string {
	text := strings.Join(list[:min(len(list), maxWhyLines)], ", ")
	if more := len(list) - maxWhyLines; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
