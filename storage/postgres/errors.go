package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

var errTimeout = errors.New("the server did not answer in time; it is unknown whether anything was written")

// describedError is an error with a text for administrators.
type describedError struct {
	words string
	err   error
}

// Error implements error.
func (p describedError) Error() string { return p.words }

// Unwrap implements errors.Unwrap.
func (p describedError) Unwrap() error { return p.err }

// Codes of PostgreSQL (SQLSTATE), and their meaning to the operator.
const (
	codePassword   = "28P01"
	codeAuth       = "28000"
	codeDatabase   = "3D000"
	codeSchema     = "3F000"
	codeRights     = "42501"
	codeReadOnly   = "25006"
	codeDiskFull   = "53100"
	codeTooMany    = "53300"
	codeShutdown   = "57P01"
	codeCrash      = "57P02"
	codeStarting   = "57P03"
	codeNoFunction = "42883"
	codeNoTable    = "42P01"

	codeProtocol    = "08P01"
	codePrepared    = "42P05" // a statement of this name is prepared already
	codeNotPrepared = "26000"
)

// poolerAdvice is the meaning of what a transaction pooler answers to what only a server itself can do.
const poolerAdvice = "a pooler such as PgBouncer is in front of the server: add pooler=true to the address"

var codeMeanings = map[string]string{
	codePassword:   "the password is wrong, or there is no such user",
	codeAuth:       "the server does not let this user in from here",
	codeDatabase:   "there is no such database: create it first",
	codeSchema:     "there is no schema to make the tables in: create it, or correct search_path",
	codeRights:     "the user has not the rights it needs: make it the owner of the database or of the schema in which the tables are",
	codeReadOnly:   "the server is a read-only standby, or the database is read-only",
	codeDiskFull:   "the disk of the server is full",
	codeTooMany:    "the server has no connection left: raise its max_connections, or lower pool_max_conns in the address (4 for each bot, and one that listens)",
	codeShutdown:   "the server is shutting down",
	codeCrash:      "the server has crashed and is starting again",
	codeStarting:   "the server is starting or shutting down",
	codeNoFunction: "a function of the database is missing: it has been changed by hand",
	codeNoTable:    "a table of the database is missing: it has been changed by hand",

	codePrepared:    poolerAdvice,
	codeNotPrepared: poolerAdvice,
}

// explain returns an error of one line. It repeats the message of the server, but not the details, which
// may contain a key.
func explain(err error) error {
	if answer, ok := errors.AsType[*pgconn.PgError](err); ok {
		words := codeMeanings[answer.Code]
		if answer.Code == codeProtocol && strings.Contains(answer.Message, "startup parameter") {
			words = poolerAdvice
		}
		if words == "" {
			return describedError{fmt.Sprintf("the server says: %s (%s)", answer.Message, answer.Code), err}
		}
		return describedError{fmt.Sprintf("%s (the server says: %s)", words, answer.Message), err}
	}
	var dial *pgconn.ConnectError
	var network *net.OpError
	switch {
	case errors.As(err, &network) && network.Op == "dial":
		return describedError{fmt.Sprintf("the server cannot be reached: %v", network), err}
	case errors.As(err, &dial):
		// Each way in which it was tried is on a line of its own.
		return describedError{"the server cannot be reached: " + strings.ReplaceAll(fmt.Sprint(errors.Unwrap(dial)), "\n", "; "), err}
	case isConnectionLost(err):
		return describedError{fmt.Sprintf("the connection to the server was lost, so it is unknown whether anything was written: %v", err), err}
	}
	return err
}

// isConnectionLost reports whether a connection ended without a response.
func isConnectionLost(err error) bool {
	var network *net.OpError
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &network) || errors.Is(err, net.ErrClosed)
}

// affectsAll reports whether the other connections are probably useless as well.
func affectsAll(err error) bool {
	if answer, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch answer.Code {
		case codeReadOnly, codeShutdown, codeCrash, codeStarting:
			return true
		}
		return false
	}
	return isConnectionLost(err) && !errors.Is(err, context.Canceled)
}
