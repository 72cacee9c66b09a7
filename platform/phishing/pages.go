package phishing

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"partnerapi/db"
	"partnerapi/domain"
)

const (
	// pagesAtOnce is how many pages use the database at a time: links come in
	// bursts and are counted in no budget, and the connections are those of the
	// interface's requests.
	pagesAtOnce = 4
	// answerWithin is how long a page waits for its turn and the database.
	answerWithin = 5 * time.Second
)

// Pages answer the links of simulated mails. They need no key and are counted
// in no budget, for who follows them is no caller of the interface.
type Pages struct {
	db       *db.DB
	tokens   Tokens
	networks Networks
	log      *slog.Logger
	turns    chan struct{}
	within   time.Duration
}

// NewPages returns the pages; the networks are those of mail scanners.
func NewPages(d *db.DB, tokens Tokens, networks Networks, log *slog.Logger) *Pages {
	return &Pages{
		db: d, tokens: tokens, networks: networks, log: log,
		turns: make(chan struct{}, pagesAtOnce), within: answerWithin,
	}
}

// Mount adds the pages to the engine, below /t.
func (p *Pages) Mount(engine *gin.Engine) {
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		engine.Handle(method, "/t/:token", p.follow)
		engine.Handle(method, "/t/:token/open.gif", p.open)
		engine.Handle(method, "/t/:token/report", p.report)
	}
	engine.POST("/t/:token", p.submit)
}

// pixel is a transparent picture of one dot.
var pixel = []byte("GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\x00\x00\x00!\xf9\x04\x01\x00\x00\x00\x00" +
	",\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;")

func (p *Pages) open(c *gin.Context) {
	if _, ok := p.take(c, domain.MailOpened); ok {
		private(c)
		c.Data(http.StatusOK, "image/gif", pixel)
	}
}

func (p *Pages) follow(c *gin.Context) {
	s, ok := p.take(c, domain.MailClicked)
	switch {
	case !ok:
	case s.Template.Landing == domain.LandingForm:
		p.write(c, http.StatusOK, "form", s)
	default:
		p.write(c, http.StatusOK, "lesson", s)
	}
}

// submit takes note that the form was sent; where the page is no form, what
// posts to it only follows the link. What was typed into it is not read: the
// form's fields have no names, so that browsers do not even send them.
func (p *Pages) submit(c *gin.Context) {
	if s, ok := p.take(c, domain.MailCredentialsSubmitted); ok {
		p.write(c, http.StatusOK, "lesson", s)
	}
}

func (p *Pages) report(c *gin.Context) {
	if s, ok := p.take(c, domain.MailReported); ok {
		p.write(c, http.StatusOK, "reported", s)
	}
}

// take takes note of a step with the mail of the path's token, and returns the
// mail. False where the response is written: the token is nobody's, or the
// database cannot be used in time.
func (p *Pages) take(c *gin.Context, kind domain.ResultEventKind) (domain.Simulation, bool) {
	id, ok := p.tokens.Result(c.Param("token"))
	if !ok {
		p.write(c, http.StatusNotFound, "unknown", domain.Simulation{})
		return domain.Simulation{}, false
	}
	step := domain.ResultStep{Result: id, Kind: kind, At: p.db.Now(), Automated: p.scanner(c)}
	ctx, cancel := context.WithTimeout(c.Request.Context(), p.within)
	defer cancel()
	s, err := p.note(ctx, step)
	switch {
	case domain.IsCode(err, domain.NotFound):
		p.write(c, http.StatusNotFound, "unknown", s)
	case err != nil:
		// The path holds the token and stays out of the log.
		p.log.ErrorContext(ctx, "a tracked link was not recorded", "result", id.UUID(), "step", kind, "error", err)
		p.write(c, http.StatusServiceUnavailable, "trouble", s)
	default:
		return s, true
	}
	return s, false
}

// note reads the mail of a step and takes note of the step, when it is its turn.
func (p *Pages) note(ctx context.Context, step domain.ResultStep) (domain.Simulation, error) {
	select {
	case p.turns <- struct{}{}:
		defer func() { <-p.turns }()
	case <-ctx.Done():
		return domain.Simulation{}, fmt.Errorf("wait for a turn: %w", ctx.Err())
	}
	s, err := p.db.Simulation(ctx, step.Result)
	if err != nil {
		return s, err
	}
	if step.Kind == domain.MailCredentialsSubmitted && s.Template.Landing != domain.LandingForm {
		step.Kind = domain.MailClicked
	}
	if s.SentAt == nil {
		noted, err := p.noteScan(ctx, step)
		if err != nil || noted {
			return s, err
		}
		if s, err = p.db.Simulation(ctx, step.Result); err != nil || s.SentAt == nil { // it may be marked by now
			return s, err
		}
	}
	return s, p.record(ctx, s, step)
}

// noteScan notes a step with a mail that is not sent: that is a scanner's while
// the mail is being handed over, for its server may follow the links before it
// takes the mail. It reports false where the mail is not being handed over:
// nobody was given its links, and nothing is kept.
func (p *Pages) noteScan(ctx context.Context, step domain.ResultStep) (bool, error) {
	if step.Kind != domain.MailOpened && step.Kind != domain.MailClicked {
		return false, nil
	}
	reason := step.Automated
	if reason == "" {
		reason = domain.ByHaste
	}
	return p.db.NoteScan(ctx, step.Result, reason)
}

// record stores a step with a mail that was sent. A scanner neither submits nor
// reports: what looks so is not kept.
func (p *Pages) record(ctx context.Context, s domain.Simulation, step domain.ResultStep) error {
	if step.At.Before(*s.SentAt) { // by another machine's clock, or while it was marked
		step.At = *s.SentAt
	}
	if step.Automated == "" && domain.TooSoon(*s.SentAt, step.At) {
		step.Automated = domain.ByHaste
	}
	return p.db.AdvanceResults(ctx, []domain.ResultStep{step})
}

// scanner is how a request shows that a mail scanner made it, beside its time;
// empty where nothing does.
func (p *Pages) scanner(c *gin.Context) domain.AutomatedReason {
	switch {
	case c.Request.Method == http.MethodHead:
		return domain.ByHead
	case p.networks.Hold(c.ClientIP()):
		return domain.ByNetwork
	}
	return ""
}

// private keeps a response out of caches, search engines and other sites.
func private(c *gin.Context) {
	for name, value := range map[string]string{
		"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Robots-Tag": "noindex",
		"X-Content-Type-Options": "nosniff",
		"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors " +
			"'none'; base-uri 'none'",
	} {
		c.Header(name, value)
	}
}
