package schedule

import (
	"context"
	"errors"

	"oneclaw/storage"
)

// Move gives the tasks of one owner to another, whose chat is to: a chat that goes on
// under another id keeps its tasks. Each is written under its new owner before it is
// taken from the old one, so that breaking off loses none; doing it again does the rest.
func (s *Schedule) Move(ctx context.Context, from, owner, to string) error {
	if from == owner {
		return nil
	}
	tasks, err := s.Tasks(ctx, from)
	if err != nil {
		return err
	}
	for _, t := range tasks {
		due := t.Due
		t.Owner, t.Chat = owner, to
		if t.Claimed != nil {
			t.Claimed.Owner, t.Claimed.Chat = owner, to
		}
		if err := s.index(ctx, t); err != nil {
			return err
		}
		// What the new owner has already counts.
		if err := s.write(ctx, t, storage.Absent, due); err != nil && !errors.Is(err, storage.ErrConflict) {
			return err
		}
		if err := s.delete(ctx, Task{ID: t.ID, Owner: from, Due: due}, storage.Any); err != nil {
			return err
		}
	}
	return nil
}
