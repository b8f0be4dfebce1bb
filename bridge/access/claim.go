package access

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/internal/wording"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// ClaimAge is how long the code of a [Claim] is valid.
const ClaimAge = time.Hour

const claimKey = "claim"

// Errors of [NewClaim].
var (
	// ErrOwned says that the bot has an owner.
	ErrOwned = errors.New("access: the bot has an owner")
	// ErrOffered says that a claim made by the operator is still open.
	ErrOffered = errors.New("access: a claim is open")
)

// Claim makes the user who sends its code in a direct chat the owner.
type Claim struct {
	// Code is shown to the operator, once. Only its hash is stored.
	Code string `json:"code"`
	// Until is when it expires.
	Until time.Time `json:"until"`
}

// NewClaim stores a new claim in place of any earlier one. byHand says that the operator asked for it:
// an automatic claim does not replace such a claim.
func NewClaim(ctx context.Context, kv storage.KV, now time.Time, byHand bool) (Claim, error) {
	return newClaim(ctx, kv, now, byHand, nil)
}

// SharedClaim returns the claim of processes that share a store and a secret: the first one makes it,
// and the others show the same code while it is open.
func SharedClaim(ctx context.Context, kv storage.KV, now time.Time, secret []byte) (Claim, error) {
	return newClaim(ctx, kv, now, false, secret)
}

func newClaim(ctx context.Context, kv storage.KV, now time.Time, byHand bool, secret []byte) (Claim, error) {
	for {
		// Read the claim first: if a user takes it after this read, the write below is a conflict.
		earlier, err := readClaim(ctx, kv)
		if err != nil {
			return Claim{}, err
		}
		owned, err := Owned(ctx, kv)
		switch {
		case err != nil:
			return Claim{}, err
		case owned:
			return Claim{}, ErrOwned
		case earlier.ByHand && !byHand && earlier.open(now):
			return Claim{Until: earlier.Until}, ErrOffered
		}
		if code := codeOf(secret, earlier.Seed); secret != nil && earlier.open(now) && earlier.is(code) {
			return Claim{Code: code, Until: earlier.Until}, nil
		}
		offer := Claim{Code: rand.Text(), Until: now.Add(ClaimAge)}
		stored := claim{Until: offer.Until, ByHand: byHand}
		if secret != nil {
			stored.Seed = rand.Text()
			offer.Code = codeOf(secret, stored.Seed)
		}
		stored.Hash = hashCode(offer.Code)
		if _, err = queue.Write(ctx, kv, claimKey, stored, earlier.rev); !errors.Is(err, storage.ErrConflict) {
			return offer, err
		}
	}
}

// codeOf derives the code from a secret and a seed.
func codeOf(secret []byte, seed string) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte("oneclaw claim v1\x00" + seed))
	return base32.StdEncoding.EncodeToString(mac.Sum(nil))[:len(rand.Text())]
}

// Owned reports whether the bot has an owner.
func Owned(ctx context.Context, kv storage.KV) (bool, error) {
	r := newRegister(kv, slog.New(slog.DiscardHandler))
	if err := r.load(ctx); err != nil {
		return false, err
	}
	_, owned := r.owner()
	return owned, nil
}

// OwnerChat returns the direct chat with the bot's owner; the zero value if there is none.
func OwnerChat(ctx context.Context, kv storage.KV) (chats.Chat, error) {
	r := newRegister(kv, slog.New(slog.DiscardHandler))
	err := r.load(ctx)
	owner, _ := r.owner()
	return owner.Chat, err
}

// claim is the stored form of a [Claim].
type claim struct {
	Hash  []byte    `json:"hash"`
	Until time.Time `json:"until"`
	// Void says that others may know the code.
	Void bool `json:"void,omitempty"`
	// ByHand says that the operator asked for it.
	ByHand bool `json:"by_hand,omitempty"`
	// Seed lets processes that share a secret derive the same code.
	Seed string `json:"seed,omitempty"`

	rev storage.Revision
}

func hashCode(code string) []byte {
	sum := sha256.Sum256([]byte(strings.ToUpper(strings.TrimSpace(code))))
	return sum[:]
}

func (c claim) open(now time.Time) bool { return !c.Void && now.Before(c.Until) }

func (c claim) is(code string) bool { return subtle.ConstantTimeCompare(c.Hash, hashCode(code)) == 1 }

