package shared

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"oneclaw/internal/cache"
	"oneclaw/internal/redact"
	"oneclaw/storage"
)

const (
	// invitationPrefix begins the keys of the lists of invitations, one for each channel. The lists are
	// encrypted, because anyone who has an address can post there.
	invitationPrefix = "slack/response/"
	// MaxResponses is how many responses Slack accepts to one command or press, invitationAge is for
	// how long.
	MaxResponses  = 5
	invitationAge = 30 * time.Minute
	// maxChannels bounds the lists in memory.
	maxChannels = 4096
	// maxInvitations bounds the list of a channel.
	maxInvitations = 50
)

// Invitation is an address to which a limited number of responses to a command or a press can be sent.
type Invitation struct {
	// ID is the id of the command or press. MessageID is the id of the message that only this invitation
	// can reach, if there is one.
	ID        string    `json:"id"`
	MessageID string    `json:"on,omitempty"`
	Address   string    `json:"address"`
	Used      int       `json:"used,omitempty"`
	Expires   time.Time `json:"until"`
}

// Invitations stores invitations, because another process may answer.
type Invitations struct {
	kv     storage.KV // if nil, they are kept in memory
	sealer *redact.Sealer
	clock  *Clock

	mu     sync.Mutex // held while memory changes
	memory *cache.Cache[string, []Invitation]
}

// NewInvitations returns the invitations of the bot with this token. Their encryption key is derived
// from the token, which only the bot's processes have. kv may be nil.
func NewInvitations(kv storage.KV, token string, clock *Clock) (*Invitations, error) {
	secret := sha256.Sum256([]byte(token))
	sealer, err := redact.NewSealer(secret[:], "oneclaw slack responses v1")
	if err != nil {
		return nil, fmt.Errorf("slack: key for response_urls: %w", err)
	}
	return &Invitations{kv: kv, sealer: sealer, clock: clock, memory: cache.New[string, []Invitation](maxChannels)}, nil
}

// Add stores an invitation to a channel.
func (v *Invitations) Add(ctx context.Context, channel string, in Invitation) error {
	in.Expires = v.clock.Now().Add(invitationAge)
	return v.update(ctx, channel, func(list []Invitation) []Invitation {
		list = append(list, in)
		return list[max(0, len(list)-maxInvitations):]
	})
}

// Take uses one response of the newest invitation that fits, and returns how many are left. left is
// negative if all were used already. address is empty if no invitation fits.
func (v *Invitations) Take(ctx context.Context, channel string, fits func(Invitation) bool) (address string, left int, err error) {
	err = v.update(ctx, channel, func(list []Invitation) []Invitation {
		address = ""
		for i, in := range slices.Backward(list) {
			if fits(in) {
				list[i].Used++
				address, left = in.Address, MaxResponses-list[i].Used
				return list
			}
		}
		return nil
	})
	return address, left, err
}

// GiveBack returns a response that [Invitations.Take] took and that Slack did not get.
func (v *Invitations) GiveBack(ctx context.Context, channel, address string) error {
	return v.update(ctx, channel, func(list []Invitation) []Invitation {
		for i, in := range slices.Backward(list) {
			if in.Address == address {
				list[i].Used--
				return list
			}
		}
		return nil // it has expired
	})
}

// update replaces the list of a channel with the result of change, unless that is nil.
func (v *Invitations) update(ctx context.Context, channel string, change func([]Invitation) []Invitation) error {
	if v.kv == nil {
		v.mu.Lock()
		defer v.mu.Unlock()
		known, _ := v.memory.Get(channel)
		if list := change(v.dropExpired(slices.Clone(known))); list != nil {
			v.memory.Put(channel, list, invitationAge)
		}
		return nil
	}
	err := storage.Retry(ctx, func() error { return v.rewrite(ctx, invitationPrefix+channel, change) })
	if err != nil {
		return fmt.Errorf("slack: response_url in the store: %w", err)
	}
	return nil
}

func (v *Invitations) rewrite(ctx context.Context, key string, change func([]Invitation) []Invitation) error {
	entry, err := storage.Find(ctx, v.kv, key)
	if err != nil {
		return err
	}
	list := change(v.dropExpired(v.decode(entry)))
	if list == nil {
		return nil
	}
	body, err := json.Marshal(list)
	if err == nil {
		_, err = v.kv.Put(ctx, key, v.sealer.Seal(key, body), entry.Revision)
	}
	return err
}

// decode returns the list in a record, which is empty if it was encrypted with another token.
func (v *Invitations) decode(entry storage.Entry) (list []Invitation) {
	if body, err := v.sealer.Open(entry.Key, entry.Value); err == nil {
		_ = json.Unmarshal(body, &list) // then it is empty
	}
	return list
}

// dropExpired drops expired invitations.
func (v *Invitations) dropExpired(list []Invitation) []Invitation {
	return slices.DeleteFunc(list, func(in Invitation) bool { return !v.clock.Now().Before(in.Expires) })
}

// Prune deletes lists that have only expired invitations.
func (v *Invitations) Prune(ctx context.Context) error {
	if v.kv == nil {
		return nil
	}
	for entry, err := range v.kv.List(ctx, storage.Range{Prefix: invitationPrefix}) {
		if err == nil && len(v.dropExpired(v.decode(entry))) == 0 {
			err = v.kv.Delete(ctx, entry.Key, entry.Revision)
		}
		if err != nil && !errors.Is(err, storage.ErrConflict) { // after a conflict it has a new invitation
			return err
		}
	}
	return nil
}
