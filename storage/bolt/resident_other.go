//go:build !linux

package bolt

import "go.etcd.io/bbolt"

// release does nothing: the system decides which pages stay resident.
func release(*bbolt.Tx) {}
