package webhook_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"golang.org/x/net/dns/dnsmessage"

	"partnerapi/client"
	"partnerapi/domain"
	"partnerapi/platform/webhook"
)

// names is a scripted DNS server: the addresses of hosts, which may change.
type names struct {
	mu sync.Mutex
	of map[string][]string
}

func (n *names) set(host string, addresses ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.of[host] = addresses
}

// resolver asks the scripted server.
func (n *names) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go n.serve(theirs)
		return ours, nil
	}}
}

// serve answers questions in the form of DNS over a stream.
func (n *names) serve(conn net.Conn) {
	defer conn.Close()
	for {
		var size [2]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return
		}
		question := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(conn, question); err != nil {
			return
		}
		answer := n.answer(question)
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)); err != nil {
			return
		}
	}
}

func (n *names) answer(question []byte) []byte {
	var m dnsmessage.Message
	if m.Unpack(question) != nil {
		return nil
	}
	m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
	asked := m.Questions[0]
	n.mu.Lock()
	defer n.mu.Unlock()
	found, known := n.of[strings.TrimSuffix(asked.Name.String(), ".")]
	if !known {
		m.RCode = dnsmessage.RCodeNameError
	}
	for _, text := range found {
		at, header := netip.MustParseAddr(text), dnsmessage.ResourceHeader{Name: asked.Name, Class: asked.Class, TTL: 1}
		switch {
		case at.Is4() && asked.Type == dnsmessage.TypeA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AResource{A: at.As4()}})
		case at.Is6() && asked.Type == dnsmessage.TypeAAAA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AAAAResource{AAAA: at.As16()}})
		}
	}
	packed, _ := m.Pack()
	return packed
}

// sink is an endpoint that counts connections and requests.
type sink struct {
	*httptest.Server
	connections, requests atomic.Int64
}

