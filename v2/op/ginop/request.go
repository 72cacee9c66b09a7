package ginop

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"partnerapi/domain"
)

const (
	// requestTime is the time limit of a request once its body was read. A database that does not answer within this
	// time counts as unreachable.
	requestTime = 20 * time.Second
	// uploadTime is the time limit of a body that the handler does not read; the server's read timeout is shorter.
	uploadTime = 2 * time.Minute
)

// statusClientClosed is logged for a request whose caller disconnected, which is no failure of the service.
const statusClientClosed = 499

// setHeaders sets the headers that every response has.
func (s *Surface) setHeaders(c *gin.Context, operation string) {
	h := c.Writer.Header()
	h["X-Request-Id"] = []string{requestID(c.GetHeader("X-Request-Id"))}
	h["Cache-Control"], h["X-Content-Type-Options"] = noStore, noSniff
	if s.headers != nil {
		s.headers(c, operation)
	}
}

// unreadBody is the context key that marks a request whose body is not read.
const unreadBody = "ginop.unread"

// discardBody removes the body of a GET or a HEAD, which has no meaning, so that the response does not wait for it, and
// marks the request with unreadBody. The connection is closed afterwards, as the next request would begin only
// after that body.
func discardBody(c *gin.Context) {
	r := c.Request
	if r.Method != http.MethodGet && r.Method != http.MethodHead || r.Body == nil || r.Body == http.NoBody {
		return
	}
	c.Set(unreadBody, true)
	r.Body = http.NoBody
	c.Header("Connection", "close")
	// The server still reads the bytes that arrive within a second, so that closing does not cut off the response.
	_ = http.NewResponseController(c.Writer).SetReadDeadline(time.Now().Add(time.Second))
}

// Values of headers that all responses share; nothing appends to them in place.
var noStore, noSniff = []string{"no-store"}, []string{"nosniff"}

// serve admits a request and runs its work, with a time limit. It renders an error of either, and logs and counts the
// request. It closes the connection after a body that is too slow, or too large (drainBody). name is the route's.
func (s *Surface) serve(c *gin.Context, name string, work func(*gin.Context) error) {
	start := time.Now()
	s.setHeaders(c, name)
	if s.edge.Tracing != nil {
		s.edge.Tracing.Begun(c.Request.Context(), s.prefix[1:], name, RequestID(c))
	}
	body, done := limitTime(c)
	defer done()

	err := s.admitAndRun(c, name, work)
	if err != nil && errors.Is(body.err, os.ErrDeadlineExceeded) {
		err = errSlowUpload
		c.Header("Connection", "close") // instead of waiting for the rest of the body
	}
	if err != nil {
		if domain.IsCode(err, domain.PayloadTooLarge) {
			c.Header("Connection", "close")
		}
		err = s.fail(c, err)
	}
	s.edge.observe(c, s, name, time.Since(start), err)
	if domain.IsCode(err, domain.PayloadTooLarge) {
		s.edge.drainBody(c)
	}
}

// Bounds on draining a body that is too large, after its response, and on how many bodies are drained at a time.
const (
	drainBytes  = 8 << 20
	drainTime   = 5 * time.Second
	maxDraining = 64
)

// drainBody sends the response and discards the rest of a body that is too large, up to drainBytes and drainTime: many
// clients read the response only after they have written the body, and closing at once would reset their connection. If
// maxDraining bodies are being drained, it returns at once.
func (e *Edge) drainBody(c *gin.Context) {
	if c.GetHeader("Expect") != "" { // the client has not begun to send its body
		return
	}
	if !e.draining.TryAcquire(1) {
		return
	}
	defer e.draining.Release(1)
	control := http.NewResponseController(c.Writer)
	if control.Flush() != nil || control.SetReadDeadline(time.Now().Add(drainTime)) != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, c.Request.Body, drainBytes) // the caller has the response: an error does not matter
}

