//go:build !linux

package app

// releaseProgramPages does nothing: the system decides which pages stay resident.
func releaseProgramPages() {}