// newSink starts a TLS server.
func newSink(t testing.TB, answer http.HandlerFunc) *sink {
	s := &sink{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		answer(w, r)
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.connections.Add(1)
		}
	}
	s.Config.ErrorLog = webhook.Discard
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// ca is a file with the certificate of the sink.
func (s *sink) ca(t testing.TB) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// endpoints reaches a sink on this machine.
func endpoints(t testing.TB, o webhook.Options) *webhook.Endpoints {
	t.Helper()
	e, err := webhook.NewEndpoints(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

func (s *sink) endpoints(t testing.TB) *webhook.Endpoints {
	return endpoints(t, webhook.Options{AllowPrivate: true, CAFile: s.ca(t)})
}

// TestSpellings: no spelling of a private, local or special address passes, and none
// of a port that is not delivered to.
func TestSpellings(t *testing.T) {
	t.Parallel()
	dns := &names{of: map[string][]string{
		"public.example": {"93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c"}, "xn--bcher-kva.example": {"93.184.215.14"},
		"mixed.example": {"93.184.215.14", "10.0.0.1"}, "six.example": {"2606:2800:21f:cb07::1", "fe80::1"},
		"localhost": {"127.0.0.1"}, "empty.example": {},
	}}
	e := endpoints(t, webhook.Options{Resolver: dns.resolver()})
	for _, good := range []string{
		"https://public.example/hook?a=b", "https://public.example:443/", "https://public.example:8443", "https://PUBLIC.example./",
		"https://bücher.example/", "https://public。example/", "https://93.184.215.14/", "https://[2606:2800:21f:cb07::1]:1024/",
	} {
		if err := e.Check(t.Context(), good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, host := range []string{
		"localhost", "localhost.", "mixed.example", "six.example", "empty.example", "missing.example", "",
		// IPv4, in the registry of special addresses and by way of other spellings.
		"127.0.0.1", "127.0.0.1.", "127.1", "127.0.1", "2130706433", "017700000001", "0177.0.0.1", "0x7f000001", "0x7f.1", "0x7f.0.0.1", "127.0.0.0x1",
		"127。0。0。1", "127.0.0.1", "①②⑦.0.0.1", "0.0.0.0", "0.1.2.3", "10.1.2.3", "100.64.0.1", "100.127.255.255", "169.254.169.254", "172.16.0.1", "172.31.255.255",
		"192.0.0.1", "192.0.0.170", "192.0.2.1", "192.31.196.1", "192.52.193.1", "192.88.99.1", "192.168.1.1", "192.175.48.1", "198.18.0.1", "198.19.255.255",
		"198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", "168.63.129.16",
		// IPv6, and IPv4 within it.
		"[::]", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::ffff:93.184.215.14]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[64:ff9b::5db8:d70e]", "[64:ff9b:1::a00:1]",
		"[2002:7f00:1::]", "[2002:a00:1::1]", "[2001:0:4136:e378:8000:63bf:3fff:fdd2]", "[2001:2::1]", "[2001:10::1]", "[2001:20::1]", "[2001:db8::1]", "[3fff::1]",
		"[5f00::1]", "[100::1]", "[fc00::1]", "[fd00:ec2::254]", "[fe80::1]", "[fe80::1%25eth0]", "[2606:2800::1%251]", "[fec0::1]", "[ff02::1]", "[4000::1]", "[2620:4f:8000::1]",
		// No host at all.
		"public.example:80", "public.example:22", "public.example:0", "public.example:65536", "user@public.example", "user:password@public.example", "public.example\\.evil.example",
		"public.example/#fragment", "public.example /", "[public.example]", "%31%32%37.0.0.1",
	} {
		err := e.Check(t.Context(), "https://"+host)
		var known *domain.Error
		if err == nil || !domain.IsCode(err, domain.InvalidRequest) {
			t.Errorf("%s passes: %v", host, err)
		} else if known = domain.AsError(err); len(known.Fields) != 1 || known.Fields[0].Field != "url" {
			t.Errorf("%s: %v", host, err)
		}
		if try := e.Send(t.Context(), domain.DeliveryMessage{URL: "https://" + host, ID: "evt_1", Secrets: []string{secret}}); try.StatusCode != 0 || try.Response == "" {
			t.Errorf("%s is sent to: %+v", host, try)
		}
	}
	unknown := e.Check(t.Context(), "https://missing.example")
	for _, host := range []string{"localhost", "mixed.example", "six.example", "empty.example", "10.1.2.3", "[::1]"} {
		if err := e.Check(t.Context(), "https://"+host); err.Error() != unknown.Error() {
			t.Errorf("%s can be told from a host that does not exist: %v; %v", host, err, unknown)
		}
	}
	for _, address := range []string{"http://public.example/", "ftp://public.example/", "//public.example/", "https:public.example", "public.example", "",
		"https://public.example/" + strings.Repeat("a", domain.MaxWebhookURL)} {
		if err := e.Check(t.Context(), address); !domain.IsCode(err, domain.InvalidRequest) {
			t.Errorf("%.40s passes: %v", address, err)
		}
	}
}

// TestChangedName: a host that resolved to a public address when it was checked is
// not delivered to once it resolves to a private one.
func TestChangedName(t *testing.T) {
	t.Parallel()
	s := newSink(t, func(http.ResponseWriter, *http.Request) {})
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	dns := &names{of: map[string][]string{"rebind.example": {"93.184.215.14"}}}
	e, address := endpoints(t, webhook.Options{Resolver: dns.resolver(), CAFile: s.ca(t)}), "https://rebind.example:"+port+"/"
	if err := e.Check(t.Context(), address); err != nil {
		t.Fatal(err)
	}
	for _, turned := range []string{"127.0.0.1", "::1", "::ffff:127.0.0.1"} {
		dns.set("rebind.example", turned)
		try := e.Send(t.Context(), domain.DeliveryMessage{URL: address, ID: "evt_1", Secrets: []string{secret}, Body: []byte("{}")})
		if try.StatusCode != 0 || !strings.Contains(try.Response, "special") || strings.Contains(try.Response, "127.0.0.1") {
			t.Errorf("%+v", try)
		}
	}
	if n := s.connections.Load(); n != 0 {
		t.Errorf("%d connections", n)
	}
	// The same name is delivered to in a closed network.
	open := endpoints(t, webhook.Options{Resolver: dns.resolver(), CAFile: s.ca(t), AllowPrivate: true})
	dns.set("example.com", "127.0.0.1") // which the certificate is for
	if err := open.Check(t.Context(), "https://example.com:"+port); err != nil {
		t.Error(err)
	}
	if try := open.Send(t.Context(), domain.DeliveryMessage{URL: "https://example.com:" + port, ID: "evt_1", Secrets: []string{secret}}); try.StatusCode != 200 {
		t.Errorf("%+v", try)
	}
}

// TestRequest: what an endpoint gets.
func TestRequest(t *testing.T) {
	t.Parallel()
	body := `{"id":"evt_1","type":"user.updated"}`
	s := newSink(t, func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		library, _ := standardwebhooks.NewWebhook(secret)
		standard, own := library.Verify(text, r.Header), client.Verify(secret, r.Header, text, time.Now())
		if r.Method != "POST" || string(text) != body || r.Header.Get("Content-Type") != "application/json" || r.Header.Get("Webhook-Id") != "evt_1" ||
			r.Header.Get("User-Agent") != "partnerapi-webhooks/2.3" || r.Header.Get("Idempotency-Key") != "" || standard != nil || own != nil {
			t.Errorf("%s %s: %v: %v, %v", r.Method, text, r.Header, standard, own)
		}
		w.Header().Set("Set-Cookie", "a=b")
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, "thanks")
	})
	e := endpoints(t, webhook.Options{AllowPrivate: true, CAFile: s.ca(t), Version: "2.3"})
	for range 3 {
		try := e.Send(t.Context(), domain.DeliveryMessage{URL: s.URL + "/hook", ID: "evt_1", Secrets: []string{secret}, Body: []byte(body)})
		if try.StatusCode != 202 || try.Response != "thanks" || try.At.IsZero() {
			t.Errorf("%+v", try)
		}
	}
	if n := s.connections.Load(); n != 1 {
		t.Errorf("%d connections for three tries", n)
	}
}

// TestAuthorization verifies that the header Authorization is sent only if a message has it, not to the target of a
// redirect, and that a response that repeats it does not show it.
func TestAuthorization(t *testing.T) {
	t.Parallel()
	elsewhere := newSink(t, func(http.ResponseWriter, *http.Request) { t.Error("a redirect is followed") })
	s := newSink(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/redirect" {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
			return
		}
		_, credentials, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		_, _ = fmt.Fprintf(w, "%q %s", r.Header["Authorization"], credentials)
	})
	e := s.endpoints(t)
	for value, want := range map[string]string{
		"":               "[] ",
		"Bearer a-token": `["[authorization]"] [authorization]`,
		"a-token":        `["[authorization]"] `,
		"Basic":          `["[authorization]"] `,
	} {
		m := domain.DeliveryMessage{URL: s.URL + "/hook", ID: "evt_1", Secrets: []string{secret}, Authorization: value}
		if try := e.Send(t.Context(), m); try.Response != want {
			t.Errorf("%q: the response is %s", value, try.Response)
		}
		if m.URL = s.URL + "/redirect"; e.Send(t.Context(), m).StatusCode != http.StatusTemporaryRedirect {
			t.Errorf("%q: a redirect is no failure", value)
		}
	}
}

