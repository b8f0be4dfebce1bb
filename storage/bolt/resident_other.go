//go:build !linux

package bolt

import "go.etcd.io/bbolt"

// release does nothing: the system decides what stays resident.
func release(*bbolt.Tx) {}
