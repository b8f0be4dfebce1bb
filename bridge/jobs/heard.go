package jobs

// Heard is what was understood of a sound that came with a message: it is heard once.
type Heard struct {
	// Ref is that of the attachment.
	Ref string `json:"ref"`
	// Text are its words; empty where Why says in words for people why there are none.
	Text string `json:"text,omitempty"`
	Why  string `json:"why,omitempty"`
}

// Keeper is the job whose record keeps what comes of a message.
func (j *Job) Keeper() *Job {
	if j.Within != nil {
		return j.Within
	}
	return j
}

// HeardOf returns what was understood of a sound, if it was heard.
func (j *Job) HeardOf(ref string) (Heard, bool) {
	for _, h := range j.Heard {
		if h.Ref == ref {
			return h, true
		}
	}
	return Heard{}, false
}

// Words are those of the message, or else what was understood of its first sound.
func (j *Job) Words() string {
	if j.Message.Text == "" {
		for _, h := range j.Heard {
			if h.Text != "" {
				return h.Text
			}
		}
	}
	return j.Message.Text
}
