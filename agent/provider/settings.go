package provider

// Settings are an operator's settings for a model.
type Settings struct {
	// Context is the size of its context in tokens; 0 to detect it.
	Context int
	// Vision says whether it can see: "yes", "no", or empty to detect it.
	Vision string
}

// Facts returns the settings as facts.
func (s Settings) Facts() (f Facts) {
	f.Context = NewNumber(float64(s.Context), FromSettings)
	if s.Vision != "" {
		f.Sees = NewCan(s.Vision == "yes", FromSettings)
	}
	return f
}
