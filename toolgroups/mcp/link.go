package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"oneclaw/internal/guard"
)

// oldProtocol is the last version that begins with "initialize". It is tried at once if the
// newest failed: some servers neither answer nor survive an unknown request.
const oldProtocol = "2025-11-25"

// dialer makes transports to one server.
type dialer interface {
	// open starts or contacts the server. The second result says why an ended connection has ended,
	// if the transport knows.
	open(ctx context.Context) (sdk.Transport, func() error, error)
	// rest frees what is kept between connections.
	rest()
}

// link is one connection to a server.
type link struct {
	session *sdk.ClientSession
	tap     *connTap
	why     func() error
	refresh chan struct{} // the server's list has changed
	once    sync.Once
	steps   progress
	askers  askers

	// Guarded by the server's lock.
	users  int
	hangs  int  // unanswered calls in a row
	served bool // a call was answered
	ended  bool // closed by us
}

// connTap remembers the connection of a transport, so that it can always be closed.
type connTap struct {
	sdk.Transport

	mu   sync.Mutex
	conn sdk.Connection
}

func (t *connTap) Connect(ctx context.Context) (sdk.Connection, error) {
	conn, err := t.Transport.Connect(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.conn = conn
	return conn, err
}

// close closes the connection, if any.
func (t *connTap) close() {
	t.mu.Lock()
	conn := t.conn
	t.mu.Unlock()
	if conn != nil {
		_ = conn.Close()
	}
}

// connect connects and reads the list of tools.
func connect(ctx context.Context, d dialer, from string, old bool) (*link, list, error) {
	transport, why, err := d.open(ctx)
	if err != nil {
		return nil, list{}, err
	}
	l := &link{why: why, refresh: make(chan struct{}, 1), askers: askers{from: from}}
	client := sdk.NewClient(&sdk.Implementation{Name: "oneclaw", Version: "1"}, &sdk.ClientOptions{
		Capabilities: &sdk.ClientCapabilities{
			Elicitation: &sdk.ElicitationCapabilities{Form: &sdk.FormElicitationCapabilities{}, URL: &sdk.URLElicitationCapabilities{}},
		},
		ElicitationHandler: l.askers.elicit, ElicitationCompleteHandler: l.askers.completed,
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {
			select {
			case l.refresh <- struct{}{}:
			default: // one pending refresh covers both
			}
		},
		ProgressNotificationHandler: l.steps.notified,
	})
	t := &connTap{Transport: transport}
	options := &sdk.ClientSessionOptions{}
	if old {
		options.ProtocolVersion = oldProtocol
	}
	// The session waits for its writes, which end with the connection.
	stop := context.AfterFunc(ctx, t.close)
	defer stop()
	session, err := client.Connect(ctx, t, options)
	if err != nil {
		t.close()
		return nil, list{}, cmp.Or(why(), err)
	}
	l.session, l.tap = session, t
	known, err := fetch(ctx, session)
	known.Old = old
	if err != nil {
		l.close()
		return nil, list{}, cmp.Or(why(), err)
	}
	return l, known, nil
}

// close ends the connection, its running calls, and the server's processes.
func (l *link) close() {
	l.once.Do(func() {
		// Errors while closing are of no use.
		l.tap.close()
		_ = l.session.Close()
	})
}

// cause returns why a connection has ended.
func (l *link) cause(err error) error {
	if why := l.why(); why != nil {
		return why
	}
	if err == nil || errors.Is(err, io.EOF) {
		return errors.New("it closed the connection")
	}
	return fmt.Errorf("the connection broke: %w", err)
}

// reason returns an error without addresses, which may contain secrets.
func reason(err error) error {
	if errors.Is(guard.Reason(err), guard.ErrAddress) {
		return fmt.Errorf("%w; if that is meant, set allow_private for the server", guard.ErrAddress)
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return errTooLarge
	}
	return guard.Reason(err)
}
