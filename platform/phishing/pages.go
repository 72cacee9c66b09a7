package phishing

import (
	"context"
	_ "embed"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"golang.org/x/sync/semaphore"

	"partnerapi/db"
	"partnerapi/db/outbox"
	"partnerapi/domain"
)

const (
	// maxConcurrentPages is the maximum number of pages that use the database at a time: requests come in bursts, no
	// rate limit applies to them, and they share the connections of the API's requests.
	maxConcurrentPages = 4
	// maxOfLink and maxOfAddress are how many of them are for one link from one address, and from one address: a flood
	// of either slows no other reader.
	maxOfLink, maxOfAddress = 1, 2
	// pageTimeout is how long a page waits for a slot and the database.
	pageTimeout = 5 * time.Second
)

// Pages serves the links of simulated emails. Requests need no API key, and no rate limit applies to them, because the
// readers of emails are not API callers.
type Pages struct {
	db       *db.DB
	tokens   Tokens
	networks domain.Networks
	log      *slog.Logger
	slots    *semaphore.Weighted // maxConcurrentPages
	// links and addresses are waited for before a slot.
	links, addresses *turns
	timeout          time.Duration
	// newCell, if not nil, returns the URL of the cell to which a result's partner moved;
	// empty if the partner did not move.
	newCell func(context.Context, domain.ResultID) (string, error)
}

// NewPages returns the pages; networks are those of mail scanners.
func NewPages(d *db.DB, tokens Tokens, networks domain.Networks, log *slog.Logger) *Pages {
	return &Pages{
		db: d, tokens: tokens, networks: networks, log: log,
		slots: semaphore.NewWeighted(maxConcurrentPages), links: newTurns(maxOfLink), addresses: newTurns(maxOfAddress),
		timeout: pageTimeout,
	}
}

// Forward makes the pages redirect requests to the cell to which a result's partner moved. newCell returns the URL with
// which links begin in that cell; empty if the partner did not move.
func (p *Pages) Forward(newCell func(context.Context, domain.ResultID) (string, error)) {
	p.newCell = newCell
}

// Mount adds the pages to the engine, below /t.
func (p *Pages) Mount(engine *gin.Engine) {
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		engine.Handle(method, "/t/:token", p.follow)
		engine.Handle(method, "/t/:token/open.gif", p.open)
		engine.Handle(method, "/t/:token/report", p.offerReport)
	}
	engine.POST("/t/:token", p.submit)
	engine.POST("/t/:token/report", p.report)
}

// pixel is a transparent GIF of one pixel.
var pixel = []byte("GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\x00\x00\x00!\xf9\x04\x01\x00\x00\x00\x00" +
	",\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;")

// open records the opening of an email and answers with the pixel.
func (p *Pages) open(c *gin.Context) {
	if _, ok := p.handleStep(c, domain.MailOpened); ok {
		setPrivateHeaders(c)
		c.Data(http.StatusOK, "image/gif", pixel)
	}
}

// follow records a click on the link and shows the page.
func (p *Pages) follow(c *gin.Context) {
	if s, ok := p.handleStep(c, domain.MailClicked); ok {
		name := "lesson"
		if s.Template.Landing == domain.LandingForm {
			name = "form"
		}
		p.write(c, http.StatusOK, name, s)
	}
}

// submit records that the form was sent, or a click if the email's page has no form, and shows the lesson. The input is
// not read: the form's fields have no names, so browsers do not send them.
func (p *Pages) submit(c *gin.Context) {
	if s, ok := p.handleStep(c, domain.MailCredentialsSubmitted); ok {
		p.write(c, http.StatusOK, "lesson", s)
	}
}

// noStep is the kind of a request that records nothing.
const noStep domain.ResultEventKind = ""

// offerReport shows a page with a button that reports the email. It records nothing, because mail scanners follow
// links, but do not press buttons.
func (p *Pages) offerReport(c *gin.Context) {
	if s, ok := p.handleStep(c, noStep); ok {
		p.write(c, http.StatusOK, "report", s)
	}
}

