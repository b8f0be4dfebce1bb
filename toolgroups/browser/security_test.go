package browser_test

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"oneclaw/toolgroups"
	"oneclaw/toolgroups/browser"
)

// trap is a service of this machine that no page may reach. It counts who tries.
type trap struct {
	address string
	hits    atomic.Int64
}

func newTrap(t testing.TB, ip string) *trap {
	t.Helper()
	p := &trap{}
	s := serve(t, ip, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "*")
		_, _ = fmt.Fprint(w, "<p>root secret</p>")
	}))
	p.address = s.Listener.Addr().String()
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			p.hits.Add(1)
		}
	}
	return p
}

// packetTrap is the same for datagrams.
func packetTrap(t testing.TB) *trap {
	t.Helper()
	conn, err := new(net.ListenConfig).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &trap{address: conn.LocalAddr().String()}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for buf := make([]byte, 2048); ; {
			if _, _, err := conn.ReadFrom(buf); err != nil {
				return
			}
			p.hits.Add(1)
		}
	}()
	t.Cleanup(func() {
		_ = conn.Close()
		<-done
	})
	return p
}

// attempts is a page that tries everything a script can ask the network for.
const attempts = `<body><script>
const at = HOST, udp = UDP;
const tries = {
  fetch: () => fetch("http://" + at + "/"),
  blind: () => fetch("http://" + at + "/", {mode: "no-cors"}),
  tls: () => fetch("https://" + at + "/", {mode: "no-cors"}),
  xhr: () => new Promise((ok, no) => { const x = new XMLHttpRequest(); x.onload = ok; x.onerror = no; x.open("GET", "http://" + at + "/x"); x.send() }),
  socket: () => new Promise((ok, no) => { const s = new WebSocket("ws://" + at + "/"); s.onopen = ok; s.onerror = no }),
  secureSocket: () => new Promise((ok, no) => { const s = new WebSocket("wss://" + at + "/"); s.onopen = ok; s.onerror = no }),
  events: () => new Promise((ok, no) => { const s = new EventSource("http://" + at + "/e"); s.onopen = ok; s.onerror = no }),
  beacon: () => { navigator.sendBeacon("http://" + at + "/b", "x"); throw 0 },
  image: () => new Promise((ok, no) => { const i = new Image(); i.onload = ok; i.onerror = no; i.src = "http://" + at + "/i" }),
  script: () => new Promise((ok, no) => { const s = document.createElement("script"); s.onload = ok; s.onerror = no; s.src = "http://" + at + "/s"; document.body.append(s) }),
  style: () => new Promise((ok, no) => { const s = document.createElement("link"); s.rel = "stylesheet"; s.onload = ok; s.onerror = no; s.href = "http://" + at + "/c"; document.body.append(s) }),
  frame: () => { const f = document.createElement("iframe"); f.src = "http://" + at + "/f"; document.body.append(f); throw 0 },
  connect: () => { const l = document.createElement("link"); l.rel = "preconnect"; l.href = "http://" + at; document.head.append(l); throw 0 },
  worker: () => new Promise((ok, no) => { const w = new Worker(URL.createObjectURL(new Blob(["importScripts('http://" + at + "/w'); postMessage(1)"]))); w.onmessage = ok; w.onerror = no }),
  window: () => { if (window.open("http://" + at + "/o")) return 1; throw 0 },
  form: () => { const f = document.createElement("form"); f.action = "http://" + at + "/p"; f.method = "post"; f.target = "sink"; const i = document.createElement("iframe"); i.name = "sink"; document.body.append(i, f); f.submit(); throw 0 },
  rtc: async () => { for (const u of ["stun:" + udp, "stun:" + at, "turn:" + at + "?transport=tcp", "turn:" + udp]) {
    const c = new RTCPeerConnection({iceServers: [{urls: u, username: "a", credential: "b"}]}); c.createDataChannel("d"); await c.setLocalDescription(await c.createOffer()) }; throw 0 },
  peer: async () => { const a = new RTCPeerConnection(); a.createDataChannel("d"); await a.setLocalDescription(await a.createOffer());
    const [h, p] = udp.split(":"); await a.setRemoteDescription({type: "answer", sdp: a.localDescription.sdp.replace("setup:actpass", "setup:active")});
    await a.addIceCandidate({candidate: "candidate:1 1 udp 2130706431 " + h + " " + p + " typ host", sdpMLineIndex: 0}); throw 0 },
  transport: async () => { const w = new WebTransport("https://" + udp + "/"); await w.ready },
};
window.done = (async () => {
  const reached = [];
  const pause = () => new Promise((_, no) => setTimeout(no, 800));
  await Promise.all(Object.entries(tries).map(async ([name, go]) => {
    try { await Promise.race([go(), pause()]); reached.push(name) } catch {}
  }));
  await pause().catch(() => {});
  return "reached: " + reached.join(" ");
})();
</script>`

func TestPageScriptsAndWebSocketsReachNoInternalAddress(t *testing.T) {
	d := newDesk(t)
	inner, datagrams := newTrap(t, "127.0.0.2"), packetTrap(t)
	_, port, _ := net.SplitHostPort(inner.address)
	hosts := []string{
		inner.address, "2130706434:" + port, "0x7f.2:" + port, "[::ffff:127.0.0.2]:" + port, "169.254.169.254", "10.0.0.1",
	}
	traps := []*trap{inner, datagrams}
	if l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "[::1]:0"); err == nil {
		_ = l.Close()
		six := newTrap(t, "::1")
		hosts, traps = append(hosts, six.address), append(traps, six)
	}
	t.Run("hosts", func(t *testing.T) {
		for i, host := range hosts {
			page := strings.NewReplacer("HOST", fmt.Sprintf("%q", host), "UDP", fmt.Sprintf("%q", datagrams.address)).Replace(attempts)
			address := d.page(fmt.Sprintf("/%d", i), page)
			t.Run(host, func(t *testing.T) {
				t.Parallel()
				if got := d.extract(t, address, args{"javascript": "return await window.done"}); got != "reached: " {
					t.Errorf("the page says %q", got)
				}
			})
		}
	})
	for _, p := range traps {
		if n := p.hits.Load(); n > 0 {
			t.Errorf("%s was reached %d times", p.address, n)
		}
	}
}

