package connections

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"oneclaw/internal/wording"
	"oneclaw/storage"
	"oneclaw/toolgroups/mcp"
)

// Offer is an imported server that is not in use until an administrator switches it on.
type Offer struct {
	// Name is the server's name, which is the key of the record.
	Name string `json:"-"`
	// URL is the server's address.
	URL string `json:"url"`
	// OfferedAt is the time of the import.
	OfferedAt time.Time `json:"at"`
}

// Host returns the host in the server's address, whose path may hold a key.
func (o Offer) Host() string {
	u, err := url.Parse(o.URL)
	if err != nil {
		return ""
	}
	return u.Host
}

// Reasons why [ImportOffers] leaves out a server.
var (
	ErrKnown   = errors.New("there is a server of that name already")
	ErrTooMany = fmt.Errorf("there are %d servers already, which is the limit", maxServers)
)

// ImportOffers stores offers, and contacts no server. It returns for each offer nil, or the reason why it is
// left out. If write is not set, it stores nothing.
func ImportOffers(ctx context.Context, kv storage.KV, offers []Offer, write bool) ([]error, error) {
	known := map[string]bool{}
	for _, prefix := range []string{serverPrefix, offerPrefix} {
		for entry, err := range kv.List(ctx, storage.Range{Prefix: prefix}) {
			if err != nil {
				return nil, fmt.Errorf("list MCP servers: %w", err)
			}
			known[strings.ToLower(strings.TrimPrefix(entry.Key, prefix))] = true
		}
	}
	reasons := make([]error, len(offers))
	for i, offer := range offers {
		err := mcp.Config{Servers: map[string]mcp.Server{offer.Name: {URL: offer.URL}}}.Validate()
		switch key := strings.ToLower(offer.Name); {
		case err != nil:
			reasons[i] = errors.New(strings.TrimPrefix(wording.OneLine(err.Error(), 300), "mcp: "))
		case known[key]:
			reasons[i] = ErrKnown
		case len(known) >= maxServers:
			reasons[i] = ErrTooMany
		default:
			known[key] = true
		}
		if reasons[i] != nil || !write {
			continue
		}
		if _, err := storage.Save(ctx, kv, offerPrefix+offer.Name, offer, storage.Absent); err != nil {
			return nil, err
		}
	}
	return reasons, nil
}

// listOffers returns the offers by name. A damaged one is left out.
func listOffers(ctx context.Context, kv storage.KV) (map[string]Offer, error) {
	offers := map[string]Offer{}
	for entry, err := range kv.List(ctx, storage.Range{Prefix: offerPrefix}) {
		if err != nil {
			return nil, fmt.Errorf("list offered MCP servers: %w", err)
		}
		var one Offer
		if json.Unmarshal(entry.Value, &one) == nil {
			one.Name = strings.TrimPrefix(entry.Key, offerPrefix)
			offers[one.Name] = one
		}
	}
	return offers, nil
}
