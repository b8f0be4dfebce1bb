package eval

import (
	"context"
	"errors"
	"fmt"
	"io"

	"oneclaw/internal/learning"
)

// Count reads a whole file of cases before any of it costs something, and returns how many it
// has.
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

// Run plays the first so many cases of a file, tells of each, and returns the sums. Where the
// limit of cost ends it, the error is [ErrBudget], and the sums are those until then.
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
