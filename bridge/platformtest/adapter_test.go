package platformtest

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"oneclaw/bridge/chats"
)

// bugs are the names that the adapter knows, with the properties that notice them.
func bugs() map[string][]string {
	return map[string][]string{
		"confirms before it accepts":                 {"InboxFails", "PressIsKept"},
		"gives each delivery an id of its own":       {"Duplicate", "RestartBeforeConfirmation"},
		"delivers in another order":                  {"Order"},
		"delivers one message of each batch":         {"Order"},
		"takes everybody for the same person":        {"Strangers", "PressArrives", "PressForged"},
		"takes everybody for an administrator":       {"ClearIsRefused", "Undo"},
		"takes everybody for the opener":             {"ClearIsRefused"},
		"takes nobody for an administrator":          {"Clear"},
		"mixes conversations up":                     {"Sessions", "SideBySide", "Steered"},
		"drops threads of messages":                  {"Threads", "SideBySide"},
		"drops threads of answers":                   {"Threads", "LongAnswers"},
		"loses threads in a restart":                 {"Restart", "TakenOver"},
		"answers in another chat":                    {"Threads"},
		"replies to another message":                 {"Threads"},
		"makes words of commands":                    {"Help", "Stop", "Clear", "Undo", "Confides"},
		"sends twice":                                {"Order", "Threads", "RecordBeforeArrival"},
		"hides repeats":                              {"AnswerDropped", "RestartWhileSending"},
		"marks everything":                           {"Order", "FloodPasses", "NoRecordNoArrival"},
		"calls lost answers not sent":                {"AnswerDropped"},
		"calls lost answers refused":                 {"AnswerDropped"},
		"calls floods refused":                       {"Flood", "FloodPasses"},
		"calls floods unknown":                       {"Flood", "FloodPasses"},
		"forgets how long floods last":               {"Flood"},
		"stands still in floods":                     {"Flood"},
		"calls errors refused":                       {"ServerError"},
		"calls errors not sent":                      {"ServerError"},
		"tries errors again by itself":               {"ServerError"},
		"calls outages refused":                      {"Outage"},
		"calls outages not sent":                     {"Outage"},
		"never comes back from outages":              {"Outage"},
		"checks no preconditions":                    {"OwnedElsewhere"},
		"sends parts in another order":               {"LongAnswers"},
		"cuts long answers off":                      {"LongAnswers"},
		"sends long answers whole":                   {"LongAnswers"},
		"shows nothing where it sees no letters":     {"OddTexts"},
		"drops angle brackets":                       {"OddTexts"},
		"drops code":                                 {"OddTexts", "LongAnswers"},
		"shows no sign of work":                      {"Working"},
		"never clears the sign of work":              {"Working"},
		"shows no buttons":                           {"ButtonsShow", "EditReplaces"},
		"shows one row":                              {"ButtonsShow"},
		"loses the address of a button":              {"LinkShows"},
		"gives the pressed message no id":            {"PressArrives"},
		"drops threads of presses":                   {"PressArrives"},
		"drops presses without a button":             {"PressForged"},
		"posts answers to presses":                   {"PressAnswered"},
		"answers presses once":                       {"PressAnswered"},
		"shows empty answers":                        {"PressAnswered"},
		"edits by posting":                           {"EditReplaces"},
		"keeps buttons in edits":                     {"EditReplaces"},
		"edits once":                                 {"EditReplaces"},
		"names no albums":                            {"Album"},
		"does not see where texts are cut":           {"LongText"},
		"delivers no edits":                          {"EditReaches"},
		"edits nothing":                              {"EditReplaces", "EditOfNothing"},
		"hands out half of a file":                   {"PictureStays"},
		"takes voice notes for files":                {"VoiceHeard", "VoiceOnce", "VoiceSilent"},
		"drops what is pointed at":                   {"QuotedReaches"},
		"takes what is passed on for own words":      {"QuotedIsNoCommand", "QuotedReaches", "CommentJoins"},
		"answers what is for others":                 {"ObservedReaches"},
		"tells nothing of threads":                   {"ThreadReaches"},
		"tells threads from their beginning":         {"ThreadReaches"},
		"ends previews by posting":                   {"Grows", "SaysWhatItDoes", "GrowsSlowly"},
		"forgets its previews":                       {"GrowsAcrossARestart", "StreamsAcrossAKill"},
		"leaves streams open":                        {"Grows", "StreamsAcrossAKill"},
		"does not hear the service's button":         {"StreamsUntilStopped"},
		"leaves the button":                          {"Grows", "GrowsUntilStopped"},
		"calls floods of previews unknown":           {"GrowsInAFlood"},
		"calls lost previews not sent":               {"GrowsAndIsLost"},
		"takes what is gone for shown":               {"GrowsNoMore"},
		"puts signs on nothing":                      {"Signed"},
		"leaves its signs":                           {"Signed"},
		"leaves the signs of others":                 {"SignedAcrossARestart"},
		"shows an ephemeral message to all":          {"Confides", "ClearIsRefused"},
		"shows an ephemeral message to another user": {"Confides"},
		"keeps feedback that is taken back":          {"Judged"},
		"receives once":                              {"BreaksAlone"},
	}
}

