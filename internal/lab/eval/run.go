package eval

import (
	"context"
	"errors"
	"fmt"
	"io"

	"oneclaw/internal/learning"
)

// Count validates a whole file of cases before anything costs money, and returns their number.
func Count(file io.ReadSeeker) (int, error) {
	n := 0
	for _, err := range learning.Read(file) {
		if err != nil {
			return n, err
		}
		n++
	}
	_, err := file.Seek(0, io.SeekStart)
	return n, err
}

// Run plays the first cases of a file, calls tell with each, and returns the summary. If the
// budget ends it, the error is [ErrBudget], and the summary covers what was run.
func (p *Player) Run(ctx context.Context, file io.Reader, cases int, tell func(Result) error) (sum Sum, err error) {
	for c, err := range learning.Read(file) {
		if err != nil {
			return sum, err
		}
		if sum.Cases == cases {
			break
		}
		r, err := p.Play(ctx, c)
		if errors.Is(err, ErrBudget) {
			sum.Left = cases - sum.Cases
			return sum, fmt.Errorf("%w: %s spent, %d of %d cases are not run", ErrBudget, p.Spent(), sum.Left, cases)
		}
		if err != nil {
			return sum, err
		}
		sum.Add(r)
		if err := tell(r); err != nil {
			return sum, err
		}
	}
	return sum, nil
}