// readClaim returns the last claim; an empty one if there is none or it is damaged: no code takes
// either, and the next claim replaces both.
func readClaim(ctx context.Context, kv storage.KV) (claim, error) {
	var c claim
	entry, err := kv.Get(ctx, claimKey)
	if errors.Is(err, storage.ErrNotFound) {
		return c, nil
	}
	if err != nil {
		return c, fmt.Errorf("read claim: %w", err)
	}
	if json.Unmarshal(entry.Value, &c) != nil {
		c = claim{}
	}
	c.rev = entry.Revision
	return c, nil
}

// Answers to codes that do not take a claim.
const (
	wrongCode = "That is not the code, or not all of it. My log shows it; each start makes a new one. " +
		"I may not answer the next wrong one."
	noClaim = "There is nothing to claim here, or the code is no longer valid. If I am yours, restart me: my log will show a new code."
)

// tryCode returns the last claim, if there is one, and why a code does not take it. It does not count
// wrong codes: a code has 130 bits, and only the operator decides when it ends.
func (d *Registry) tryCode(ctx context.Context, code string) (c claim, refusal string, err error) {
	c, err = readClaim(ctx, d.cfg.Store)
	switch {
	case err != nil:
		return c, "", err
	case !c.open(d.cfg.Now()):
		return c, noClaim, nil
	case !c.is(code):
		return c, wrongCode, nil
	}
	return c, "", nil
}

// ClaimPattern matches messages that claim the bot: the text of Telegram's link, the command, or a code
// after the word alone, because Slack does not deliver texts with a slash. The text has to be trimmed.
var ClaimPattern = regexp.MustCompile(`(?i)^(?:[/!]?(?:claim|start)\s+([a-z2-7]{26})|[/!]claim(?:\s+(\S+))?)$`)

const claimName = "claim"

// AsClaim turns a message that matches [ClaimPattern] into the claim command.
func AsClaim(m chats.Message) chats.Message {
	if match := ClaimPattern.FindStringSubmatch(strings.TrimSpace(m.Text)); match != nil && m.Kind == chats.KindText {
		m.Text = strings.TrimSpace("/" + claimName + " " + match[1] + match[2])
	}
	return m
}

// claimBot makes the sender the owner, if the code is right.
func (d *Registry) claimBot(ctx context.Context, j *queue.Run, code string) (string, error) {
	m := j.Message
	d.changing.Lock()
	defer d.changing.Unlock()
	if err := d.register.refresh(ctx, m.By()); err != nil {
		return "", err
	}
	if d.Role(m.By()) == toolgroups.RoleOwner {
		return greeting(m), nil
	}
	c, refusal, err := d.tryCode(ctx, code)
	if err != nil || refusal != "" {
		return refusal, err
	}
	if owned, err := Owned(ctx, d.cfg.Store); err != nil || owned {
		return noClaim, err
	}
	if !m.Direct {
		c.Void = true
		d.cfg.Log.Warn("the code was shown in a shared chat and is void: start again for a new one", "chat", m.Chat.String(), "user", m.By())
		_, err := queue.Write(ctx, d.cfg.Store, claimKey, c, c.rev)
		return "Everyone here could read that code, so it is no longer valid. Please restart me and send me the new code in a direct chat.", err
	}
	owner := writer(m, isOwner, d.cfg.Now())
	owner.rev = d.register.find(owner.User).rev
	// The claim is deleted in the write that makes the owner: of two users with the right code at the
	// same moment, even in two processes, one finds it taken.
	if err := j.Author(d.cfg.Store).Record(ctx, "claim", owner.User); err != nil {
		return "", err
	}
	data, err := json.Marshal(owner)
	if err != nil {
		return "", fmt.Errorf("encode the owner: %w", err)
	}
	if owner.rev, err = d.cfg.Store.Write(ctx, storage.Put(accessPrefix+owner.User, data, owner.rev), storage.Delete(claimKey, c.rev)); err != nil {
		return "", fmt.Errorf("store the owner: %w", d.register.again(ctx, owner.User, err))
	}
	d.register.set(owner)
	if err := d.strangers.forget(ctx, ""); err != nil {
		d.cfg.Log.Warn("strangers are not told yet that the bot has an owner", "err", err)
	}
	d.cfg.Log.Info("the bot is claimed", "owner", owner.User, "name", owner.Name)
	return greeting(m), nil
}

func greeting(m chats.Message) string {
	name := ""
	if m.UserName != "" {
		name = ", " + wording.Escape(wording.OneLine(m.UserName, maxName))
	}
	return "Welcome" + name + "! I am yours now.\n\n" +
		"Write to me as you would to a person; /help lists the commands. " +
		"When someone else writes to me, I will ask you here whether to let them in."
}
