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

// Fault is what happens to requests instead of the usual answer.
type Fault struct {
	// Path is a part of the paths of the requests that it happens to, as in
	// "/users/delta", "/manager" (within a batch) or "token"; empty for every one.
	Path string
	// After is how many of these requests are answered as usual before.
	After int
	// Times is how many of them it happens to; 0 for one.
	Times int

	// Status, Header and Body are the answer; the status 0 is that of the usual
	// answer.
	Status int
	Header map[string]string
	Body   string
	// Cut breaks the connection in the middle of the usual answer.
	Cut bool
}

// Throttled is the answer 429 with a Retry-After.
func Throttled(path, retryAfter string, times int) Fault {
	return Fault{
		Path: path, Times: times, Status: http.StatusTooManyRequests, Header: map[string]string{"Retry-After": retryAfter},
	}
}

// Failing is an answer with a status and an error of the vendors' form.
func Failing(path string, status, times int) Fault {
	return Fault{Path: path, Times: times, Status: status, Body: errorBody("generalException", "It fails.")}
}

// HTML is the answer of a page to log in at.
func HTML(path string, times int) Fault {
	return Fault{
		Path: path, Times: times, Status: http.StatusOK, Header: map[string]string{"Content-Type": "text/html"},
		Body: "<!DOCTYPE html><html><title>Log in</title></html>",
	}
}

// Cut breaks the connection in the middle of the answer.
func Cut(path string, times int) Fault { return Fault{Path: path, Times: times, Cut: true} }

// server is what the servers have in common.
type server struct {
	*httptest.Server
	directory *Directory

	mu       sync.Mutex
	pageSize int
	faults   []*Fault
	requests []string
	tokens   map[string]bool
}

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

// Inject makes faults happen. The first that fits a request happens to it.
func (s *server) Inject(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range faults {
		f.Times = max(f.Times, 1)
		s.faults = append(s.faults, &f)
	}
}

// SetPageSize makes pages of at most n accounts.
func (s *server) SetPageSize(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pageSize = n
}

// Requests counts the requests whose path holds a part, those within batches too.
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

// ExpireTokens makes all tokens that were given invalid.
func (s *server) ExpireTokens() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.tokens)
}

// note takes note of a request, and returns the fault that happens to it.
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

// cut writes half of the usual answer and breaks the connection.
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

// errorBody is an error in the form of Graph, and of Google.
func errorBody(code, message string) string {
	text, _ := json.Marshal(map[string]any{"error": map[string]any{
		"code": code, "message": message, "errors": []any{map[string]any{"reason": code, "message": message}},
	}})
	return string(text)
}

// seal makes an opaque token of a value, which unseal reads.
func seal(v any) string {
	text, _ := json.Marshal(v)
	return base64.RawURLEncoding.EncodeToString(text)
}

func unseal(token string, into any) bool {
	text, err := base64.RawURLEncoding.DecodeString(token)
	return err == nil && json.Unmarshal(text, into) == nil
}
