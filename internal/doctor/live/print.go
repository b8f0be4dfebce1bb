package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
)

// Print prints the rows as they are yielded. The error names the steps that deviate or failed.
func Print(ctx context.Context, w io.Writer, redact func(string) string, tries []iter.Seq[Row]) error {
	const form = "%-6s  %-9s %-9s  %-60s  %s\n"
	_, err := fmt.Fprintf(w, form, "", "where", "step", "the service", "the emulator")
	same, different, failed := 0, []string(nil), []string(nil)
	for _, try := range tries {
		for row := range try {
			verdict, name := "same", row.Where+" "+row.Step
			switch {
			case row.Err != nil:
				verdict, row.Service, failed = "FAILED", row.Err.Error(), append(failed, name)
			case !row.matchesEmulator():
				verdict, different = "OTHER", append(different, name)
			default:
				same++
			}
			text := strings.ReplaceAll(strings.TrimSpace(redact(row.Service)), "\n", "; ")
			_, printed := fmt.Fprintf(w, form, verdict, row.Where, row.Step, text, row.Emulator)
			err = errors.Join(err, printed)
		}
	}
	if err := errors.Join(err, ctx.Err()); err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "\n%d as the emulator does, %d other, %d failed.\n", same, len(different), len(failed))
	if len(failed)+len(different) > 0 {
		return errors.Join(err, fmt.Errorf("not as the emulator does: %s", strings.Join(append(failed, different...), ", ")))
	}
	return err
}
