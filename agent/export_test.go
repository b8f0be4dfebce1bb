package agent

// SetParallel bounds the tools of one turn that run at a time.
func (a *Agent) SetParallel(n int) { a.parallel = n }
