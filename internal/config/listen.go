package config

import "net"

// LocalURL returns the URL of the HTTP listener on the bot's own machine, where a listener on all
// interfaces is on loopback, too.
func (c Config) LocalURL() string {
	host, port, err := net.SplitHostPort(c.Listen)
	if err != nil { // which the start reports
		return "http://" + c.Listen
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}
