package slack

import (
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

const socketPath = "/link"

// maxAck is the size from which on the service drops what a client writes.
const maxAck = 20_000

const writeTimeout = 10 * time.Second

// socket is a connection of the app. Its fields below conn are guarded by
// Server.mu; its goroutines are the request's and that of write.
type socket struct {
	id      int
	conn    *websocket.Conn
	wake    chan struct{}
	pending map[*envelope]struct{}
	queue   []any
	frozen  bool
	leaving bool
}

// send queues something to be written. Server.mu is held.
func (k *socket) send(v any) {
	k.queue = append(k.queue, v)
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// serveSocket is a connection from its handshake to its end.
func (s *Server) serveSocket(w http.ResponseWriter, r *http.Request) {
	if _, over := s.hub.Meet(s.Faults, w, r, "socket", ""); over {
		return
	}
	ticket := r.URL.Query().Get("ticket")
	s.mu.Lock()
	valid := s.tickets[ticket]
	delete(s.tickets, ticket)
	s.mu.Unlock()
	if !valid {
		http.Error(w, "invalid ticket", http.StatusForbidden)
		return
	}
	up := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
	conn, err := up.Upgrade(w, r, nil)
	if err != nil {
		s.log.Debug("no handshake", "err", err)
		return
	}
	k := s.open(conn)
	if k == nil {
		_ = conn.Close() // the server is closed
		return
	}
	var writer sync.WaitGroup
	stop := make(chan struct{})
	writer.Go(func() { s.write(k, stop) })
	s.read(k)
	close(stop)
	_ = conn.Close() // it may be closed already, which is as good
	writer.Wait()
	s.gone(k)
}

// open registers a socket, says hello and sends what has waited.
func (s *Server) open(conn *websocket.Conn) *socket {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Closed() {
		return nil
	}
	s.nextSocket++
	k := &socket{id: s.nextSocket, conn: conn, wake: make(chan struct{}, 1), pending: map[*envelope]struct{}{}}
	s.sockets = append(s.sockets, k)
	s.emit(Event{Kind: EventSocket, Text: "open"}, nil, nil)
	if f := s.Fire("hello", ""); f != nil {
		k.leaving = true // a connection that never comes to life
		s.emit(Event{Kind: EventFault, Text: string(f.Effect)}, nil, nil)
		return k
	}
	k.send(map[string]any{
		"type": "hello", "num_connections": len(s.sockets), "connection_info": map[string]any{"app_id": AppID},
		"debug_info": map[string]any{"host": "applink-emulator", "approximate_connection_time": 18060},
	})
	waiting := s.waiting
	s.waiting = nil
	for _, e := range waiting {
		if e.state == Waiting {
			s.dispatch(e)
		}
	}
	return k
}

// gone forgets a socket: what it was given and did not acknowledge has failed. That it comes
// again on another is assumed.
func (s *Server) gone(k *socket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sockets = slices.DeleteFunc(s.sockets, func(o *socket) bool { return o == k })
	s.emit(Event{Kind: EventSocket, Text: "closed"}, nil, nil)
	if s.life.Closed() {
		return
	}
	var failed []*envelope
	for _, e := range s.sequence {
		if _, ok := k.pending[e]; ok {
			failed = append(failed, e)
		}
	}
	for _, e := range failed {
		s.failed(e)
	}
}

// read takes acknowledgements until the connection ends.
func (s *Server) read(k *socket) {
	k.conn.SetReadLimit(1 << 20)
	k.conn.SetPingHandler(func(data string) error {
		if !s.isFrozen(k) {
			// A failed write shows in the next read.
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
		bad := len(data) >= maxAck || json.Unmarshal(data, &ack) != nil
		s.mu.Lock()
		if !k.frozen {
			if bad {
				ack.EnvelopeID = ""
			}
			s.acked(ack.EnvelopeID, ack.Payload)
		}
		s.mu.Unlock()
	}
}

func (s *Server) isFrozen(k *socket) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return k.frozen
}

// write writes what is queued, and pings.
func (s *Server) write(k *socket, stop <-chan struct{}) {
	ping := time.NewTicker(s.cfg.Ping)
	defer ping.Stop()
	for {
		var err error
		select {
		case <-stop:
			return
		case <-s.life.Done():
			return
		case <-ping.C:
			if !s.isFrozen(k) {
				err = k.conn.WriteControl(websocket.PingMessage, []byte("ping"), time.Now().Add(writeTimeout))
			}
		case <-k.wake:
			err = s.flush(k)
		}
		if err != nil {
			_ = k.conn.Close() // which ends the reading side too
			return
		}
	}
}

func (s *Server) flush(k *socket) error {
	for {
		s.mu.Lock()
		queue, frozen := k.queue, k.frozen
		k.queue = nil
		s.mu.Unlock()
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

// drop breaks a connection without a word. Server.mu is held.
func (s *Server) drop(k *socket) {
	k.leaving = true
	_ = k.conn.NetConn().Close() // whatever it says, the connection is over
}

// hangUp breaks every connection and stops every timer. Server.mu is held.
func (s *Server) hangUp() {
	for _, k := range s.sockets {
		s.drop(k)
	}
	for _, e := range s.sequence {
		if e.timer != nil {
			e.timer.Stop()
		}
	}
}

// Disconnect asks every open socket to go: with the reason "warning" it will be
// closed soon, with "refresh_requested" it gets nothing more where there is another
// one. It says how many were asked.
func (s *Server) Disconnect(reason string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.sockets {
		k.leaving = k.leaving || reason != "warning"
		k.send(map[string]any{"type": "disconnect", "reason": reason, "debug_info": map[string]any{"host": "applink-emulator"}})
	}
	return len(s.sockets)
}

// Drop breaks every open socket without a closing handshake and says how many.
func (s *Server) Drop() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.sockets {
		s.drop(k)
	}
	return len(s.sockets)
}

// Freeze makes half-open connections of the open sockets: they stay, but nothing is
// sent or heard on them any more. It says how many.
func (s *Server) Freeze() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.sockets {
		k.frozen = true
	}
	return len(s.sockets)
}

func connectionsOpen(c *call) (any, *apiError) {
	s := c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.sockets) >= maxSockets {
		return nil, refuse("too_many_websockets") // assumed
	}
	if len(s.tickets) > 1000 {
		clear(s.tickets) // nobody came for them
	}
	ticket := s.id("ticket-")
	s.tickets[ticket] = true
	return map[string]any{"url": s.life.Address("ws", c.r) + socketPath + "?ticket=" + ticket + "&app_id=" + AppID}, nil
}