// TestAnswers: what becomes of unusual answers.
func TestAnswers(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789abcdef", 64<<10) // 1 MiB
	elsewhere := newSink(t, func(http.ResponseWriter, *http.Request) {})
	answers := map[string]http.HandlerFunc{
		"/long": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, long) },
		"/redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		},
		"/binary": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("a\x00b\xff\xfec" + strings.Repeat("é", 1000)))
		},
		"/headers": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Long", long[:100<<10]) },
		"/broken": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "10")
			_, _ = io.WriteString(w, "half")
		},
		"/wait": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "120")
			w.WriteHeader(http.StatusServiceUnavailable)
		},
		"/gone": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) },
		"/hang up": func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				conn.Close()
			}
		},
	}
	s := newSink(t, func(w http.ResponseWriter, r *http.Request) { answers[r.URL.Path](w, r) })
	e := s.endpoints(t)
	for path, want := range map[string]struct {
		status int
		text   string
	}{
		"/long": {200, long[:domain.MaxTryResponse]}, "/redirect": {307, ""}, "/binary": {200, "a\uFFFDb\uFFFDc"}, "/headers": {0, "no response"},
		"/broken": {200, "half"}, "/wait": {503, ""}, "/gone": {410, ""}, "/hang up": {0, "no"},
	} {
		a := e.Post(t.Context(), domain.DeliveryMessage{URL: s.URL + strings.ReplaceAll(path, " ", "%20"), ID: "evt_1", Secrets: []string{secret}})
		if a.StatusCode != want.status || !strings.HasPrefix(a.Response, want.text) || len(a.Response) > domain.MaxTryResponse ||
			!utf8.ValidString(a.Response) || strings.Contains(a.Response, "\x00") || (a.RetryAfter == 2*time.Minute) != (path == "/wait") {
			t.Errorf("%s: %d %.80q %v", path, a.StatusCode, a.Response, a.RetryAfter)
		}
	}
	if n := elsewhere.connections.Load(); n != 0 {
		t.Errorf("the redirect was followed")
	}
}

