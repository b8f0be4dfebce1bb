package connections

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"oneclaw/internal/wording"
	"oneclaw/storage"
	"oneclaw/toolgroups/mcp"
)

// Offer is a server from elsewhere that was not added: an administrator can switch it on.
type Offer struct {
	// URL is the server's address.
	URL string `json:"url"`
	// OfferedAt is the time of the import.
	OfferedAt time.Time `json:"at"`
}

// Reasons why [ImportOffer] leaves out a server.
var (
	ErrKnown   = errors.New("there is a server of that name already")
	ErrTooMany = fmt.Errorf("there are %d servers already, which is the limit", maxServers)
)

// ImportOffer stores an offer under its name. It returns nil, or the reason why the offer is left out, and
// contacts no server. If write is not set, it only finds out.
func ImportOffer(ctx context.Context, kv storage.KV, name string, offer Offer, write bool) (reason, err error) {
	if err := (mcp.Config{Servers: map[string]mcp.Server{name: {URL: offer.URL}}}).Validate(); err != nil {
		return errors.New(strings.TrimPrefix(wording.OneLine(err.Error(), 300), "mcp: ")), nil
	}
	count := 0
	for _, prefix := range []string{serverPrefix, offerPrefix} {
		for entry, err := range kv.List(ctx, storage.Range{Prefix: prefix}) {
			if err != nil {
				return nil, fmt.Errorf("list MCP servers: %w", err)
			}
			if strings.EqualFold(strings.TrimPrefix(entry.Key, prefix), name) {
				return ErrKnown, nil
			}
			count++
		}
	}
	if count >= maxServers {
		return ErrTooMany, nil
	}
	if !write {
		return nil, nil
	}
	data, err := json.Marshal(offer)
	if err == nil {
		_, err = kv.Put(ctx, offerPrefix+name, data, storage.Absent)
	}
	return nil, err
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
			offers[strings.TrimPrefix(entry.Key, offerPrefix)] = one
		}
	}
	return offers, nil
}
