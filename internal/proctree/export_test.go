package proctree

// Memory returns how many bytes a process and its descendants take.
func Memory(root int) (uint64, error) { return measure(root, 0) }
