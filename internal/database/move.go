package database

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"oneclaw/storage"
	"oneclaw/storage/bolt"
)

// Move copies a database into another one, which is empty or left by an interrupted move, and
// compares the two. No bot may serve either meanwhile.
func Move(ctx context.Context, from, to Place, progress func(RecordCount)) (moved RecordCount, err error) {
	if err := from.checkKeys(to); err != nil {
		return moved, err
	}
	source, err := openForMove(ctx, from, true)
	if err != nil {
		return moved, fmt.Errorf("the database to move: %w", err)
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	target, err := openForMove(ctx, to, false)
	if err != nil {
		return moved, fmt.Errorf("the target of the move: %w", err)
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	err = (&Store{Store: source}).RunAlone(ctx, func(ctx context.Context) error {
		return (&Store{Store: target}).RunAlone(ctx, func(ctx context.Context) error {
			used, err := hasData(ctx, target)
			if err == nil && used && checkFinished(ctx, target) == nil {
				err = errors.New("there is a database already where this one should go: move it away, or name another place")
			}
			if err == nil {
				moved, err = replaceStore(ctx, source, target, progress)
			}
			if err == nil && to.Address.Shared() {
				err = from.recordKey(ctx, target)
			}
			return err
		})
	})
	return moved, err
}

// checkKeys refuses a move to a server if its key is not that of
// the data directory: encrypted data could no longer be read.
func (p Place) checkKeys(to Place) error {
	if !to.Address.Shared() || p.Address.Shared() || p.Secret == "" {
		return nil
	}
	own := p
	own.Secret = ""
	key, err := own.localKey()
	if errors.Is(err, fs.ErrNotExist) || err == nil && string(key) == p.Secret {
		return nil
	}
	if err != nil {
		return err
	}
	path := filepath.Join(p.Dir, SecretName)
	return fmt.Errorf("setting secret_key (ONECLAW_SECRET_KEY): it is not the key in %s: set it to that, or remove the file if the bot has always run with the setting", path)
}

// recordKey records on a server the fingerprint of the key with which a database was begun.
func (p Place) recordKey(ctx context.Context, target storage.KV) error {
	key, err := p.localKey()
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nothing was ever encrypted
	}
	if err != nil {
		return err
	}
	return checkKey(ctx, target, key)
}

// openForMove opens the source or the target of a move without upgrading it.
func openForMove(ctx context.Context, at Place, existing bool) (fillable, error) {
	if at.Address.Shared() {
		return at.connect(ctx, existing, nil)
	}
	path := filepath.Join(at.Dir, Name)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) && existing {
		return nil, noDatabaseError(at)
	}
	if err := os.MkdirAll(at.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("data directory (ONECLAW_DATA_DIR): %w", err)
	}
	store, err := bolt.Open(bolt.Config{Path: path})
	if errors.Is(err, storage.ErrLocked) {
		return nil, fmt.Errorf("the bot is running with %s: stop it first", at.Dir)
	}
	if err != nil {
		return nil, withRepairHint(err)
	}
	return store, nil
}