// TestUntrusted: a certificate of an unknown authority is not trusted, and a file
// that holds none is refused.
func TestUntrusted(t *testing.T) {
	t.Parallel()
	s := newSink(t, func(http.ResponseWriter, *http.Request) {})
	try := endpoints(t, webhook.Options{AllowPrivate: true}).Send(t.Context(), domain.DeliveryMessage{URL: s.URL, ID: "evt_1", Secrets: []string{secret}})
	if try.StatusCode != 0 || !strings.Contains(try.Response, "certificate") || s.requests.Load() != 0 {
		t.Errorf("%+v", try)
	}
	name := filepath.Join(t.TempDir(), "none.pem")
	if err := os.WriteFile(name, []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{name, name + ".missing"} {
		if _, err := webhook.NewEndpoints(webhook.Options{CAFile: file}); err == nil {
			t.Errorf("%s is taken", file)
		}
	}
}

// TestWithin: an endpoint that never answers, or drips its answer, has no answer
// after ten seconds; one that ends in time has. The end of the context cuts a try short.
func TestWithin(t *testing.T) {
	t.Parallel()
	s := newSink(t, func(http.ResponseWriter, *http.Request) {})
	ca, certificates := s.ca(t), s.TLS.Certificates
	for name, c := range map[string]struct {
		answer func(io.Writer)
		status int
		took   time.Duration
	}{
		"silence":   {func(io.Writer) {}, 0, domain.WebhookDeadline},
		"cut short": {func(io.Writer) {}, 0, 3 * time.Second},
		"drip": {func(w io.Writer) {
			_, _ = io.WriteString(w, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")
			for range 100 {
				time.Sleep(time.Second) // of the test's own clock
				if _, err := io.WriteString(w, "."); err != nil {
					return
				}
			}
		}, 0, domain.WebhookDeadline},
		"late": {func(w io.Writer) {
			time.Sleep(9 * time.Second)
			_, _ = io.WriteString(w, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}, 200, 9 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			e, err := webhook.NewEndpoints(webhook.Options{AllowPrivate: true, CAFile: ca})
			if err != nil {
				t.Fatal(err)
			}
			var served sync.WaitGroup
			e.UseDial(func(context.Context, string, string) (net.Conn, error) {
				ours, theirs := net.Pipe()
				served.Go(func() {
					conn := tls.Server(theirs, &tls.Config{Certificates: certificates})
					if r, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
						_, _ = io.Copy(io.Discard, r.Body)
						served.Go(func() { _, _ = io.Copy(io.Discard, conn) }) // or closing it takes its time, too
						c.answer(conn)
					}
				})
				return ours, nil
			})
			ctx, cut := context.WithCancel(t.Context())
			defer cut()
			if name == "cut short" {
				time.AfterFunc(c.took, cut)
			}
			began := time.Now()
			try := e.Send(ctx, domain.DeliveryMessage{URL: "https://example.com/", ID: "evt_1", Secrets: []string{secret}, Body: []byte("{}")})
			took := time.Since(began)
			if try.StatusCode != c.status || took != c.took || try.DurationMS != took.Milliseconds() ||
				(try.Response == "the attempt was interrupted") != (name == "cut short") {
				t.Errorf("%s: %+v after %v", name, try, took)
			}
			e.Close()
			served.Wait()
		})
	}
}