// adapter is the platform of memory.
type adapter struct {
	m *memory
	// restarted is true where it is not the first one.
	restarted bool
	// listens says whether it is wanted what is not for the bot.
	listens func(chats.Chat) bool
	// runs counts the calls of Run.
	runs int
	// still is full while a message is sent, by one that sends one at a time.
	still chan struct{}
	// origins are where messages came from, for one that has mixed them up.
	origins sync.Map
}

var (
	_ chats.Editor          = (*adapter)(nil)
	_ chats.TypingIndicator = (*adapter)(nil)
	_ chats.AdminChecker    = (*adapter)(nil)
	_ chats.Pinger          = (*adapter)(nil)
	_ chats.FileFetcher     = (*adapter)(nil)
	_ chats.ThreadReader    = (*adapter)(nil)
)

func (a *adapter) has(bug string) bool { return a.m.bug == bug }

func (a *adapter) Name() string { return "memory" }

func (a *adapter) Ping(context.Context) error {
	if !a.m.back() || a.has("never comes back from outages") {
		return errors.New("connection lost")
	}
	return nil
}

// FetchFile implements [chats.FileFetcher].
func (a *adapter) FetchFile(_ context.Context, file chats.Attachment, w io.Writer) error {
	n, err := strconv.Atoi(file.Ref)
	if err != nil {
		return err
	}
	a.m.mu.Lock()
	defer a.m.mu.Unlock()
	data := a.m.files[n]
	if a.has("hands out half of a file") {
		data = data[:len(data)/2]
	}
	_, err = w.Write(data)
	return err
}

// Run accepts what waits, all at once, and again a second later where it was not kept.
func (a *adapter) Run(ctx context.Context, in chats.Inbox) error {
	if a.runs++; a.runs > 1 && a.has("receives once") {
		<-ctx.Done()
		return nil
	}
	a.listens = func(chat chats.Chat) bool {
		l, ok := in.(chats.AmbientInbox)
		return ok && l.WantsAmbient(chat)
	}
	for ctx.Err() == nil {
		updates, changed := a.m.take()
		if len(updates) == 0 {
			select {
			case <-changed:
			case <-ctx.Done():
			}
			continue
		}
		if a.has("confirms before it accepts") {
			a.confirm(len(updates))
		}
		if err := in.Accept(ctx, a.decode(updates)...); err != nil {
			timer := time.NewTimer(time.Second)
			select {
			case <-timer.C:
			case <-ctx.Done():
			}
			timer.Stop()
			continue
		}
		if !a.has("confirms before it accepts") {
			a.confirm(len(updates))
		}
	}
	return nil
}

func (a *adapter) confirm(n int) {
	a.m.change(func() { a.m.updates = a.m.updates[n:] })
}

