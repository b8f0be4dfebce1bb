package bridge

import (
	"context"

	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/bridge/turn"
	"oneclaw/internal/retry"
)

// joinPieces joins a job and its pieces into one message, before its turn begins. Pieces that come later
// do not join any more; they are handled while the turn runs. A /stop does not interrupt joinPieces, and
// then ends the joined message. It retries after an error. It returns false if another process now has
// the job, the job is given up, or the bridge shuts down.
func (e *executor) joinPieces(ctx context.Context, j *queue.Run, t *attempts) bool {
	for pauses := retry.New(minRetry, e.completer.maxRetry); ; {
		err := e.joinPiecesOnce(j)
		if err == nil {
			return true
		}
		if e.completer.dropIfLost(j, err) || e.handleFailedAttempt(ctx, j, t, receipts.Failed, err) {
			return false
		}
		if t.reported {
			return true
		}
		wait := pauses.Next(0)
		e.log.Error("the pieces of a message cannot be joined, trying again", "job", j.Key(), "wait", wait, "err", err)
		if retry.Wait(e.queue.Context(), wait) != nil {
			return false
		}
	}
}

func (e *executor) joinPiecesOnce(j *queue.Run) error {
	ctx, cancel := e.queue.WriteContext()
	defer cancel()
	if err := e.jobs.ReloadOne(ctx, j); err != nil {
		return err
	}
	pieces, _, err := e.jobs.Reload(ctx, j.Pieces)
	if err != nil {
		return err
	}
	if e.workers.Placement(j).Partial || len(pieces) > 0 {
		one := *j
		one.Message, one.PieceCount, one.OwnLength = turn.MergePieces(j.Message, pieces), 1+len(pieces), len(j.Message.Text)
		if _, deep := e.workers.commands.deepQuestion(one.Message); deep {
			turn.WorkOf(&one).Deep = true // the caption of an album may be on a later picture
		}
		ops, err := e.jobs.JoinOps(&one, pieces, e.now())
		if err == nil {
			one.Rev, err = e.store.Write(ctx, ops...)
		}
		if err != nil {
			for _, some := range append(pieces, j) {
				some.PossiblyJoined = true
			}
			return err
		}
		j.Message, j.PieceCount, j.OwnLength, j.Rev = one.Message, one.PieceCount, one.OwnLength, one.Rev
		for _, piece := range pieces {
			j.Joined = append(j.Joined, piece.Key())
		}
	}
	for _, piece := range j.Pieces {
		e.queue.Remove(piece.Key())
	}
	j.Pieces = nil
	return nil
}
