package app

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"

	"oneclaw/internal/config"
	"oneclaw/internal/database"
	"oneclaw/internal/doctor"
	"oneclaw/internal/models"
)

// checkKindModels checks the models of models.by_kind. A running bot checks its own.
func (d *checker) checkKindModels(ctx context.Context) *doctor.Finding {
	var reports []models.KindReport
	running, err := SendOrder(ctx, d.cfg, "models", nil, func(body io.Reader) error { return json.NewDecoder(body).Decode(&reports) })
	if !running {
		err = WithModels(ctx, d.cfg, slog.New(slog.DiscardHandler), func(m *models.Models) error {
			reports = m.CheckKinds(ctx)
			return nil
		})
	}
	if err != nil {
		return doctor.Warn("the models of models.by_kind cannot be checked: %v", err)
	}
	if len(reports) == 0 {
		return nil
	}
	finding := doctor.OK("")
	var texts []string
	for _, r := range reports {
		text := strings.Join(r.Settings, ", ") + ": "
		switch {
		case r.Broken:
			finding.Status = doctor.VerdictFail
			text += r.Advice
		case r.Advice != "":
			if finding.Status == doctor.VerdictOK {
				finding.Status = doctor.VerdictWarn
			}
			text += r.Advice
		default:
			text += r.Facts
		}
		texts = append(texts, text)
	}
	finding.Text = strings.Join(texts, "; ")
	return finding
}

// WithModels calls do with the models that the settings name and the providers in the database. Without a
// database there is only the provider of the settings.
func WithModels(ctx context.Context, cfg config.Config, log *slog.Logger, do func(*models.Models) error) (err error) {
	found := false
	with := func(store *database.Store) error {
		found = true
		changing, vault, err := OpenSettings(cfg, store, log)
		if err != nil {
			return err
		}
		return do(models.New(models.Config{
			Own: cfg.Model, ByKind: cfg.Models.ByKind, HTTPClient: cfg.ModelClient(), Settings: changing, Vault: vault, Logger: log,
		}))
	}
	if err := database.View(ctx, cfg.Place(), with); err != nil || found {
		return err
	}
	cfg.Store = database.Bolt
	if cfg.DataDir, err = os.MkdirTemp("", "oneclaw-doctor-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(cfg.DataDir)) }()
	return WithStore(ctx, cfg, log, with)
}