// admitAndRun admits the request by the surface's before, the key and the budgets, and runs its work. The work has the
// caller in its context, and a turn for what it acquires. A panic becomes an error. name is the route's: unless the
// surface excludes it (KeepLastUse), the request is recorded as the key's last use.
func (s *Surface) admitAndRun(c *gin.Context, name string, work func(*gin.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	if s.before != nil {
		if answered, err := s.before(c.Writer, c.Request); answered || err != nil {
			return err
		}
	}
	caller, keyBudget, err := s.edge.admit(c, !s.uncounted)
	if err != nil {
		return err
	}
	if !s.unmarked[name] {
		s.edge.Keys.markUsed(caller)
	}
	ctx := c.Request.Context()
	if only := domain.OnlyFrom(ctx); !only.IsZero() {
		caller = caller.LimitTo(only)
	}
	if s.edge.Audit != nil && c.Request.Method != http.MethodGet && c.Request.Method != http.MethodHead {
		ctx = withRequest(c)
	}
	c.Request = c.Request.WithContext(domain.WithRequest(ctx, caller, RequestID(c)))
	t := s.edge.newTurn(c, keyBudget)
	defer t.end()
	return work(c)
}

// errSlowUpload is the error for a body that did not arrive in time. Its own code says that a retry may succeed.
var errSlowUpload = &domain.Error{
	Code: domain.RequestTimeout, Message: "the body did not arrive in time; send the request again",
}

// upload is the body of a request as it arrives.
type upload struct {
	io.ReadCloser
	err   error  // the first error of Read, such as io.EOF
	onEnd func() // called after the first error
}

// Read calls onEnd after the first error, which it keeps.
func (u *upload) Read(p []byte) (int, error) {
	n, err := u.ReadCloser.Read(p)
	if err != nil && u.err == nil {
		u.err = err
		u.onEnd()
	}
	return n, err
}

// limitTime limits the time of a request. When its body has ended, or at once if it has none, c's request gets a
// context that ends after requestTime. Until then, or if a handler never reads the body, its context ends after
// uploadTime+requestTime. The returned upload records how the body ended; done releases the contexts.
func limitTime(c *gin.Context) (body *upload, done func()) {
	body = &upload{ReadCloser: c.Request.Body, onEnd: func() {}}
	if c.Request.Body == nil || c.Request.Body == http.NoBody {
		return body, limitContext(c, requestTime)
	}
	cancelUpload := limitContext(c, uploadTime+requestTime)
	cancelWork := func() {}
	body.onEnd = func() { cancelWork = limitContext(c, requestTime) }
	c.Request.Body = body
	return body, func() {
		cancelWork()
		cancelUpload()
	}
}

// limitContext gives c's request a context that ends after limit.
func limitContext(c *gin.Context, limit time.Duration) context.CancelFunc {
	ctx, cancel := context.WithTimeout(c.Request.Context(), limit)
	c.Request = c.Request.WithContext(ctx)
	return cancel
}

// fail renders an error, unless the response has started or the caller disconnected, and returns the error to log. An
// error that cannot be rendered is rendered as an internal one.
func (s *Surface) fail(c *gin.Context, err error) error {
	if c.Writer.Written() {
		return err
	}
	if errors.Is(err, context.Canceled) && errors.Is(c.Request.Context().Err(), context.Canceled) {
		c.Status(statusClientClosed)
		return err
	}
	e := domain.AsError(err)
	if e.RetryAfter > 0 {
		c.Header("Retry-After", strconv.Itoa(int((e.RetryAfter+time.Second-1)/time.Second)))
	}
	if e.Cell != "" {
		c.Header("X-Cell", e.Cell)
	}
	if renderErr := s.render(c, e); renderErr != nil {
		err = fmt.Errorf("render the error %q: %w", e.Message, renderErr)
		return errors.Join(err, s.render(c, domain.AsError(err)))
	}
	return err
}

var validRequestID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`)

// requestID returns given, the caller's id, if it is well formed, otherwise a new id.
func requestID(given string) string {
	if given != "" && validRequestID.MatchString(given) {
		return given
	}
	return "req_" + strings.ToLower(rand.Text())
}

// RequestID returns the id of the request, from its response's header.
func RequestID(c *gin.Context) string { return c.Writer.Header().Get("X-Request-Id") }
