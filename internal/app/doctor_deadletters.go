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
	// MaxDeadLetters bounds what doctor lists of what was set aside.
	MaxDeadLetters = 20
	// maxDeadLetterList bounds what a running bot answers.
	maxDeadLetterList = 64 << 20
)

// checkDeadLetters lists what the bot could not carry to its end.
func (d *patient) checkDeadLetters(ctx context.Context) *doctor.Finding {
	all, err := deadLetters(ctx, d.cfg)
	switch {
	case err != nil:
		return doctor.Warn("the database does not tell: %v", err)
	case len(all) == 0:
		return doctor.OK("nothing")
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

// asides asks the running bot what was set aside, or the database where none runs.
func deadLetters(ctx context.Context, cfg config.Config) (all []queue.DeadLetter, err error) {
	running, err := Order(ctx, cfg, "deadletters", nil, func(body io.Reader) error {
		return json.NewDecoder(io.LimitReader(body, maxDeadLetterList)).Decode(&all)
	})
	if running || err != nil {
		return all, err
	}
	err = database.Look(ctx, cfg.Place(), func(store *database.Store) error {
		all, err = deadLettersOf(ctx, store)
		return err
	})
	return all, err
}

// deadLettersOf lists what was set aside, without what people wrote.
func deadLettersOf(ctx context.Context, store storage.KV) ([]queue.DeadLetter, error) {
	all, err := queue.ListDeadLetters(ctx, store)
	for i := range all {
		all[i].Data = nil
	}
	return all, err
}
