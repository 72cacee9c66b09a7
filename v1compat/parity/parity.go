// Package parity compares what version 1 and version 2 of the API return for everything that a key has access to, field
// by field, as a caller sees both: over HTTP, without a database.
//
// Each query, a request of v1 or all pages of a list, is read on two sides. One side is v1. The other is v2, whose JSON
// the route's own translator turns into v1's items, so the rules are those of the migration guide; or it is the v1 of
// another service. One comparison pairs the rows of two readings. What differs is read again before it is reported, so
// that concurrent writers raise no false alarm.
//
// The package writes nothing but what Writes documents. It can be deleted with v1compat.
package parity

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"partnerapi/domain"
	"partnerapi/v1compat"
	"partnerapi/v2/op"
)

// DefaultSample is the usual Config.Sample of a command.
const DefaultSample = 20

// Config selects what is compared. URL, Key and Facade are required.
type Config struct {
	// URL is the address of the service, without /v1, and Key a key of it with the scope read.
	URL, Key string
	// OldURL, if set, is the address of another service, whose v1 is compared with this one's v1 instead of this one's
	// v2. Both have the same ids. OldKey is a key of it; empty means Key.
	OldURL, OldKey string
	// Tolerate names members of v1's items, and headers, that may differ between the two services.
	Tolerate []string
	// Sample is the maximum number of objects compared per kind and parent, spread evenly
	// over their list; 0 means all. The lists themselves are read whole.
	Sample int
	// Facade has the routes' translators. It needs no database.
	Facade *v1compat.Facade
	// Wait pauses between readings and for a key's budget; nil means domain.Pause.
	Wait func(ctx context.Context, d time.Duration) error
	// Now returns the end of the 30 days of emails that are compared; nil means time.Now.
	Now func() time.Time
	// Waiting, if set, is called with a sentence before each wait for a key's budget.
	Waiting func(text string)
	// Progress, if set, is called after each client and user with the number of those
	// compared, and of those to compare.
	Progress func(done, total int)
}

// run is one comparison of two services, or of one service's two versions.
type run struct {
	Config
	// service is what URL names. v1 is the service whose v1 is compared: the old one, or service itself.
	service, v1 *service
	report      *Report
	// release is the release of v2 that service serves; the latest if only its v1 is compared.
	release op.Release
	routes  map[string]*v1compat.Translator // by their IDs
	// known caches ids by idmap.NumberKey, numbers by idmap.IDKey, clients by user and v2's ids by Object, none of
	// which change while a service runs. It also has the headers that were reported.
	known     sync.Map
	succeeded atomic.Bool // v1 has answered a request with success

	mu          sync.Mutex // guards done
	done, total int
}

// Compare compares everything that the key has access to. If it returns an error, the report has what was compared
// before.
func Compare(ctx context.Context, c Config) (*Report, error) {
	return withRun(ctx, c, func(r *run) error { return r.compareAll(ctx) })
}

// withRun calls compare with a new run if both sides answer. It returns the run's report, also with an error.
func withRun(ctx context.Context, c Config, compare func(*run) error) (*Report, error) {
	if c.Wait == nil {
		c.Wait = domain.Pause
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	r := &run{Config: c, report: &Report{}, routes: map[string]*v1compat.Translator{}}
	var operations []string
	for _, route := range c.Facade.Readers() {
		r.routes[route.ID] = route
		operations = append(operations, operationOf(route))
	}
	defer r.report.sort(operations)

	var err error
	if r.service, err = newService(c.URL, c.Key, "KEY", c); err != nil {
		return r.report, err
	}
	defer r.service.client.Close()
	r.v1 = r.service
	servicePath := "/v2/partner"
	if c.OldURL != "" {
		if r.v1, err = newService(c.OldURL, cmp.Or(c.OldKey, c.Key), "V1_KEY", c); err != nil {
			return r.report, err
		}
		defer r.v1.client.Close()
		r.report.Between, servicePath = []string{r.v1.base, r.service.base}, "/v1/partner"
	}
	if err := requireAnswer(ctx, r.v1, "/v1/partner"); err != nil {
		return r.report, err
	}
	if err := requireAnswer(ctx, r.service, servicePath); err != nil {
		return r.report, err
	}
	if r.release = op.Latest; !r.twoServices() {
		if r.release, err = r.service.release(ctx); err != nil {
			return r.report, err
		}
	}
	return r.report, compare(r)
}

// twoServices reports whether two services' v1 are compared, instead of v1 and v2.
func (r *run) twoServices() bool { return r.v1 != r.service }

// requireAnswer returns an error if the service cannot be reached, or answers anything but a success, 400 or 500. Those
// two are reported where answers are compared.
func requireAnswer(ctx context.Context, s *service, path string) error {
	a, err := s.do(ctx, get(path))
	if err != nil || a.status/100 == 2 || a.status == http.StatusBadRequest || a.status == http.StatusInternalServerError {
		return err
	}
	hint := map[int]string{
		http.StatusUnauthorized: "the service rejects the key: ",
		http.StatusForbidden:    "the key needs the scope read: ",
		http.StatusNotFound:     "check that the URL is the service's, with release 2.1 or later; ",
	}[a.status]
	return fmt.Errorf("GET %s%s returned %d: %s%s", s.base, path, a.status, hint, message(a))
}

// advance reports the progress of one more client or user.
func (r *run) advance() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done++
	if r.Progress != nil {
		r.Progress(min(r.done, r.total), r.total) // users may have been added since total was counted
	}
}
