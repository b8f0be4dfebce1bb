package telegram

import (
	"context"
	"fmt"
	"slices"
	"time"

	"oneclaw/internal/cache"
	"oneclaw/storage"
)

const (
	// albumsKey is the key of the list of the last albums for the bot.
	albumsKey = "telegram/albums"
	// maxAlbums bounds the albums in memory, maxStoredAlbums those in the store. The items of an album
	// arrive within seconds.
	maxAlbums       = 1024
	maxStoredAlbums = 100
)

// album identifies the files that were sent at once, or a piece of a long text. Files and pieces arrive
// one by one, in separate polls, or are posted to different processes.
type album struct {
	Chat  int64  `json:"chat"`
	Group string `json:"group"`
}

// albumStore remembers the albums and the pieces of texts in groups that are for the bot.
type albumStore struct {
	known *cache.Cache[album, bool]
	kv    storage.KV // if nil, nothing is stored
	// undecided has the items of albums in which no item mentions the bot yet.
	undecided *undecided
}

func newAlbumStore(kv storage.KV) albumStore {
	// An earlier process may have left some items behind.
	return albumStore{cache.New[album, bool](maxAlbums), kv, &undecided{kv: kv, deleteAt: time.Now().Add(undecidedAge)}}
}

// add records albums for all processes. It returns once they are on disk: the next item may reach
// another process as soon as this one is confirmed.
func (a *albumStore) add(ctx context.Context, list ...album) error {
	if a.kv != nil && !a.knowsAll(list) {
		if err := storage.Retry(ctx, func() error { return a.write(ctx, list) }); err != nil {
			return fmt.Errorf("telegram: store an album: %w", err)
		}
	}
	for _, one := range list {
		a.known.Put(one, true, cache.Forever)
	}
	return nil
}

// write adds albums to the store, or returns [storage.ErrConflict] if another process was first.
func (a *albumStore) write(ctx context.Context, added []album) error {
	list, rev, err := a.read(ctx)
	if err != nil {
		return err
	}
	before := len(list)
	for _, one := range added {
		if !slices.Contains(list, one) {
			list = append(list, one)
		}
	}
	if len(list) == before {
		return nil
	}
	_, err = storage.Save(ctx, a.kv, albumsKey, list[max(0, len(list)-maxStoredAlbums):], rev)
	return err
}

// refresh loads into memory which of the wanted albums another process has recorded.
func (a *albumStore) refresh(ctx context.Context, wanted ...album) error {
	if a.kv == nil || a.knowsAll(wanted) {
		return nil
	}
	list, _, err := a.read(ctx)
	for _, one := range wanted {
		if slices.Contains(list, one) {
			a.known.Put(one, true, cache.Forever)
		}
	}
	return err
}

func (a *albumStore) knowsAll(list []album) bool {
	return !slices.ContainsFunc(list, func(one album) bool { return !a.known.Has(one) })
}

// read returns the stored list. An undecodable list counts as empty.
func (a *albumStore) read(ctx context.Context) (list []album, rev storage.Revision, err error) {
	list, rev, err = storage.Load[[]album](ctx, a.kv, albumsKey)
	if err != nil && rev == storage.Absent {
		return nil, rev, fmt.Errorf("telegram: the albums for the bot: %w", err)
	}
	return list, rev, nil
}
