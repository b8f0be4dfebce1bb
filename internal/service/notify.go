package service

import (
	"context"
	"errors"
	"net"
	"os"
)

// What systemd is told.
const (
	Ready    = "READY=1"
	Stopping = "STOPPING=1"
)

// Notify tells systemd how the program is, where it was started by systemd. No other supervisor is told,
// and nothing depends on it but the time after which systemd thinks that the start has failed.
func Notify(ctx context.Context, state string) error {
	address := os.Getenv("NOTIFY_SOCKET")
	if address == "" {
		return nil
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unixgram", address) // "@" at its beginning is known to package net
	if err != nil {
		return err
	}
	_, err = conn.Write([]byte(state))
	return errors.Join(err, conn.Close())
}
