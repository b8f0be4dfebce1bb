package provider

// Settings are an operator's settings for a model.
type Settings struct {
	// ContextTokens is the size of the model's context in tokens; 0 means that the size is detected.
	ContextTokens int
	// Vision is "yes" if the model accepts pictures, "no" if not, or empty to detect it.
	Vision string
}

// Facts returns the settings as facts.
func (s Settings) Facts() (f Facts) {
	f.ContextTokens = NewNumber(float64(s.ContextTokens), FromSettings)
	if s.Vision != "" {
		f.Sees = NewAbility(s.Vision == "yes", FromSettings)
	}
	return f
}
