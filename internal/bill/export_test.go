package bill

import (
	"context"
	"strings"

	"oneclaw/agent"
	"oneclaw/toolgroups/search"
)

// Log plays a conversation and returns what a bot would have stored of it.
func (b *Bill) Log(ctx context.Context, c Conversation, mode search.Routing) ([]agent.Message, error) {
	rec, err := b.play(ctx, c, mode, Provider{Model: "any"})
	return rec.log, err
}

// Simulate sends requests of such segments to a cache.
func Simulate(cache Cache, requests ...[]string) (Cost, error) {
	m, err := newMeter()
	if err != nil {
		return Cost{}, err
	}
	var all []request
	for _, segments := range requests {
		var r request
		for _, text := range segments {
			r.segments = append(r.segments, m.intern(text))
		}
		all = append(all, r)
	}
	return m.cost(context.Background(), all, cache)
}

// Arrays plays a conversation and returns the tools of each request as they were sent.
func (b *Bill) Arrays(ctx context.Context, c Conversation, mode search.Routing) ([]string, error) {
	rec, err := b.play(ctx, c, mode, Provider{Model: "gpt-5"})
	if err != nil {
		return nil, err
	}
	var arrays []string
	for _, r := range rec.requests {
		array := ""
		for _, one := range r.segments {
			segment := b.meter.texts[one]
			if strings.HasPrefix(segment, `{"type":"function"`) {
				array += segment
			}
		}
		arrays = append(arrays, array)
	}
	return arrays, nil
}
