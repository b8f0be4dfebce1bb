package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"oneclaw/bridge/queue"
	"oneclaw/internal/config"
	"oneclaw/internal/database"
	"oneclaw/internal/doctor"
	"oneclaw/storage"
)

const (
	// MaxDeadLetters bounds doctor's list of dead letters.
	MaxDeadLetters = 20
	// maxDeadLetterList bounds the response of a running bot, in bytes.
	maxDeadLetterList = 64 << 20
)

// checkDeadLetters lists the dead letters.
func (d *checker) checkDeadLetters(ctx context.Context) *doctor.Finding {
	all, err := deadLetters(ctx, d.cfg)
	switch {
	case err != nil:
		return doctor.Warn("the database does not tell: %v", err)
	case len(all) == 0:
		return doctor.OK("none")
	}
	var lines []string
	for _, a := range all[max(0, len(all)-MaxDeadLetters):] {
		line := fmt.Sprintf("%s %s (incident %s): %s", a.Time.UTC().Format(time.DateTime), a.Key, a.Incident, a.Reason)
		if a.Chat != "" {
			line += ", in " + a.Chat
		}
		lines = append(lines, line)
	}
	if more := len(all) - len(lines); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d before them", more))
	}
	return doctor.Warn("%d given up, kept for %d days; the log has more under the incident: %s",
		len(all), int(queue.DeadLetterAge.Hours()/24), strings.Join(lines, "; "))
}

// deadLetters asks the running bot for the dead letters, or reads them from the database if no bot is
// running.
func deadLetters(ctx context.Context, cfg config.Config) (all []queue.DeadLetter, err error) {
	running, err := SendOrder(ctx, cfg, "deadletters", nil, func(body io.Reader) error {
		return json.NewDecoder(io.LimitReader(body, maxDeadLetterList)).Decode(&all)
	})
	if running || err != nil {
		return all, err
	}
	err = database.View(ctx, cfg.Place(), func(store *database.Store) error {
		all, err = deadLettersOf(ctx, store)
		return err
	})
	return all, err
}

// deadLettersOf lists the dead letters in a store, without their data, which has texts of users.
func deadLettersOf(ctx context.Context, store storage.KV) ([]queue.DeadLetter, error) {
	all, err := queue.ListDeadLetters(ctx, store)
	for i := range all {
		all[i].Data = nil
	}
	return all, err
}
