package jstools

// Errors returns what is wrong in the folder, one line for each mistake, sorted by file.
func (t *Tools) Errors() []error {
	return t.content.Load().errors()
}
