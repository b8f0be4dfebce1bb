package chats

import "time"

// Sound says that an attachment is to be heard.
type Sound struct {
	// Kind says what it is; empty for what is no sound.
	Kind SoundKind `json:"kind,omitempty"`
	// Length is how long it lasts, as announced; 0 if unknown.
	Length time.Duration `json:"length,omitempty"`
}

// SoundKind says how a sound came to be.
type SoundKind string

// The kinds of sounds.
const (
	// SoundSpoken was spoken into the chat: a voice note, a round video, an audio clip. It is
	// nothing without its words.
	SoundSpoken SoundKind = "spoken"
	// SoundFile is a file with sound, such as a song or a podcast.
	SoundFile SoundKind = "file"
)
