package config_test

import (
	"testing"

	"oneclaw/internal/config"
)

// Google accepts only loopback addresses of a bot that has no public one.
func TestAListenerOnAllInterfacesIsOnLoopbackToo(t *testing.T) {
	for listen, want := range map[string]string{
		":8787":            "http://127.0.0.1:8787",
		"[::]:8787":        "http://127.0.0.1:8787",
		"0.0.0.0:80":       "http://127.0.0.1:80",
		"127.0.0.1:8787":   "http://127.0.0.1:8787",
		"[::1]:8787":       "http://[::1]:8787",
		"bot.example:8787": "http://bot.example:8787",
	} {
		if got := (config.Config{PortConfig: config.PortConfig{Listen: listen}}).LocalURL(); got != want {
			t.Errorf("%s: %s, want %s", listen, got, want)
		}
	}
}
