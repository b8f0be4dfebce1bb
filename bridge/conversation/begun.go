package conversation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"strings"

	"oneclaw/storage"
)

// begunPrefix begins the keys of an index of conversations by their start, the newest first.
const begunPrefix = "begun/"

// indexPageSize is how many conversations are read at a time: a page of a list, and one more.
const indexPageSize = 51

// IndexKey returns the conversation's key in the index, after which [ByStart] can continue.
func (c Conversation) IndexKey() string {
	return fmt.Sprintf("%s%019d/%s", begunPrefix, math.MaxInt64-c.StartedAt.UnixNano(), strings.TrimPrefix(conversationKey(c.Owner, c.Log()), ConversationPrefix))
}

// indexOps returns the write of the index entry; none if its key would be too long. It accepts any
// revision, because only the key is read.
func (c Conversation) indexOps() []storage.Op {
	if len(c.IndexKey()) > storage.MaxKey {
		return nil
	}
	return []storage.Op{storage.Put(c.IndexKey(), nil, storage.Any)}
}

// ByStart yields the conversations, the newest first, after a key of the index; all of them if the key
// is empty. It skips conversations that are no longer listed.
func ByStart(ctx context.Context, kv storage.KV, after string) iter.Seq2[Conversation, error] {
	return func(yield func(Conversation, error) bool) {
		for more := true; more; {
			places := make([]string, 0, indexPageSize)
			for entry, err := range kv.List(ctx, storage.Range{Prefix: begunPrefix, After: after, Limit: indexPageSize}) {
				if err != nil {
					yield(Conversation{}, fmt.Errorf("list conversations: %w", err))
					return
				}
				places, after = append(places, entry.Key), entry.Key
			}
			more = len(places) == indexPageSize
			all, err := conversationsAt(ctx, kv, places)
			for _, c := range all {
				if !yield(c, nil) {
					return
				}
			}
			if err != nil {
				yield(Conversation{}, err)
				return
			}
		}
	}
}

// conversationsAt returns the conversations for some keys of the index, in their order.
func conversationsAt(ctx context.Context, kv storage.KV, places []string) (all []Conversation, err error) {
	keys := make([]string, len(places))
	for i, place := range places {
		_, key, _ := strings.Cut(strings.TrimPrefix(place, begunPrefix), "/")
		keys[i] = ConversationPrefix + key
	}
	entries, err := storage.GetMany(ctx, kv, keys)
	if err != nil {
		return nil, fmt.Errorf("read conversations: %w", err)
	}
	for i, key := range keys {
		var c Conversation
		if json.Unmarshal(entries[key].Value, &c) == nil && c.IndexKey() == places[i] { // skip damaged entries
			all = append(all, c)
		}
	}
	return all, nil
}

func readConversation(ctx context.Context, kv storage.KV, key string) (c Conversation, err error) {
	entry, err := kv.Get(ctx, key)
	if err != nil {
		return c, fmt.Errorf("find %s: %w", key, err)
	}
	if err := json.Unmarshal(entry.Value, &c); err != nil {
		return c, fmt.Errorf("decode %s: %w", key, err)
	}
	return c, nil
}

// Remove removes a conversation from the lists. If its entry in its owner's list no longer has the
// revision rev, it does nothing.
func (c Conversation) Remove(ctx context.Context, store storage.Store, rev storage.Revision) error {
	ops := []storage.Op{storage.Delete(conversationKey(c.Owner, c.Log()), rev)}
	for _, listed := range c.indexOps() {
		ops = append(ops, storage.Delete(listed.Key, storage.Any))
	}
	if c.By != "" {
		ops = append(ops, storage.Delete(askedKey(c.By, c.Log()), storage.Any))
	}
	_, err := store.Write(ctx, ops...)
	if err != nil && !errors.Is(err, storage.ErrConflict) {
		return fmt.Errorf("remove %s from the lists: %w", c.Log(), err)
	}
	return nil
}

// ByOwner yields the conversations of an owner whose logs sort after a given log, in the order of their
// logs; all of them if the given log is empty.
func ByOwner(ctx context.Context, kv storage.KV, owner, after string) iter.Seq2[Conversation, error] {
	return func(yield func(Conversation, error) bool) {
		r := storage.Range{Prefix: conversationKey(owner, "")}
		if after != "" {
			r.After = conversationKey(owner, after)
		}
		for entry, err := range kv.List(ctx, r) {
			var c Conversation
			if err == nil && json.Unmarshal(entry.Value, &c) != nil {
				continue // skip damaged entries
			}
			if !yield(c, err) || err != nil {
				return
			}
		}
	}
}
