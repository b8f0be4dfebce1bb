package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/queue"
	"oneclaw/internal/wording"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// ErrPaused is returned by [Bridge.Submit] if a user's unattended runs of the day are used up. A later
// attempt may succeed: on the next day, or after a person has let them go on.
var ErrPaused = errors.New("bridge: the unattended runs of this user are paused")

const (
	// pausedKind is the kind of the cards that say that runs are paused.
	pausedKind = "paused"
	// runPrefix begins the keys of counted runs, and morePrefix those of the rounds that a person has added.
	// The day, the hash of the user, and for runs their number on that day follow.
	runPrefix  = "unattended/run/"
	morePrefix = "unattended/more/"
	// countTries bounds the attempts to count a run while others of the user are counted.
	countTries = 50
)

// unattended bounds the runs that begin without a message of their user: of schedules, webhooks and
// background tasks. Each run takes a number of its day in the write that stores its job, so no record is
// shared by runs, and two replicas cannot take the same number.
type unattended struct {
	store    storage.Store
	jobs     queue.Store
	inserter *inserter
	cards    *interact.Cards
	limit    int
	now      func() time.Time
	zone     func() *time.Location
}

// pausedCard is the data of a card about paused runs.
type pausedCard struct {
	User   string `json:"user"`
	Day    string `json:"day"`
	Rounds int    `json:"rounds"`
}

func (u *unattended) day() string { return u.now().In(u.zone()).Format(time.DateOnly) }

// insert stores and queues the job of an unattended run, unless it is stored already. At the limit it
// posts a card in the chat of the job and returns [ErrPaused].
func (u *unattended) insert(ctx context.Context, j *queue.Run) error {
	day, user := u.day(), j.Message.SenderID()
	for range countTries {
		known, err := u.jobs.Find(ctx, j.Key())
		if err != nil {
			return err
		}
		if known != nil {
			return u.inserter.insert(ctx, j)
		}
		rounds, _, err := storage.Load[int](ctx, u.store, roundsKey(day, user))
		if err != nil {
			return err
		}
		prefix, n := runPrefix+day+"/"+queue.Hash(user)+"/", 0
		for _, err := range u.store.List(ctx, storage.Range{Prefix: prefix}) {
			if err != nil {
				return fmt.Errorf("count unattended runs: %w", err)
			}
			n++
		}
		if n >= u.limit*(1+rounds) {
			if err := u.tell(ctx, j.Message.Chat, pausedCard{user, day, rounds}); err != nil {
				return err
			}
			return ErrPaused
		}
		inserted, err := u.inserter.insertWith(ctx, j, storage.Put(fmt.Sprintf("%s%06d", prefix, n), nil, storage.Absent))
		if inserted || err != nil {
			return err
		}
	}
	return fmt.Errorf("count unattended runs: %w", storage.ErrConflict)
}

// roundsKey is the key of how often a person has let a user's runs of a day go on.
func roundsKey(day, user string) string { return morePrefix + day + "/" + queue.Hash(user) }

// tell posts a card that says that the runs of a user are paused, once in each chat and round.
func (u *unattended) tell(ctx context.Context, to chats.Chat, of pausedCard) error {
	data, err := json.Marshal(of)
	if err != nil {
		return fmt.Errorf("encode the card about paused runs: %w", err)
	}
	card := interact.Card{
		Kind: pausedKind, QuotedUser: of.User, Data: data, Choices: [][]interact.Choice{{{Label: "Go on", Value: "more"}}},
		Text: fmt.Sprintf("⏸ %s of schedules, webhooks and background tasks began today for one person, so I pause further ones until tomorrow.", wording.Plural(u.limit*(1+of.Rounds), "run", "runs")),
	}
	key := fmt.Sprintf("%s/%s/%s/%d", pausedKind, queue.Hash(of.User), of.Day, of.Rounds)
	_, err = u.cards.PostAnywhere(ctx, key, to.WithoutThread(), card)
	return err
}

// handlePress lets the runs of a user go on.
func (u *unattended) handlePress(ctx context.Context, press interact.Press) (interact.Result, error) {
	var of pausedCard
	if err := json.Unmarshal(press.Card.Data, &of); err != nil {
		return interact.Result{}, fmt.Errorf("decode the card about paused runs: %w", err)
	}
	switch {
	case press.Expired:
		return interact.Result{Text: press.Card.Text}, nil
	case press.User != of.User && !press.ForChat && press.Role < toolgroups.RoleAdmin:
		return interact.Result{Toast: "Only the person whose runs these are, or an administrator, can let them go on."}, nil
	case of.Day != u.day():
		return interact.Result{Toast: "That was another day: they go on by themselves.", Text: press.Card.Text, Close: true}, nil
	}
	if err := press.Author.Record(ctx, "let runs go on", of.User); err != nil {
		return interact.Result{}, err
	}
	key := roundsKey(of.Day, of.User)
	rounds, rev, err := storage.Load[int](ctx, u.store, key)
	if err == nil && rounds <= of.Rounds { // otherwise another card has done it
		_, err = storage.Save(ctx, u.store, key, of.Rounds+1, rev)
	}
	if err != nil {
		return interact.Result{}, err
	}
	return interact.Result{Toast: "They go on.", Text: fmt.Sprintf("▶ Unattended runs go on today, up to %d.", u.limit*(2+of.Rounds)), Close: true}, nil
}

// prune deletes the counts of days that are over everywhere.
func (u *unattended) prune(ctx context.Context) error {
	before := u.now().Add(-2 * day).UTC().Format(time.DateOnly)
	for _, prefix := range []string{runPrefix, morePrefix} {
		for entry, err := range u.store.List(ctx, storage.Range{Prefix: prefix}) {
			if err != nil {
				return fmt.Errorf("list old counts of runs: %w", err)
			}
			if on, _, _ := strings.Cut(strings.TrimPrefix(entry.Key, prefix), "/"); on >= before {
				break
			}
			if err := u.store.Delete(ctx, entry.Key, storage.Any); err != nil {
				return fmt.Errorf("delete an old count of runs: %w", err)
			}
		}
	}
	return nil
}
