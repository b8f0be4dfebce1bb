// Package service installs the program as a service of systemd and tells systemd how it is.
package service
