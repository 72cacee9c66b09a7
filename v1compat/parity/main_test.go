package parity

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/dbtest"
	"partnerapi/db/seed"
	"partnerapi/domain"
	"partnerapi/idmap/idmaptest"
	"partnerapi/v1compat"
	"partnerapi/v1compat/v1test"
	"partnerapi/v2/v2test"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// unhurried is a Wait that does not wait.
func unhurried(ctx context.Context, _ time.Duration) error { return ctx.Err() }

// demoSchema is the tables with the demonstration in them. The key is of this process:
// no other process has this binary's demonstration.
var demoSchema = dbtest.Schema{Name: "paritydemo", Key: rand.Text(), Apply: func(ctx context.Context, url string) (err error) {
	if err := idmaptest.Schema.Apply(ctx, url); err != nil {
		return err
	}
	d, err := db.Open(url, db.WithClock(domain.NewManualClock(v2test.Noon)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	_, err = seed.Demo(ctx, d)
	return err
}}

// demo is a service with the demonstration.
func demo(t *testing.T) *v1test.Service {
	t.Helper()
	return v1test.Start(t, v2test.Options{Demo: true, Schema: demoSchema})
}

// config compares the service that is at an address.
func config(url, key string, now time.Time) Config {
	return Config{
		URL: url, Key: key, Facade: v1compat.Declare(v1compat.Config{}), Wait: unhurried,
		Now: func() time.Time { return now },
	}
}

// compared compares, which must come to its end, and returns the report and its text.
func compared(t *testing.T, c Config) (*Report, string) {
	t.Helper()
	r, err := Compare(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r, text(r)
}

// same compares, and wants no difference.
func same(t *testing.T, c Config) *Report {
	t.Helper()
	r, said := compared(t, c)
	if n := r.Different(); n > 0 {
		t.Errorf("%d differences:\n%s", n, said)
	}
	return r
}

func text(r *Report) string {
	var b strings.Builder
	_ = r.WriteText(&b)
	return b.String()
}

// lacks fails the test for each part that is not in a text.
func lacks(t *testing.T, said string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(said, part) {
			t.Errorf("lacks %q:\n%s", part, said)
		}
	}
}

// differences are those of an operation in a field.
func differences(r *Report, operation, field string) (found []Difference) {
	for _, o := range r.Operations {
		for _, d := range o.Differences {
			if o.Operation == operation && d.Field == field {
				found = append(found, d)
			}
		}
	}
	return found
}

// count is the number of values of an operation that were compared.
func count(r *Report, operation string) (n int) {
	for _, o := range r.Operations {
		if o.Operation == operation {
			n = o.Compared
		}
	}
	return n
}

// TestSample: both versions say the same of a sample of the demonstration, in which
// each of v1's operations that read is compared.
func TestSample(t *testing.T) {
	t.Parallel()
	s := demo(t)
	c := config(s.URL, "pk_demo_subset", s.Clock.Now())
	c.Sample = 2
	r := same(t, c)
	for _, reader := range c.Facade.Readers() {
		if count(r, operationOf(reader)) == 0 {
			t.Errorf("nothing of %s was compared", operationOf(reader))
		}
	}
}
