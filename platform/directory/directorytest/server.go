package directorytest

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
)

// Fault replaces the response to matching requests.
type Fault struct {
	// Path is a part of the paths of the requests that it happens to, as in
	// "/users/delta", "/manager" (within a batch) or "token"; empty for every one.
	Path string
	// After is how many of these requests get the usual response before.
	After int
	// Times is how many of them it happens to; 0 for one.
	Times int

	// Status, Header and Body are the response; the status 0 is that of the usual answer.
	Status int
	Header map[string]string
	Body   string
	// Cut breaks the connection in the middle of the usual answer.
	Cut bool
}

// Throttled returns a fault that returns 429 with a Retry-After.
func Throttled(path, retryAfter string, times int) Fault {
	return Fault{
		Path: path, Times: times, Status: http.StatusTooManyRequests, Header: map[string]string{"Retry-After": retryAfter},
	}
}

// Failing returns a fault that answers a status and an error in the vendors' format.
func Failing(path string, status, times int) Fault {
	return Fault{Path: path, Times: times, Status: status, Body: errorBody("generalException", "It fails.")}
}

// Refused returns a fault that returns 403 with a reason, as Google does for refusals and for exceeded quotas.
func Refused(path, reason string, times int) Fault {
	return Fault{Path: path, Times: times, Status: http.StatusForbidden, Body: errorBody(reason, "No.")}
}

// HTML returns a fault that answers a login page.
func HTML(path string, times int) Fault {
	return Fault{
		Path: path, Times: times, Status: http.StatusOK, Header: map[string]string{"Content-Type": "text/html"},
		Body: "<!DOCTYPE html><html><title>Log in</title></html>",
	}
}

// Cut returns a fault that breaks the connection in the middle of the response.
func Cut(path string, times int) Fault { return Fault{Path: path, Times: times, Cut: true} }

// server is the common part of the servers.
type server struct {
	*httptest.Server
	directory *Directory

	mu       sync.Mutex
	pageSize int
	faults   []*Fault
	requests []string
	tokens   map[string]bool
}

// start starts the server.
func (s *server) start(d *Directory, routes *http.ServeMux) {
	s.directory, s.tokens = d, map[string]bool{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fault := s.note(r.URL.Path)
		switch {
		case fault == nil:
			routes.ServeHTTP(w, r)
		case fault.Cut:
			cut(w, r, routes)
		default:
			fault.write(w)
		}
	}))
}

// Inject adds faults. A request meets the first fault that matches it.
func (s *server) Inject(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range faults {
		f.Times = max(f.Times, 1)
		s.faults = append(s.faults, &f)
	}
}

// SetPageSize sets the maximum number of accounts per page.
func (s *server) SetPageSize(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pageSize = n
}

// Requests counts the requests whose path contains part, those within batches too.
func (s *server) Requests(part string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, path := range s.requests {
		if strings.Contains(path, part) {
			n++
		}
	}
	return n
}

// ExpireTokens invalidates all tokens issued.
func (s *server) ExpireTokens() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.tokens)
}

// note counts a request, and returns its fault, if any.
func (s *server) note(path string) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, path)
	for _, f := range s.faults {
		switch {
		case !strings.Contains(path, f.Path) || f.Times == 0:
		case f.After > 0:
			f.After--
		default:
			f.Times--
			return f
		}
	}
	return nil
}

// write writes the fault's response.
func (f *Fault) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	for name, value := range f.Header {
		w.Header().Set(name, value)
	}
	if f.Status != 0 {
		w.WriteHeader(f.Status)
	}
	_, _ = w.Write([]byte(f.Body))
}

// cut writes half of the usual response and breaks the connection.
func cut(w http.ResponseWriter, r *http.Request, routes http.Handler) {
	whole := httptest.NewRecorder()
	routes.ServeHTTP(whole, r)
	body := whole.Body.Bytes()
	maps.Copy(w.Header(), whole.Header())
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	w.WriteHeader(whole.Code)
	_, _ = w.Write(body[:len(body)/2])
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// giveToken answers with a new token.
func (s *server) giveToken(w http.ResponseWriter) {
	token := rand.Text()
	s.mu.Lock()
	s.tokens[token] = true
	s.mu.Unlock()
	reply(w, http.StatusOK, map[string]any{"token_type": "Bearer", "expires_in": 3599, "access_token": token})
}

// authorized reports whether a request has a valid token.
func (s *server) authorized(r *http.Request) bool {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	s.mu.Lock()
	defer s.mu.Unlock()
	return ok && s.tokens[token]
}

func (s *server) size(asked, most int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pageSize > 0 {
		most = s.pageSize
	}
	if asked < 1 {
		return most
	}
	return min(asked, most)
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(errorBody(code, message)))
}

// errorBody returns an error in the format of both Graph and Google.
func errorBody(code, message string) string {
	text, _ := json.Marshal(map[string]any{"error": map[string]any{
		"code": code, "message": message, "errors": []any{map[string]any{"reason": code, "message": message}},
	}})
	return string(text)
}

// seal encodes a value as an opaque token, which unseal decodes.
func seal(v any) string {
	text, _ := json.Marshal(v)
	return base64.RawURLEncoding.EncodeToString(text)
}

func unseal(token string, into any) bool {
	text, err := base64.RawURLEncoding.DecodeString(token)
	return err == nil && json.Unmarshal(text, into) == nil
}