// report records that the reader reported the email. If the request counts as a scanner's, so that nothing is recorded,
// it shows the page with the button again. It needs no token against forged requests: the URL is the secret.
func (p *Pages) report(c *gin.Context) {
	at := p.db.Now()
	if s, ok := p.handleStep(c, domain.MailReported); ok {
		name := "reported"
		if p.automatedReason(c) != "" || s.SentAt == nil || domain.TooSoon(*s.SentAt, at) {
			name = "report"
		}
		p.write(c, http.StatusOK, name, s)
	}
}

// handleStep records a step with the simulation of the path's token and returns the simulation. It returns false if it
// wrote the response: 404 for an invalid token or an unknown simulation, a redirect if the simulation's partner moved
// to another cell, or 503 after another error, such as a timeout.
func (p *Pages) handleStep(c *gin.Context, kind domain.ResultEventKind) (domain.Simulation, bool) {
	id, ok := p.tokens.Result(c.Param("token"))
	if !ok {
		p.write(c, http.StatusNotFound, "unknown", domain.Simulation{})
		return domain.Simulation{}, false
	}
	step := domain.ResultStep{Result: id, Kind: kind, At: p.db.Now(), Automated: p.automatedReason(c)}
	ctx, cancel := context.WithTimeout(c.Request.Context(), p.timeout)
	defer cancel()
	s, cellURL, err := p.recordHere(ctx, step, domain.CountedAddress(domain.AddressFrom(ctx)))
	switch {
	case domain.IsCode(err, domain.NotFound):
		p.write(c, http.StatusNotFound, "unknown", s)
	case err != nil:
		// The path is not logged, because it contains the token.
		p.log.ErrorContext(ctx, "a tracked link was not recorded", "result", id.UUID(), "step", kind, "error", err)
		p.write(c, http.StatusServiceUnavailable, "trouble", s)
	case cellURL != "":
		setPrivateHeaders(c)
		c.Redirect(http.StatusTemporaryRedirect, cellURL+c.Request.URL.Path)
	default:
		return s, true
	}
	return s, false
}

// recordHere waits for a slot, records a step of a reader at an address and returns its simulation. If the simulation's
// partner moved to another cell, it only returns the URL of that cell.
func (p *Pages) recordHere(
	ctx context.Context, step domain.ResultStep, address string,
) (s domain.Simulation, cellURL string, err error) {
	leave, err := p.enter(ctx, step.Result, address)
	if err != nil {
		return s, "", fmt.Errorf("wait for a turn: %w", err)
	}
	defer leave()
	if p.newCell != nil {
		if cellURL, err = p.newCell(ctx, step.Result); err != nil || cellURL != "" {
			return s, cellURL, err
		}
	}
	s, err = p.recordStep(ctx, step)
	return s, "", err
}

// enter waits for the turns of a link and of an address, and then for a slot. The returned function releases them.
func (p *Pages) enter(ctx context.Context, link domain.ResultID, address string) (leave func(), err error) {
	leaveLink, err := p.links.enter(ctx, link.UUID()+" "+address)
	if err != nil {
		return nil, err
	}
	leaveAddress, err := p.addresses.enter(ctx, address)
	if err != nil {
		leaveLink()
		return nil, err
	}
	if err := p.slots.Acquire(ctx, 1); err != nil {
		leaveAddress()
		leaveLink()
		return nil, err
	}
	return func() { p.slots.Release(1); leaveAddress(); leaveLink() }, nil
}

