package ginop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"partnerapi/domain"
)

const (
	// requestTime bounds how long a request may take once its body was read. A
	// database that keeps silent for so long counts as one that cannot be
	// reached.
	requestTime = 20 * time.Second
	// uploadTime bounds how long a body may take, for handlers that do not read
	// theirs; the server's own time to read ends before.
	uploadTime = 2 * time.Minute
)

// statusGone is what is recorded of a request whose caller hung up: it is not
// sent, and the service did nothing wrong.
const statusGone = 499

// begin writes the headers that every response has before its work.
func (s *Surface) begin(c *gin.Context, operation string) {
	h := c.Writer.Header()
	h["X-Request-Id"] = []string{requestID(c.GetHeader("X-Request-Id"))}
	h["Cache-Control"], h["X-Content-Type-Options"] = noStore, noSniff
	if s.headers != nil {
		s.headers(c, operation)
	}
}

// unreadBody is where the context of a request says that it has a body that is not
// read.
const unreadBody = "ginop.unread"

// leaveBody does without the body of a GET or a HEAD, which has no meaning: the
// answer does not wait for one that may never arrive. The connection is closed
// after it, as the next request would only begin where that body ends.
func leaveBody(c *gin.Context) {
	r := c.Request
	if r.Method != http.MethodGet && r.Method != http.MethodHead || r.Body == nil || r.Body == http.NoBody {
		return
	}
	c.Set(unreadBody, true)
	r.Body = http.NoBody
	c.Header("Connection", "close")
	// What has arrived is still taken in, so that closing does not cut the answer off.
	_ = http.NewResponseController(c.Writer).SetReadDeadline(time.Now().Add(time.Second))
}

// Values of headers that all responses share; nothing appends to them in place.
var noStore, noSniff = []string{"no-store"}, []string{"nosniff"}

// serve runs a request's work between what every request has: an id, the key's
// budget in the headers, a rendered error, a log line and a metric.
func (s *Surface) serve(c *gin.Context, name string, work func(*gin.Context) error) {
	start := time.Now()
	s.begin(c, name)
	if s.edge.Tracing != nil {
		s.edge.Tracing.Begun(c.Request.Context(), s.prefix[1:], name, RequestID(c))
	}
	body, done := limitTime(c)
	defer done()

	err := s.guarded(c, work)
	if err != nil && errors.Is(body.err, os.ErrDeadlineExceeded) {
		err = errSlowUpload
		c.Header("Connection", "close") // the rest of the body is not waited for
	}
	if err != nil {
		if domain.IsCode(err, domain.PayloadTooLarge) {
			c.Header("Connection", "close")
		}
		err = s.fail(c, err)
	}
	s.edge.observe(c, s, name, time.Since(start), err)
	if domain.IsCode(err, domain.PayloadTooLarge) {
		s.edge.readOn(c)
	}
}

// What is read of a body that is too large, after its answer, and of how many at a time.
const (
	readOnBytes  = 8 << 20
	readOnTime   = 5 * time.Second
	readOnAtOnce = 64
)

// readOn sends the answer and reads on in a body that was refused, for a while, as many
// clients read an answer only once they have written everything: closing at once would
// reset the connection under them. Nothing is kept of what is read. Beyond readOnAtOnce
// requests the connection is closed at once.
func (e *Edge) readOn(c *gin.Context) {
	if c.GetHeader("Expect") != "" { // a client that waits, and has not begun to send
		return
	}
	if !e.readingOn.TryAcquire(1) {
		return
	}
	defer e.readingOn.Release(1)
	control := http.NewResponseController(c.Writer)
	if control.Flush() != nil || control.SetReadDeadline(time.Now().Add(readOnTime)) != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, c.Request.Body, readOnBytes) // the caller has the answer
}

// guarded admits the request and runs its work; a panic becomes an error.
func (s *Surface) guarded(c *gin.Context, work func(*gin.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	if s.before != nil {
		if err := s.before(c.Request); err != nil {
			return err
		}
	}
	caller, of, err := s.edge.admit(c, !s.uncounted)
	if err != nil {
		return err
	}
	ctx := c.Request.Context()
	if s.edge.Audit != nil && c.Request.Method != http.MethodGet && c.Request.Method != http.MethodHead {
		ctx = withRequest(c)
	}
	c.Request = c.Request.WithContext(domain.WithRequest(ctx, caller, RequestID(c)))
	t := s.edge.beginTurn(c, of)
	defer t.end()
	return work(c)
}

// errSlowUpload is what a body that did not arrive in time is answered. It has
// a code of its own, as the same request may well be sent again.
var errSlowUpload = &domain.Error{
	Code: domain.RequestTimeout, Message: "the body did not arrive in time; send the request again",
}

// upload is the body of a request as it arrives.
type upload struct {
	io.ReadCloser
	err   error // that ended it; io.EOF at its end
	ended func()
}

// Read reads from the body.
func (u *upload) Read(p []byte) (int, error) {
	n, err := u.ReadCloser.Read(p)
	if err != nil && u.err == nil {
		u.err = err
		u.ended()
	}
	return n, err
}

// limitTime bounds the time of a request, which begins when its body was read:
// the request of c has a new context from then on. done frees what it holds.
func limitTime(c *gin.Context) (body *upload, done func()) {
	body = &upload{ReadCloser: c.Request.Body, ended: func() {}}
	if c.Request.Body == nil || c.Request.Body == http.NoBody {
		return body, limitContext(c, requestTime)
	}
	waiting := limitContext(c, uploadTime+requestTime)
	working := func() {}
	body.ended = func() { working = limitContext(c, requestTime) }
	c.Request.Body = body
	return body, func() {
		working()
		waiting()
	}
}

func limitContext(c *gin.Context, limit time.Duration) context.CancelFunc {
	ctx, cancel := context.WithTimeout(c.Request.Context(), limit)
	c.Request = c.Request.WithContext(ctx)
	return cancel
}

// fail renders an error, unless the response is already under way or the caller
// hung up. It returns the error that is to be logged: one that cannot be
// encoded is answered as an internal one is.
func (s *Surface) fail(c *gin.Context, err error) error {
	if c.Writer.Written() {
		return err
	}
	if errors.Is(err, context.Canceled) && errors.Is(c.Request.Context().Err(), context.Canceled) {
		c.Status(statusGone)
		return err
	}
	e := domain.AsError(err)
	if e.RetryAfter > 0 {
		c.Header("Retry-After", strconv.Itoa(int((e.RetryAfter+time.Second-1)/time.Second)))
	}
	if e.Cell != "" {
		c.Header("X-Cell", e.Cell)
	}
	if failed := s.render(c, e); failed != nil {
		err = fmt.Errorf("render the error %q: %w", e.Message, failed)
		return errors.Join(err, s.render(c, domain.AsError(err)))
	}
	return err
}

var goodRequestID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`)

// requestID keeps the caller's id where it is well formed, else makes one.
func requestID(given string) string {
	if given != "" && goodRequestID.MatchString(given) {
		return given
	}
	id := [30]byte{'r', 'e', 'q', '_'}
	for i := 4; i < len(id); {
		for bits, n := rand.Uint64(), 0; n < 13; n++ { // it is to be unique, and no secret
			id[i] = idDigits[bits&31]
			bits >>= 5
			i++
		}
	}
	return string(id[:])
}

// idDigits are those of base32, in lower case.
const idDigits = "abcdefghijklmnopqrstuvwxyz234567"

// RequestID is the id of the request, as its response shows it.
func RequestID(c *gin.Context) string { return c.Writer.Header().Get("X-Request-Id") }