func TestAddressesRedirectsAndPagesLeadToNoInternalAddress(t *testing.T) {
	d := newDesk(t)
	inner := newTrap(t, "127.0.0.2")
	target := "http://" + inner.address + "/"
	redirect := func(path, to string, code int) string {
		d.mux.Handle(path, http.RedirectHandler(to, code))
		return d.site + path
	}
	ways := map[string]string{
		"direct":    target,
		"tls":       strings.Replace(target, "http", "https", 1),
		"redirect":  redirect("/r", target, http.StatusFound),
		"preserve":  redirect("/p", target, http.StatusTemporaryRedirect),
		"twice":     redirect("/t", d.site+"/r", http.StatusMovedPermanently),
		"metadata":  "http://169.254.169.254/latest/meta-data/",
		"network":   "http://10.0.0.1/",
		"unnamed":   "http://0.0.0.0/",
		"six":       "http://[::1]/",
		"to tls":    redirect("/s", strings.Replace(target, "http", "https", 1), http.StatusFound),
		"decimal":   redirect("/d", strings.Replace(target, "127.0.0.2", "2130706434", 1), http.StatusFound),
		"mapped v6": redirect("/m", strings.Replace(target, "127.0.0.2", "[::ffff:127.0.0.2]", 1), http.StatusFound),
	}
	t.Run("ways", func(t *testing.T) {
		for name, address := range ways {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				res, fault := d.run(t, args{"url": address, "mode": "extract", "wait_seconds": 0})
				if fault == nil || fault.Code != browser.CodeExtraction || !strings.Contains(fault.Message, "internal or reserved") {
					t.Errorf("%q, %+v", res.Text, fault)
				}
			})
		}
	})
	_, fault := d.run(t, args{"url": d.site + "/r", "mode": "screenshot"})
	if fault == nil || fault.Code != browser.CodeScreenshot || !strings.Contains(fault.Message, "internal or reserved") {
		t.Errorf("screenshot: %+v", fault)
	}
	for name, html := range map[string]string{
		"script":  `<script>location = "` + target + `"</script>`,
		"refresh": `<meta http-equiv="refresh" content="0;url=` + target + `">`,
	} {
		res, fault := d.run(t, args{"url": d.page("/"+name, "<p>x</p>"+html), "mode": "extract", "wait_seconds": 1})
		if strings.Contains(res.Text, "secret") {
			t.Errorf("%s: %q, %+v", name, res.Text, fault)
		}
	}
	if n := inner.hits.Load(); n > 0 {
		t.Errorf("the inner server was reached %d times", n)
	}
}

// Without an allowance no address of this machine is reached, by whatever name.
func TestLoopbackIsRefusedByDefault(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.page("/", "<p>inside</p>")
	d.tool = newTool(t, browser.Config{})
	for _, address := range []string{d.site, strings.Replace(d.site, "127.0.0.1", "localhost", 1)} {
		_, fault := d.run(t, args{"url": address, "mode": "extract", "wait_seconds": 0})
		if fault == nil || !strings.Contains(fault.Message, "internal or reserved") {
			t.Errorf("%s: %+v", address, fault)
		}
	}
}

func TestOnlyWebPagesAreOpened(t *testing.T) {
	d := newDesk(t)
	for _, address := range []string{
		"file:///etc/passwd", "chrome://version/", "view-source:" + d.site, "data:text/html,<p>x", "javascript:1",
		"about:blank", "ftp://example.org/", "blob:" + d.site, "filesystem:" + d.site, "devtools://devtools/", "//example.org/",
	} {
		if _, fault := d.run(t, args{"url": address, "mode": "extract"}); fault == nil || fault.Code != toolgroups.CodeInvalid {
			t.Errorf("%s: %+v", address, fault)
		}
	}
}

func TestPagesLeadToNoLocalFile(t *testing.T) {
	d := newDesk(t)
	for i, to := range []string{"file:///etc/passwd", "chrome://version/", "view-source:" + d.site + "/1", "data:text/html,<p>root:</p>"} {
		way := fmt.Sprintf("/redirect%d", i)
		d.mux.HandleFunc(way, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", to)
			w.WriteHeader(http.StatusFound)
		})
		page := d.page(fmt.Sprintf("/page%d", i), fmt.Sprintf(`<p>mine</p><iframe id=f src=%[1]q></iframe><script>
try { window.open(%[1]q) } catch {}
fetch(%[1]q).then(r => r.text()).then(t => document.body.append(t)).catch(() => {});
setTimeout(() => { try { document.body.append(f.contentDocument.body.textContent) } catch {}; location = %[1]q }, 200)</script>`, to))
		t.Run(to, func(t *testing.T) {
			t.Parallel()
			if res, fault := d.run(t, args{"url": d.site + way, "mode": "extract", "wait_seconds": 0}); fault == nil {
				t.Errorf("redirect: %q", res.Text)
			}
			res, fault := d.run(t, args{"url": page, "mode": "extract", "wait_seconds": 1})
			if isData := strings.HasPrefix(to, "data:"); !isData && (fault != nil || res.Text != "mine") {
				t.Errorf("page: %q, %+v", res.Text, fault)
			}
		})
	}
}