// recordStep returns the simulation of a step, and records the step unless it is noStep. A submission is only a click
// if the template has no form. A step with an email that is not marked as sent is recorded as a scanner's, if the email
// is being delivered; otherwise not at all.
func (p *Pages) recordStep(ctx context.Context, step domain.ResultStep) (domain.Simulation, error) {
	s, err := p.db.Simulation(ctx, step.Result)
	if err != nil || step.Kind == noStep {
		return s, err
	}
	if step.Kind == domain.MailCredentialsSubmitted && s.Template.Landing != domain.LandingForm {
		step.Kind = domain.MailClicked
	}
	if s.SentAt == nil {
		recorded, err := p.recordScan(ctx, step)
		if err != nil || recorded {
			return s, err
		}
		// The email may have been marked as sent since the first read.
		if s, err = p.db.Simulation(ctx, step.Result); err != nil || s.SentAt == nil {
			return s, err
		}
	}
	return s, p.recordSentStep(ctx, s, step)
}

// recordScan records a step with an email that is still being delivered. Such a step is a scanner's: the mail server
// may follow the links before it accepts the email. It returns false, and records nothing, if the email is not being
// delivered, or the step is neither an opening nor a click.
func (p *Pages) recordScan(ctx context.Context, step domain.ResultStep) (bool, error) {
	if step.Kind != domain.MailOpened && step.Kind != domain.MailClicked {
		return false, nil
	}
	reason := step.Automated
	if reason == "" {
		reason = domain.ByHaste
	}
	return outbox.NoteScan(ctx, p.db, step.Result, reason)
}

// recordSentStep records a step with a sent email. A step too soon after the sending is automated. AdvanceResults
// records no automated submission or report, because scanners make neither.
func (p *Pages) recordSentStep(ctx context.Context, s domain.Simulation, step domain.ResultStep) error {
	if step.At.Before(*s.SentAt) { // clocks differ, or the email was marked after the step
		step.At = *s.SentAt
	}
	if step.Automated == "" && domain.TooSoon(*s.SentAt, step.At) {
		step.Automated = domain.ByHaste
	}
	return p.db.AdvanceResults(ctx, []domain.ResultStep{step})
}

// purposeHeaders are the headers in which browsers and email programs announce that they load a page before anyone
// asked for it. Sec-Purpose and Purpose:
// https://html.spec.whatwg.org/multipage/speculative-loading.html#sec-purpose-header and
// https://developer.mozilla.org/en-US/docs/Web/HTTP/Reference/Headers/Sec-Purpose. X-Purpose is Safari's ("preview").
var purposeHeaders = []string{"Purpose", "Sec-Purpose", "X-Purpose"}

// isPrefetch reports whether a request announces a prefetch, a prerendering or a preview.
func isPrefetch(h http.Header) bool {
	for _, name := range purposeHeaders {
		for _, value := range h.Values(name) {
			value = strings.ToLower(value)
			if strings.Contains(value, "prefetch") || strings.Contains(value, "prerender") || strings.Contains(value, "preview") {
				return true
			}
		}
	}
	return false
}

// automatedReason returns why a request counts as a mail scanner's: its method, a header or its network; empty if it
// does not.
func (p *Pages) automatedReason(c *gin.Context) domain.AutomatedReason {
	switch {
	case c.Request.Method == http.MethodHead:
		return domain.ByHead
	case isPrefetch(c.Request.Header):
		return domain.ByPrefetch
	case p.networks.Contain(domain.AddressFrom(c.Request.Context())):
		return domain.ByNetwork
	}
	return ""
}

// setPrivateHeaders sets headers that keep a response out of caches, search engines and frames of other sites.
func setPrivateHeaders(c *gin.Context) {
	for name, value := range map[string]string{
		"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Robots-Tag": "noindex",
		"X-Content-Type-Options": "nosniff",
		"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'self'; frame-ancestors " +
			"'none'; base-uri 'none'",
	} {
		c.Header(name, value)
	}
}

//go:embed networks.txt
var defaultNetworks string

// ParseNetworks parses networks of mail scanners, as addresses or CIDRs. For an empty list it returns the built-in
// list.
func ParseNetworks(list []string) (domain.Networks, error) {
	if len(list) == 0 {
		for line := range strings.Lines(defaultNetworks) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				list = append(list, line)
			}
		}
	}
	return domain.ParseNetworks(list)
}
