package eval

import (
	"context"
	"errors"
	"fmt"
	"io"

	"oneclaw/internal/learning"
)

// CountCases validates a whole file of cases before any request is paid for, and returns their number.
func CountCases(file io.ReadSeeker) (int, error) {
	n := 0
	for _, err := range learning.ReadCases(file) {
		if err != nil {
			return n, err
		}
		n++
	}
	_, err := file.Seek(0, io.SeekStart)
	return n, err
}

// Run plays the first cases of a file, calls tell with each result, and returns the summary. If the
// budget ends the run, the error is [ErrBudget], and the summary covers the cases before.
func (p *Player) Run(ctx context.Context, file io.Reader, cases int, tell func(Result) error) (sum Summary, err error) {
	for c, err := range learning.ReadCases(file) {
		if err != nil {
			return sum, err
		}
		if sum.Cases == cases {
			break
		}
		r, err := p.Play(ctx, c)
		if errors.Is(err, ErrBudget) {
			sum.NotRun = cases - sum.Cases
			return sum, fmt.Errorf("%w: %s spent, %d of %d cases are not run", ErrBudget, p.DescribeSpent(), sum.NotRun, cases)
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
