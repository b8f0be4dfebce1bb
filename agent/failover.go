package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"oneclaw/internal/cache"
)

// DefaultOutage is how long a failed model is ordered after the others.
const DefaultOutage = 30 * time.Second

// maxOutage bounds the outage that a provider can ask for with RetryAfter.
const maxOutage = 15 * time.Minute

// Candidate is a model of a [Failover].
type Candidate struct {
	// Name identifies the model in the log and in Outages. It must be the same in every turn.
	Name  string
	Model Model
	// KeyRemedy tells an administrator what to do if the provider refuses the key.
	KeyRemedy string
}

// FailoverConfig configures a [Failover].
type FailoverConfig struct {
	// Candidates are asked in this order. At least one is needed.
	Candidates []Candidate
	// Outages records recent failures, for all turns that share it.
	Outages *Outages
	// Logger logs a change of model. Nil discards it.
	Logger *slog.Logger
}

// Failover is a model that asks the next candidate if one is unreachable, rate limited, out of credit, or
// refuses the key. It may be used concurrently.
type Failover struct {
	candidates []Candidate
	outages    *Outages
	log        *slog.Logger
}

// NewFailover returns a failover. It makes no request.
func NewFailover(cfg FailoverConfig) (*Failover, error) {
	if len(cfg.Candidates) == 0 {
		return nil, errors.New("agent: failover has no candidates")
	}
	for _, c := range cfg.Candidates {
		if c.Model == nil || c.Name == "" {
			return nil, errors.New("agent: a failover candidate has no model or no name")
		}
	}
	return &Failover{candidates: cfg.Candidates, outages: cfg.Outages, log: cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))}, nil
}

// Profile returns the profile of the first model, with the smallest MaxTools of all models, because any
// of them may answer the request.
func (f *Failover) Profile() Profile {
	now := ProfileOf(f.order()[0].Model)
	for _, c := range f.candidates {
		if most := ProfileOf(c.Model).MaxTools; most > 0 && (now.MaxTools == 0 || most < now.MaxTools) {
			now.MaxTools = most
		}
	}
	return now
}

// order returns the candidates, those that failed recently after the others.
func (f *Failover) order() []Candidate {
	var well, out []Candidate
	for _, c := range f.candidates {
		if f.outages.failed.Has(c.Name) {
			out = append(out, c)
		} else {
			well = append(well, c)
		}
	}
	return append(well, out...)
}

// Complete asks one model after another until one replies. It also skips a fallback model that rejects
// the request, and withdraws a partial reply that onDelta received. A failure that another model would not
// avoid is returned at once. If all models fail, the error has the kind of the first that did not reject
// the request, and the errors of all in its text. The usage of the reply leaves out the models that
// failed: each candidate accounts for its own.
func (f *Failover) Complete(ctx context.Context, req Request, onDelta func(Delta)) (Reply, error) {
	order := f.order()
	shown := false
	var forward func(Delta)
	if onDelta != nil {
		forward = func(d Delta) {
			shown = !d.Restart && (shown || d.Text != "")
			onDelta(d)
		}
	}
	var failures []error
	var first *ModelError
	for i, c := range order {
		if shown {
			forward(Delta{Restart: true})
		}
		reply, err := c.Model.Complete(ctx, req, forward)
		if err == nil {
			f.outages.failed.Forget(c.Name)
			return reply, nil
		}
		var failure *ModelError
		if ctx.Err() != nil || !errors.As(err, &failure) {
			return Reply{}, err
		}
		switch {
		case canFailOver(failure.Kind):
			f.outages.failed.Put(c.Name, struct{}{}, min(max(failure.RetryAfter, DefaultOutage), maxOutage))
		case c.Name == f.candidates[0].Name || failure.Kind != KindRejected:
			return Reply{}, err
		}
		if failure.Kind == KindAuth {
			failure.Remedy = cmp.Or(failure.Remedy, c.KeyRemedy)
		}
		first = preferredError(first, failure)
		failures = append(failures, fmt.Errorf("%s: %w", c.Name, err))
		if i+1 < len(order) {
			f.log.Warn("another model takes over", "from", c.Name, "to", order[i+1].Name, "kind", failure.Kind, "err", err)
		}
	}
	if len(failures) == 1 {
		return Reply{}, first
	}
	return Reply{}, &ModelError{Kind: first.Kind, Status: first.Status, RetryAfter: first.RetryAfter, Remedy: first.Remedy, Err: errors.Join(failures...)}
}

// preferredError returns the failure to report. A rejected request is reported only if no model failed
// in another way.
func preferredError(first, next *ModelError) *ModelError {
	if first == nil || first.Kind == KindRejected {
		return next
	}
	return first
}

// canFailOver reports whether a failure may be specific to one provider.
func canFailOver(kind Kind) bool {
	return kind == KindUnavailable || kind == KindRateLimit || kind == KindCredit || kind == KindAuth
}

// Outages records for a while which models failed. It may be used concurrently.
type Outages struct {
	failed *cache.Cache[string, struct{}]
}

// maxModels bounds how many failed models are recorded.
const maxModels = 1000

// NewOutages returns an empty record of outages.
func NewOutages() *Outages { return &Outages{cache.New[string, struct{}](maxModels)} }
