package app

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"oneclaw/internal/config"
	"oneclaw/internal/readable"
	"oneclaw/storage"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/google"
)

// OpenGoogle opens the users' Google accounts. reader may be nil if no mail is read; zone returns a user's
// time zone, nil means the host's.
func OpenGoogle(cfg config.Config, store storage.KV, reader *readable.Reader, zone func(context.Context, toolgroups.Scope) *time.Location, log *slog.Logger) (*google.Google, error) {
	key, err := cfg.Place().SecretKey(context.Background(), store)
	if err != nil {
		return nil, err
	}
	var account []byte
	if cfg.Google.ServiceAccount != "" {
		if account, err = os.ReadFile(cfg.Google.ServiceAccount); err != nil {
			return nil, fmt.Errorf("setting google.service_account (GOOGLE_SERVICE_ACCOUNT): %w", err)
		}
	}
	g, err := google.New(google.Config{
		ClientID: cfg.Google.ClientID, ClientSecret: string(cfg.Google.ClientSecret), APIURL: cfg.Google.APIURL,
		PublicURL: cfg.PublicURL, LocalURL: cfg.LocalURL(), KV: store, SecretKey: key,
		ServiceAccount: account, Subjects: cfg.Google.Subjects, Location: zone, Now: cfg.Runtime.Now, Reader: reader, Logger: log,
	})
	if err != nil {
		return nil, fmt.Errorf("google: %w", err)
	}
	return g, nil
}
