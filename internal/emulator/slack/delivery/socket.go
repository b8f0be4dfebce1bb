package delivery

import (
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"oneclaw/internal/emulator/wire"
)

// maxMessage is the size from which the service drops a message of the client, in bytes.
const maxMessage = 20_000

const writeTimeout = 10 * time.Second

// socket is a connection of the app. Its fields below wake are guarded by the lock. Its goroutines
// are that of the HTTP request and that of writeMessages.
type socket struct {
	conn          *websocket.Conn
	wake          chan struct{}
	pending       map[*envelope]struct{}
	queue         []any
	frozen        bool
	disconnecting bool
}

// send queues a message. The caller must hold the lock.
func (k *socket) send(v any) {
	k.queue = append(k.queue, v)
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// AddTicket permits one handshake with the given ticket.
func (l *Line) AddTicket(ticket string) {
	if len(l.tickets) > 1000 {
		clear(l.tickets) // tickets that were never used
	}
	l.tickets[ticket] = true
}

// ServeHTTP serves a connection until it ends. It takes the lock.
func (l *Line) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if l.cfg.Intercept(w, r) {
		return
	}
	ticket := r.URL.Query().Get("ticket")
	l.cfg.Mu.Lock()
	valid := l.tickets[ticket]
	delete(l.tickets, ticket)
	l.cfg.Mu.Unlock()
	if !valid {
		http.Error(w, "invalid ticket", http.StatusForbidden)
		return
	}
	up := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
	conn, err := up.Upgrade(w, r, nil)
	if err != nil {
		l.cfg.Log.Debug("handshake of a WebSocket failed", "err", err)
		return
	}
	k := l.addSocket(conn)
	if k == nil {
		_ = conn.Close() // the server is closed
		return
	}
	var writer sync.WaitGroup
	stop := make(chan struct{})
	writer.Go(func() { l.writeMessages(k, stop) })
	l.readAcks(k)
	close(stop)
	_ = conn.Close() // it may already be closed
	writer.Wait()
	l.removeSocket(k)
}

// addSocket registers a socket, sends the hello message and the waiting envelopes. It returns nil if the
// server is closed.
func (l *Line) addSocket(conn *websocket.Conn) *socket {
	l.cfg.Mu.Lock()
	defer l.cfg.Mu.Unlock()
	if l.cfg.Life.Closed() {
		return nil
	}
	l.openedSockets++
	k := &socket{conn: conn, wake: make(chan struct{}, 1), pending: map[*envelope]struct{}{}}
	l.sockets = append(l.sockets, k)
	l.cfg.Emit(TraceEvent{Kind: EventSocket, Text: "open"})
	if f := l.cfg.Faults.Fire("hello", ""); f != nil {
		k.disconnecting = true // a connection that never becomes ready
		l.cfg.Emit(TraceEvent{Kind: wire.EventFault, Text: string(f.Effect)})
		return k
	}
	k.send(map[string]any{
		"type": "hello", "num_connections": len(l.sockets), "connection_info": map[string]any{"app_id": l.cfg.AppID},
		"debug_info": map[string]any{"host": "applink-emulator", "approximate_connection_time": 18060},
	})
	waiting := l.waiting
	l.waiting = nil
	for _, e := range waiting {
		if e.state == Waiting {
			l.dispatch(e)
		}
	}
	return k
}

// removeSocket removes a socket, whose unacknowledged envelopes have failed. Assumed: they are sent
// again over another socket.
func (l *Line) removeSocket(k *socket) {
	l.cfg.Mu.Lock()
	defer l.cfg.Mu.Unlock()
	l.sockets = slices.DeleteFunc(l.sockets, func(o *socket) bool { return o == k })
	l.cfg.Emit(TraceEvent{Kind: EventSocket, Text: "closed"})
	if l.cfg.Life.Closed() {
		return
	}
	for _, e := range l.sequence {
		if _, ok := k.pending[e]; ok {
			l.handleFailure(e)
		}
	}
}

// readAcks handles acknowledgements until the connection ends.
func (l *Line) readAcks(k *socket) {
	k.conn.SetReadLimit(1 << 20)
	k.conn.SetPingHandler(func(data string) error {
		if !l.isFrozen(k) {
			// The next read reports a failed write.
			_ = k.conn.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(writeTimeout))
		}
		return nil
	})
	for {
		_, data, err := k.conn.ReadMessage()
		if err != nil {
			return
		}
		var ack struct {
			EnvelopeID string          `json:"envelope_id"`
			Payload    json.RawMessage `json:"payload"`
		}
		bad := len(data) >= maxMessage || json.Unmarshal(data, &ack) != nil
		l.cfg.Mu.Lock()
		if !k.frozen {
			if bad {
				ack.EnvelopeID = ""
			}
			l.handleAck(ack.EnvelopeID, ack.Payload)
		}
		l.cfg.Mu.Unlock()
	}
}

func (l *Line) isFrozen(k *socket) bool {
	l.cfg.Mu.Lock()
	defer l.cfg.Mu.Unlock()
	return k.frozen
}

// writeMessages writes queued messages, and pings.
func (l *Line) writeMessages(k *socket, stop <-chan struct{}) {
	ping := time.NewTicker(l.cfg.PingInterval)
	defer ping.Stop()
	for {
		var err error
		select {
		case <-stop:
			return
		case <-l.cfg.Life.Done():
			return
		case <-ping.C:
			if !l.isFrozen(k) {
				err = k.conn.WriteControl(websocket.PingMessage, []byte("ping"), time.Now().Add(writeTimeout))
			}
		case <-k.wake:
			err = l.flush(k)
		}
		if err != nil {
			_ = k.conn.Close() // also ends readAcks
			return
		}
	}
}

func (l *Line) flush(k *socket) error {
	for {
		l.cfg.Mu.Lock()
		queue, frozen := k.queue, k.frozen
		k.queue = nil
		l.cfg.Mu.Unlock()
		if len(queue) == 0 || frozen {
			return nil
		}
		for _, v := range queue {
			if err := k.conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
				return err
			}
			if err := k.conn.WriteJSON(v); err != nil {
				return err
			}
		}
	}
}

// breakConn breaks a connection without a closing handshake. The caller must hold the lock.
func (l *Line) breakConn(k *socket) {
	k.disconnecting = true
	_ = k.conn.NetConn().Close() // the connection ends in any case
}

// Stop breaks every connection and stops every timer. The caller must hold the lock.
func (l *Line) Stop() {
	for _, k := range l.sockets {
		l.breakConn(k)
	}
	for _, e := range l.sequence {
		e.stopTimer()
	}
}

// CloseIdleConnections closes the idle connections of the client that posts events.
func (l *Line) CloseIdleConnections() { l.client.CloseIdleConnections() }
