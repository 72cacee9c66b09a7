package simulation

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/gin-gonic/gin"

	"partnerapi/db"
	"partnerapi/domain"
)

// Pages answer the links of simulated mails. They need no key and are counted
// in no budget, for who follows them is no caller of the interface.
type Pages struct {
	db       *db.DB
	tokens   Tokens
	networks Networks
	log      *slog.Logger
}

// NewPages returns the pages; the networks are those of mail scanners.
func NewPages(d *db.DB, tokens Tokens, networks Networks, log *slog.Logger) *Pages {
	return &Pages{db: d, tokens: tokens, networks: networks, log: log}
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
var pixel = []byte("GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\x00\x00\x00!\xf9\x04\x01\x00\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;")

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

// submit takes note that the form was sent. What was typed into it is not read:
// the form's fields have no names, so that browsers do not even send them.
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
// database cannot be used.
func (p *Pages) take(c *gin.Context, kind domain.ResultEventKind) (domain.Simulation, bool) {
	ctx, at := c.Request.Context(), p.db.Now()
	id, ok := p.tokens.Result(c.Param("token"))
	if !ok {
		p.write(c, http.StatusNotFound, "unknown", domain.Simulation{})
		return domain.Simulation{}, false
	}
	s, err := p.db.Simulation(ctx, id)
	if err == nil {
		err = p.record(ctx, s, domain.ResultStep{Result: id, Kind: kind, At: at, Automated: p.scanner(c)})
	}
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

// record stores a step. A scanner neither submits nor reports: what looks so is
// not kept.
func (p *Pages) record(ctx context.Context, s domain.Simulation, step domain.ResultStep) error {
	byScanner := step.Automated != "" || domain.WithinScan(s.SentAt, step.At)
	if byScanner && step.Kind != domain.MailOpened && step.Kind != domain.MailClicked {
		return nil
	}
	_, _, err := p.db.AdvanceResults(ctx, []domain.ResultStep{step})
	return err
}

// scanner is how a request shows that a mail scanner made it, beside its time;
// empty where nothing does.
func (p *Pages) scanner(c *gin.Context) string {
	switch {
	case c.Request.Method == http.MethodHead:
		return domain.ByHeadRequest
	case p.networks.Hold(c.ClientIP()):
		return domain.FromScannerNetwork
	}
	return ""
}

// private keeps a response out of caches, search engines and other sites.
func private(c *gin.Context) {
	for name, value := range map[string]string{
		"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Robots-Tag": "noindex", "X-Content-Type-Options": "nosniff",
		"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
	} {
		c.Header(name, value)
	}
}
