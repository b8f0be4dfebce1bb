// Package service installs the program as a systemd service and notifies systemd of its state.
package service
