package service

import (
	"context"
	"errors"
	"net"
	"os"
)

// States that are reported to systemd.
const (
	Ready    = "READY=1"
	Stopping = "STOPPING=1"
)

// Notify sends a state to systemd, if systemd has started the program. Only systemd's start timeout
// depends on the states.
func Notify(ctx context.Context, state string) error {
	address := os.Getenv("NOTIFY_SOCKET")
	if address == "" {
		return nil
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unixgram", address) // package net supports "@" at the beginning
	if err != nil {
		return err
	}
	_, err = conn.Write([]byte(state))
	return errors.Join(err, conn.Close())
}