func (a *adapter) decode(messages []chats.Message) []chats.Message {
	messages = slices.DeleteFunc(messages, func(m chats.Message) bool {
		return m.Kind == chats.KindAmbient && (!a.listens(m.Chat) || a.has("hears nothing"))
	})
	for i := range messages {
		a.spoil(&messages[i])
	}
	switch {
	case a.has("delivers in another order"):
		slices.Reverse(messages)
	case a.has("delivers one message of each batch"):
		messages = messages[:1]
	}
	return messages
}

// spoil makes of a message what a wrong adapter would.
func (a *adapter) spoil(msg *chats.Message) {
	switch a.m.bug {
	case "gives each delivery an id of its own":
		msg.ID += "-" + rand.Text()
	case "takes everybody for the same person":
		msg.User = "ann"
	case "takes everybody for the opener":
		msg.Opener = msg.User
	case "drops threads of messages":
		msg.Chat.Thread = ""
	case "mixes conversations up":
		a.origins.Store(msg.ID, msg.Chat)
		msg.Chat.ID, msg.Chat.Thread, msg.Direct = "one", "", false
	case "names no albums":
		msg.Group = ""
	case "does not see where texts are cut":
		msg.Cut = chats.CutNowhere
	case "delivers no edits":
		if msg.Kind == chats.KindEdit {
			msg.ID = "nobody's"
		}
	case "keeps feedback that is taken back":
		if msg.Text == string(chats.FeedbackNotGood) {
			msg.Text = string(chats.FeedbackGood)
		}
	case "gives the pressed message no id":
		msg.TargetID = ""
	case "drops threads of presses":
		if msg.Kind == chats.KindPress {
			msg.Chat.Thread = ""
		}
	case "takes voice notes for files":
		for i := range msg.Files {
			msg.Files[i].Sound = chats.Sound{}
		}
	case "answers what is for others":
		if msg.Kind == chats.KindAmbient {
			msg.Kind = chats.KindText
		}
	case "drops what is pointed at":
		msg.Quoted = nil
	case "takes what is passed on for own words":
		for _, q := range msg.Quoted {
			msg.Text = strings.TrimSpace(msg.Text + " " + q.Text)
		}
		msg.Quoted = nil
	case "makes words of commands":
		if name, ok := strings.CutPrefix(msg.Text, "/"); ok {
			msg.Text = "please " + name
		}
	}
}

// ReadThread implements [chats.ThreadReader].
func (a *adapter) ReadThread(_ context.Context, m chats.Message, after string, _ int) ([]chats.Quoted, error) {
	switch a.m.bug {
	case "tells nothing of threads":
		return nil, nil
	case "tells threads from their beginning":
		after = ""
	}
	return a.m.said(Place(m.Chat.String()), after), nil
}

func (a *adapter) IsAdmin(_ context.Context, _ chats.Chat, user string) (bool, error) {
	switch a.m.bug {
	case "takes everybody for an administrator":
		return true, nil
	case "takes nobody for an administrator":
		return false, nil
	}
	return user == "chief", nil
}

func (a *adapter) SetTyping(_ context.Context, to chats.Address, on bool) error {
	if a.has("shows no sign of work") || !on && a.has("never clears the sign of work") {
		return nil
	}
	a.m.change(func() {
		place := Place(to.Chat.String())
		a.m.view.Working = slices.DeleteFunc(a.m.view.Working, func(p Place) bool { return p == place })
		if on {
			a.m.view.Working = append(a.m.view.Working, place)
		}
	})
	return nil
}

// Render cuts the text where a part is full.
func (a *adapter) Render(text string) []chats.Part {
	switch a.m.bug {
	case "shows nothing where it sees no letters":
		if !strings.ContainsAny(text, "aeiou") {
			return nil
		}
	case "drops angle brackets":
		text = strings.NewReplacer("<", "", ">", "").Replace(text)
	case "drops code":
		if before, _, found := strings.Cut(text, "```"); found {
			text = before + "(code)"
		}
	case "sends long answers whole":
		return []chats.Part{{Text: text}}
	}
	parts := cut(strings.TrimSpace(text))
	switch {
	case a.has("cuts long answers off") && len(parts) > 5:
		parts = parts[:5]
	case a.has("sends parts in another order"):
		slices.Reverse(parts)
	}
	return parts
}

