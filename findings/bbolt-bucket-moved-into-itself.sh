#!/usr/bin/env bash
# bbolt, v1.5.0 (go.etcd.io/bbolt): Tx.MoveBucket.
#
# Seen: a bucket that is moved into a bucket of its own is gone with all that it holds. MoveBucket returns no error, the
#       transaction commits, and Check reports its pages as neither reachable nor free.
# Valid: the documentation lists what is refused (not found, name taken, no bucket, moved to where it is); a destination
#       inside the moved bucket is not among it.
# Best guess: an error and nothing moved, as mv gives for a directory moved into itself.
# Moved beside itself instead, the bucket keeps what it holds.
#
# Needs Go and the module proxy. Prints "as found" and exits 0 while it behaves so; exits 1 if that changes.
set -euo pipefail
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir" && rm -rf "$dir"' EXIT
cd "$dir"
cat >main.go <<'GO'
package main

import (
	"fmt"

	bolt "go.etcd.io/bbolt"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// try moves the bucket "chat" to the bucket that the path names, and prints what the database holds then.
func try(name string, path ...string) {
	db, err := bolt.Open(name+".db", 0o600, &bolt.Options{PageSize: 4096})
	must(err)
	defer db.Close()
	must(db.Update(func(tx *bolt.Tx) error {
		chat, err := tx.CreateBucket([]byte("chat"))
		must(err)
		archive, err := chat.CreateBucket([]byte("archive"))
		must(err)
		must(archive.Put([]byte("1"), []byte("hello")))
		_, err = tx.CreateBucket([]byte("other"))
		return err
	}))
	err = db.Update(func(tx *bolt.Tx) error {
		to := tx.Bucket([]byte(path[0]))
		for _, part := range path[1:] {
			to = to.Bucket([]byte(part))
		}
		return tx.MoveBucket([]byte("chat"), nil, to)
	})
	fmt.Println(name+": error", err)
	must(db.View(func(tx *bolt.Tx) error {
		show(tx.Cursor().Bucket(), "")
		for err := range tx.Check() {
			fmt.Println("  check:", err)
		}
		return nil
	}))
}

func show(b *bolt.Bucket, path string) {
	must(b.ForEach(func(key, value []byte) error {
		if value != nil {
			fmt.Printf("  %s/%s = %s\n", path, key, value)
			return nil
		}
		fmt.Printf("  %s/%s\n", path, key)
		show(b.Bucket(key), path+"/"+string(key))
		return nil
	}))
}

func main() {
	try("into another", "other")
	try("into itself", "chat", "archive")
}
GO
{
	go mod init example.com/finding
	go get go.etcd.io/bbolt@v1.5.0
	go mod tidy
} >/dev/null 2>&1
seen=$(go run .)
printf '%s\n' "$seen"
want='into another: error <nil>
  /other
  /other/chat
  /other/chat/archive
  /other/chat/archive/1 = hello
into itself: error <nil>
  /other
  check: page 4: unreachable unfreed'
[ "$seen" = "$want" ] || { echo "no longer as found"; exit 1; }
echo "as found"
