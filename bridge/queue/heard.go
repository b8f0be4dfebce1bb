package queue

// Transcript is what was understood of a sound that came with a message: it is heard once.
type Transcript struct {
	// Ref is that of the attachment.
	Ref string `json:"ref"`
	// Text are its words; empty where Why says in words for people why there are none.
	Text string `json:"text,omitempty"`
	Why  string `json:"why,omitempty"`
}

// Keeper is the job whose record keeps what comes of a message.
func (j *Run) Keeper() *Run {
	if j.Within != nil {
		return j.Within
	}
	return j
}

// TranscriptOf returns what was understood of a sound, if it was heard.
func (j *Job) TranscriptOf(ref string) (Transcript, bool) {
	for _, h := range j.Transcripts {
		if h.Ref == ref {
			return h, true
		}
	}
	return Transcript{}, false
}

// Words are those of the message, or else what was understood of its first sound.
func (j *Job) Words() string {
	if j.Message.Text == "" {
		for _, h := range j.Transcripts {
			if h.Text != "" {
				return h.Text
			}
		}
	}
	return j.Message.Text
}