// cut cuts a text at white space where there is any.
func cut(text string) (parts []chats.Part) {
	const size = memoryLimit - 100
	for rest := []rune(text); len(rest) > 0; {
		n := min(size, len(rest))
		if n < len(rest) {
			for n > size/2 && !unicode.IsSpace(rest[n]) {
				n--
			}
		}
		parts = append(parts, chats.Part{Text: string(rest[:n])})
		rest = rest[n:]
	}
	return parts
}

func (a *adapter) Send(ctx context.Context, to chats.Address, part chats.Part) (string, error) {
	if a.has("stands still in floods") {
		a.still <- struct{}{}
		defer func() { <-a.still }()
	}
	if err := chats.CheckPrecondition(ctx); err != nil && !a.has("checks no preconditions") {
		return "", &chats.SendError{Outcome: chats.Later, Err: err}
	}
	a.m.change(func() { a.m.view.Sends++ })
	text := noted(part)
	if part.Repeat && !a.has("hides repeats") || a.has("marks everything") {
		text += "\n\n" + chats.RepeatNotice
	}
	fault := a.m.fault(to.Chat.ID)
	to = a.misdirect(to)
	switch fault.Effect {
	case Outage:
		return "", &chats.SendError{Outcome: a.cut(), Err: errors.New("connection lost")}
	case Slow:
		timer := time.NewTimer(fault.RetryAfter)
		defer timer.Stop()
		<-timer.C
	case RateLimited, ServerError:
		return a.refuse(ctx, fault, to, part)
	}
	if a.has("sends twice") {
		a.m.show(to, text, a.buttons(part))
	}
	id := a.m.show(to, text, a.buttons(part))
	if fault.Effect == AnswerDropped {
		return "", &chats.SendError{Outcome: a.lost(), Err: errors.New("connection lost")}
	}
	return id, nil
}

func (a *adapter) misdirect(to chats.Address) chats.Address {
	switch a.m.bug {
	case "drops threads of answers":
		to.Chat.Thread = ""
	case "answers in another chat":
		to.Chat = chats.Chat{Platform: "memory", ID: "elsewhere"}
	case "loses threads in a restart":
		if a.restarted {
			to.Chat.Thread = ""
		}
	case "mixes conversations up":
		if origin, ok := a.origins.Load(to.ReplyTo); ok {
			to.Chat = origin.(chats.Chat)
		}
	case "replies to another message":
		to.ReplyTo = "1000"
	}
	return to
}

func (a *adapter) cut() chats.Outcome {
	switch a.m.bug {
	case "calls outages not sent":
		return chats.Later
	case "calls outages refused":
		return chats.Refused
	}
	return chats.Unknown
}

func (a *adapter) lost() chats.Outcome {
	switch a.m.bug {
	case "calls lost answers not sent":
		return chats.Later
	case "calls lost answers refused":
		return chats.Refused
	}
	return chats.Unknown
}

// refuse is what becomes of a message that the service does not take.
func (a *adapter) refuse(ctx context.Context, fault Fault, to chats.Address, part chats.Part) (string, error) {
	failure := &chats.SendError{Outcome: chats.Later, Err: errors.New(string(fault.Effect))}
	if fault.Effect == ServerError {
		failure.Outcome = chats.Unknown
		switch a.m.bug {
		case "calls errors refused":
			failure.Outcome = chats.Refused
		case "calls errors not sent":
			failure.Outcome = chats.Later
		case "tries errors again by itself":
			_, _ = a.Send(ctx, to, part)
			return a.Send(ctx, to, part)
		}
		return "", failure
	}
	failure.RetryAfter = fault.RetryAfter
	switch a.m.bug {
	case "calls floods refused":
		failure.Outcome = chats.Refused
	case "calls floods unknown":
		failure.Outcome = chats.Unknown
	case "forgets how long floods last":
		failure.RetryAfter = 0
	case "stands still in floods":
		timer := time.NewTimer(fault.RetryAfter)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return "", failure
}
