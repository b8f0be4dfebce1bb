package provider

// Settings are what an operator can say of a model.
type Settings struct {
	// Context is the size of its context in tokens; 0 is for the program to find out.
	Context int
	// Vision is whether it sees: "yes", "no", or empty for the program to find out.
	Vision string
}

// Facts are the settings as what is known of the model.
func (s Settings) Facts() (f Facts) {
	f.Context = NewNumber(float64(s.Context), FromSettings)
	if s.Vision != "" {
		f.Sees = NewCan(s.Vision == "yes", FromSettings)
	}
	return f
}
