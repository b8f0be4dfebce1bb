package outbox

import (
	"bytes"
	"context"
	"slices"
	"time"
	"unicode/utf8"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/internal/markdown"
	"oneclaw/internal/retry"
)

const (
	// maxSpoken bounds an answer that is spoken, in characters. Longer ones are better read.
	maxSpoken = 1000
	// The next message of the chat waits for a recording, which is of little use later: speechTimeout
	// bounds making it, maxVoiceTries and maxVoicePause the attempts to send it and the pauses between.
	speechTimeout = 30 * time.Second
	maxVoiceTries = 3
	maxVoicePause = 15 * time.Second
)

// spokenText returns the text of an answer that is read aloud; empty if the answer is not spoken.
func (s *Sender) spokenText(j *queue.Run, answer string) string {
	if _, ok := s.cfg.Platforms[j.Message.Chat.Platform].(chats.VoiceSender); !ok || DeliveryOf(j).Speak == nil || utf8.RuneCountInString(answer) > maxSpoken {
		return ""
	}
	return markdown.Parse(s.cfg.Redact(answer)).Speech()
}

// speak sends the recording of an answer whose parts were all sent. It does so at most once, and only in the
// process that has prepared the answer; after any failure the text stands alone.
func (s *Sender) speak(ctx, patience context.Context, j *queue.Run) {
	d := DeliveryOf(j)
	text, speak := d.spoken, d.Speak
	d.spoken, d.Speak = "", nil
	unsent := func(p receipts.Part) bool { return p.State != receipts.PartSent || p.IsUndelivered() }
	if text == "" || speak == nil || d.DeadLetter != "" || slices.ContainsFunc(d.Parts, unsent) || patience.Err() != nil || s.breakers[j.Message.Chat.Platform].isTripped.Load() {
		return
	}
	// The parts must not count as unsent if the program is killed meanwhile.
	if err := s.cfg.Jobs.Save(ctx, j); err != nil {
		s.cfg.Log.Warn("an answer is not spoken, because its delivery cannot be stored", "job", j.Key(), "err", err)
		return
	}
	platform := s.cfg.Platforms[j.Message.Chat.Platform].(chats.VoiceSender)
	making, cancel := context.WithTimeout(patience, speechTimeout)
	sound, err := speak(making, text, platform.VoiceFormat())
	cancel()
	if err == nil {
		err = s.sendVoice(ctx, patience, j, platform, sound)
	}
	if err != nil {
		s.cfg.Log.Warn("an answer is not spoken", "job", j.Key(), "err", err)
	}
}

// sendVoice sends a recording. It is sent again only if it surely has not arrived.
func (s *Sender) sendVoice(ctx, patience context.Context, j *queue.Run, platform chats.VoiceSender, sound []byte) error {
	s.updateDestination(j)
	ctx, cancel := context.WithTimeout(s.withOwnership(ctx, j), sendTimeout)
	defer cancel()
	file := chats.OutFile{Name: "answer." + extensionOf(platform.VoiceFormat()), Size: int64(len(sound)), Content: bytes.NewReader(sound)}
	pauses := retry.New(minRetry, s.cfg.MaxRetry)
	for tries := 1; ; tries++ {
		err := s.trySendVoice(ctx, patience, j, platform, file)
		failure := toSendError(err)
		if failure == nil || failure.Outcome != chats.Later || failure.MovedTo != "" || failure.RetryAfter > maxVoicePause || tries == maxVoiceTries {
			return err
		}
		if err := retry.Wait(patience, pauseAfter(pauses, failure)); err != nil {
			return err
		}
	}
}

// trySendVoice sends a recording once, when a send slot is free.
func (s *Sender) trySendVoice(ctx, patience context.Context, j *queue.Run, platform chats.VoiceSender, file chats.OutFile) error {
	select {
	case s.sendSlots <- struct{}{}:
	case <-patience.Done():
		return context.Cause(patience)
	}
	defer func() { <-s.sendSlots }()
	if err := s.checkOwnership(j); err != nil {
		return err
	}
	return request(func() error {
		_, err := platform.SendVoice(ctx, Address(j), file)
		return err
	})
}

func extensionOf(format string) string {
	if format == chats.VoiceOpus {
		return "ogg"
	}
	return format
}
