// Package parity compares what version 1 and version 2 of the interface say of
// everything that a key reaches, field by field, as a caller of both sees it: over
// HTTP, without a database. What v1 has to say is what the routes' own translators
// make of v2's JSON, so the rules are those of the migration guide. It can compare
// two services' version 1 as well, and the requests of recorded traffic.
//
// What differs is read again before it counts, so that writers beside it raise no
// false alarm. It writes nothing but what Writes is asked for. The package can be
// deleted with v1compat.
package parity

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"partnerapi/domain"
	"partnerapi/v1compat"
)

// DefaultSample is how many objects of a kind and parent are compared where nothing
// else is said.
const DefaultSample = 20

// Config says what is compared.
type Config struct {
	// URL is the address of the service, without /v1, and Key a key of it with the
	// scope read.
	URL, Key string
	// OldURL, where set, is the address of another service whose v1 is compared with
	// this one's, in the place of this one's v2; its ids are the same. OldKey is a key
	// of it; empty for Key.
	OldURL, OldKey string
	// Tolerate are members of v1's items that may differ between the two services,
	// and names of headers.
	Tolerate []string
	// Sample is how many objects of a kind and parent are compared at the most,
	// spread evenly over their list; 0 is all. The lists themselves are read whole.
	Sample int
	// Facade has the routes' translators; one that was made without a database will
	// do.
	Facade *v1compat.Facade
	// Wait pauses between readings, and while a budget is used up; nil is domain.Pause.
	Wait Wait
	// Now is the time from which the mails of the last 30 days are counted; nil is
	// time.Now.
	Now func() time.Time
	// Say, where set, is called with a sentence for each wait for a key's budget.
	Say func(string)
	// Progress, where set, is called after each client and user with how many of them were
	// compared, and how many are to be.
	Progress func(done, total int)
}

// Unable is an error for which nothing could be compared.
type Unable struct{ Reason error }

func (e Unable) Error() string { return e.Reason.Error() }

// Unwrap is the reason.
func (e Unable) Unwrap() error { return e.Reason }

// run is one comparison.
type run struct {
	Config
	service  *service
	old      *service // nil where v2 is compared
	report   *Report
	readings map[string]*v1compat.Reading
	// operations are the names of the readings, in their order.
	operations []string
	// known are ids by idmap.NumberKey, numbers by idmap.IDKey and clients by user. They
	// never change while a service runs, but for an import.
	known sync.Map
	// answered says that v1 has answered something with a success.
	answered atomic.Bool

	mu          sync.Mutex // guards done
	done, total int
}

// newRun checks the configuration.
func newRun(c Config) (*run, error) {
	if c.Wait == nil {
		c.Wait = domain.Pause
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	r := &run{Config: c, report: &Report{Operations: []*Operation{}}, readings: map[string]*v1compat.Reading{}}
	for _, reading := range c.Facade.Readings() {
		r.readings[reading.ID] = reading
		r.operations = append(r.operations, operationOf(reading))
	}
	var err error
	if r.service, err = newService(c.URL, c.Key, "KEY", c); err != nil {
		return nil, Unable{err}
	}
	if c.OldURL == "" {
		return r, nil
	}
	if c.OldKey == "" {
		c.OldKey = c.Key
	}
	if r.old, err = newService(c.OldURL, c.OldKey, "V1_KEY", c); err != nil {
		return nil, Unable{err}
	}
	r.report.Between = []string{r.old.base, r.service.base}
	return r, nil
}

// Compare compares everything that the key reaches. The report says what was compared
// until then, whatever the error is; an Unable for which nothing could be compared.
func Compare(ctx context.Context, c Config) (*Report, error) {
	r, err := newRun(c)
	if err != nil {
		return &Report{}, err
	}
	defer r.close()
	if err := r.begin(ctx); err != nil {
		return r.report, err
	}
	return r.report, r.tree(ctx)
}

// close ends the work, and puts the report in order.
func (r *run) close() {
	r.report.sort(r.operations)
	r.service.client.Close()
	if r.old != nil {
		r.old.client.Close()
	}
}

// begin finds out whether the services can be compared at all.
func (r *run) begin(ctx context.Context) error {
	if err := r.reachable(ctx, r.service, "/v1/partner"); err != nil {
		return err
	}
	if r.old != nil {
		return r.reachable(ctx, r.old, "/v1/partner")
	}
	return r.reachable(ctx, r.service, "/v2/partner")
}

func (r *run) reachable(ctx context.Context, s *service, path string) error {
	a, err := s.do(ctx, get(path))
	why := ""
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return Unable{err}
	case a.status/100 == 2, a.status == http.StatusBadRequest, a.status == http.StatusInternalServerError:
		return nil // a wrong one is found where the answers are compared
	case a.status == http.StatusUnauthorized:
		return Unable{fmt.Errorf("%s does not take the key: %s", s.base, message(a))}
	case a.status == http.StatusForbidden:
		why = "the key needs the scope read: "
	case a.status == http.StatusNotFound && path == "/v2/partner":
		why = "comparing needs v2 in release 2.1 or higher: "
	case a.status == http.StatusNotFound:
		why = "does the address name the service? "
	}
	return Unable{fmt.Errorf("GET %s%s was answered %d: %s%s", s.base, path, a.status, why, message(a))}
}

// rules are the rules by which a list's items are compared.
func (r *run) rules(l *list) rules {
	rules := rules{tolerated: r.Tolerate, apart: r.old != nil}
	for _, name := range l.GivenUp {
		if r.old == nil && !(name == mailUser && l.ofMails()) {
			rules.explained = append(rules.explained, name)
		}
	}
	return rules
}

// advance notes that a client or a user was compared.
func (r *run) advance() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done++
	if r.Progress != nil {
		r.Progress(min(r.done, r.total), r.total)
	}
}
