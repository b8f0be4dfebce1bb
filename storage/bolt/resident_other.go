//go:build !linux

package bolt

import "go.etcd.io/bbolt"

// release does nothing: what stays resident is left to the system.
func release(*bbolt.Tx) {}
