package chats

import "time"

// Sound describes the audio in an attachment.
type Sound struct {
	// Kind is the kind of audio; empty if there is none.
	Kind SoundKind `json:"kind,omitempty"`
	// Length is the announced duration; 0 if unknown.
	Length time.Duration `json:"length,omitempty"`
}

// SoundKind is the origin of audio.
type SoundKind string

// Values of [SoundKind].
const (
	// SoundSpoken was recorded in the chat: a voice note, a round video, or an audio clip. It is useless
	// without a transcript.
	SoundSpoken SoundKind = "spoken"
	// SoundFile is an audio file, such as a song or a podcast.
	SoundFile SoundKind = "file"
)
