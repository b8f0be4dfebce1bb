package storage

import (
	"errors"
	"fmt"
)

// CheckOps returns an error that wraps ErrInvalid if no engine accepts a Write of these operations.
func CheckOps(ops []Op) error {
	if len(ops) == 0 {
		return fmt.Errorf("%w: nothing to write", ErrInvalid)
	}
	type target struct{ key, log string }
	seen := make(map[target]bool, len(ops))
	for _, op := range ops {
		if err := checkOp(op); err != nil {
			return err
		}
		to := target{key: op.Key}
		if op.Kind == KindAppend {
			to = target{log: op.Log}
		}
		if seen[to] {
			return fmt.Errorf("%w: two operations on one key or log", ErrInvalid)
		}
		seen[to] = true
	}
	return nil
}

func checkOp(op Op) error {
	switch op.Kind {
	case KindPut, KindDelete, KindCheck:
		return errors.Join(CheckName("key", op.Key), checkLength("value", len(op.Value), MaxValue))
	case KindAppend:
		return checkAppend(op.Log, op.Records)
	}
	return fmt.Errorf("%w: operation of kind %d", ErrInvalid, op.Kind)
}

func checkAppend(log string, records []Record) error {
	if len(records) == 0 {
		return fmt.Errorf("%w: no records", ErrInvalid)
	}
	return CheckRecords(log, records)
}

// CheckRecords returns an error that wraps ErrInvalid if no engine accepts these records.
func CheckRecords(log string, records []Record) error {
	err := CheckName("log name", log)
	for _, r := range records {
		err = errors.Join(err, checkLength("label", len(r.Label), MaxKey), checkLength("record", len(r.Data), MaxValue))
	}
	return err
}

// CheckName returns an error that wraps ErrInvalid if no engine accepts a key or log name. The error
// contains what, but not the name.
func CheckName(what, name string) error {
	if name == "" {
		return fmt.Errorf("%w: empty %s", ErrInvalid, what)
	}
	return checkLength(what, len(name), MaxKey)
}

// CheckLimit returns an error that wraps ErrInvalid if a limit is negative.
func CheckLimit(n int) error {
	if n < 0 {
		return fmt.Errorf("%w: limit %d", ErrInvalid, n)
	}
	return nil
}

func checkLength(what string, n, limit int) error {
	if n > limit {
		return fmt.Errorf("%w: %s of %d bytes, at most %d", ErrInvalid, what, n, limit)
	}
	return nil
}
