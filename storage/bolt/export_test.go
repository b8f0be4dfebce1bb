package bolt

import "context"

// CompactBy is Compact with a function that is called between its steps.
func CompactBy(path string, step func()) error {
	return compact(context.Background(), Config{Path: path}, step)
}
