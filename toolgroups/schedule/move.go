package schedule

import (
	"context"
	"errors"
	"time"

	"oneclaw/storage"
)

// Move moves the tasks of one owner to another owner and its chat, so that a chat that continues
// under another id keeps its tasks. Each task moves in one write, which is repeated after a conflict,
// so that no task is lost or runs for both owners. The next call completes a move that was
// interrupted.
func (s *Schedule) Move(ctx context.Context, from, owner, to string) error {
	if from == owner {
		return nil
	}
	tasks, err := s.Tasks(ctx, from)
	if err != nil {
		return err
	}
	for _, t := range tasks {
		if err := s.moveTask(ctx, t.ID, from, owner, to); err != nil {
			return err
		}
	}
	return nil
}

func (s *Schedule) moveTask(ctx context.Context, id, from, owner, to string) error {
	return storage.Retry(ctx, func() error {
		t, rev, err := s.readTask(ctx, from, id)
		if errors.Is(err, storage.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		ops := deleteOps(t, rev)
		t.Owner, t.Chat = owner, to
		if t.Claimed != nil {
			t.Claimed.Owner, t.Claimed.Chat = owner, to
			if !t.Claimed.Index.Equal(t.Due) {
				ops = append(ops, storage.Put(dueKey(t.Claimed.Index, owner, id), nil, storage.Any))
			}
		}
		puts, err := s.putOps(t, storage.Absent, time.Time{})
		if err != nil {
			return err
		}
		return s.commit(ctx, id, append(ops, puts...))
	})
}

// TasksOf returns the tasks that a user has created or owns.
func (s *Schedule) TasksOf(ctx context.Context, user string) (tasks []Task, err error) {
	for t, err := range s.tasks(ctx, taskPrefix) {
		if err != nil {
			return nil, err
		}
		if t.User == user || t.Owner == user {
			tasks = append(tasks, t)
		}
	}
	return tasks, nil
}

// Forget deletes the tasks that a user has created or owns.
func (s *Schedule) Forget(ctx context.Context, user string) error {
	tasks, err := s.TasksOf(ctx, user)
	for _, t := range tasks {
		if _, err := s.modifyTask(ctx, t.Owner, t.ID, func(*Task) error { return errRemoved }); err != nil && !errors.Is(err, storage.ErrNotFound) {
			return err
		}
	}
	return err
}
