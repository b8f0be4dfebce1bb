package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"oneclaw/internal/guard"
	"oneclaw/internal/rescue"
)

// oldProtocol is the last protocol version that begins with "initialize". It is tried after a failed
// attempt with the newest: some servers do not survive an unknown request.
const oldProtocol = "2025-11-25"

// discoverTime bounds the wait for an answer to server/discover, with which the newest protocol begins. The
// library goes on with "initialize" then: some servers do not answer an unknown request.
const discoverTime = 5 * time.Second

// errNotOpened marks, without a text, the error of a server that could not be started at all.
var errNotOpened = errors.New("")

// dialer makes transports to one server.
type dialer interface {
	// open starts or contacts the server. Requests of the transport end with ctx, which is ended once
	// the connection is closed. The returned function says why the connection has ended, if the
	// transport knows.
	open(ctx context.Context) (sdk.Transport, func() error, error)
	// closeIdle closes the resources that are kept between connections.
	closeIdle()
}

// serverConn is one connection to a server.
type serverConn struct {
	session     *sdk.ClientSession
	transport   *trackedTransport
	closeReason func() error
	listChanged chan struct{} // the server's list has changed
	once        sync.Once
	progress    progress
	askers      askers

	// Guarded by the server's lock.
	uses       int
	hangs      int  // unanswered calls in a row
	served     bool // a call was answered
	closedByUs bool // closed by endConn
}

// trackedTransport remembers its connection, so that the connection can always be closed.
type trackedTransport struct {
	sdk.Transport
	end context.CancelFunc // ends the context given to dialer.open

	mu   sync.Mutex
	conn sdk.Connection
}

// Connect connects until close is called: with HTTP+SSE, the library's connection would end with ctx.
func (t *trackedTransport) Connect(ctx context.Context) (sdk.Connection, error) {
	conn, err := t.Transport.Connect(context.WithoutCancel(ctx))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.conn = conn
	return conn, err
}

// close closes the connection, if any, and ends the requests that the library leaves running.
func (t *trackedTransport) close() {
	defer t.end()
	t.mu.Lock()
	conn := t.conn
	t.mu.Unlock()
	if conn != nil {
		_ = conn.Close()
	}
}

// connect connects through d and reads the list of tools.
func (s *server) connect(ctx context.Context, d dialer, old bool) (*serverConn, toolList, error) {
	open, end := context.WithCancel(context.WithoutCancel(ctx))
	transport, why, err := d.open(open)
	if err != nil {
		end()
		return nil, toolList{}, fmt.Errorf("%w%w", errNotOpened, err)
	}
	l := &serverConn{closeReason: why, listChanged: make(chan struct{}, 1), askers: askers{serverName: s.name, now: s.clientCfg.Now}}
	client := sdk.NewClient(&sdk.Implementation{Name: "oneclaw", Version: "1"}, &sdk.ClientOptions{
		Capabilities: &sdk.ClientCapabilities{
			Elicitation: &sdk.ElicitationCapabilities{Form: &sdk.FormElicitationCapabilities{}, URL: &sdk.URLElicitationCapabilities{}},
		},
		ElicitationHandler: l.askers.elicit, ElicitationCompleteHandler: l.askers.handleComplete,
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {
			select {
			case l.listChanged <- struct{}{}:
			default: // one pending refresh covers both
			}
		},
		ProgressNotificationHandler: l.progress.handleNotification,
		// serverConn.callTool does that: the library asks in goroutines, where a panic ends the process.
		MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true},
	})
	client.AddReceivingMiddleware(s.refuseHarmful)
	client.AddSendingMiddleware(s.boundDiscovery)
	t := &trackedTransport{Transport: transport, end: end}
	options := &sdk.ClientSessionOptions{}
	if old {
		options.ProtocolVersion = oldProtocol
	}
	// The session waits for its requests, which end when the connection is closed.
	stop := context.AfterFunc(ctx, t.close)
	defer stop()
	session, err := client.Connect(ctx, t, options)
	if err != nil {
		t.close()
		return nil, toolList{}, cmp.Or(why(), err)
	}
	l.session, l.transport = session, t
	known, err := fetchTools(ctx, session)
	known.OldProtocol = old
	if err != nil {
		l.close()
		return nil, toolList{}, cmp.Or(why(), err)
	}
	return l, known, nil
}

// boundDiscovery is middleware that bounds the time of server/discover.
func (s *server) boundDiscovery(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		if method == "server/discover" {
			timed, cancel := context.WithTimeout(ctx, min(discoverTime, s.cfg.StartTimeout/3))
			defer cancel()
			ctx = timed
		}
		return next(ctx, method, req)
	}
}

// refuseHarmful is middleware for the server's requests and notifications, which the library handles
// in goroutines of its own. A panic in them is logged and becomes an error. Messages without parameters
// do not reach the library, which would panic with a lock held.
func (s *server) refuseHarmful(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (res sdk.Result, err error) {
		question, asks := req.(*sdk.ElicitRequest)
		report, reports := req.(*sdk.ElicitationCompleteNotificationRequest)
		if asks && question.Params == nil || reports && report.Params == nil {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "params are missing"}
		}
		err = rescue.Do(func() (err error) {
			res, err = next(ctx, method, req)
			return err
		})
		if _, panicked := errors.AsType[*rescue.PanicError](err); panicked {
			s.log.Error("panic over a message of an MCP server", "method", method, "err", err)
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: errFault.Error()}
		}
		return res, err
	}
}

// close ends the connection, its running calls, and the server's processes.
func (l *serverConn) close() {
	l.once.Do(func() {
		// No caller needs the errors of closing.
		l.transport.close()
		_ = l.session.Close()
	})
}

// cause returns why a connection has ended.
func (l *serverConn) cause(err error) error {
	if why := l.closeReason(); why != nil {
		return why
	}
	if err == nil || errors.Is(err, io.EOF) {
		return errors.New("it closed the connection")
	}
	return fmt.Errorf("the connection broke: %w", err)
}

// withoutURL returns an error without addresses, which may contain secrets.
func withoutURL(err error) error {
	if errors.Is(guard.Reason(err), guard.ErrAddress) {
		return fmt.Errorf("%w; if that is meant, set allow_private for the server", guard.ErrAddress)
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return errTooLarge
	}
	return guard.Reason(err)
}
