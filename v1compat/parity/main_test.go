package parity

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/dbtest"
	"partnerapi/db/seed"
	"partnerapi/domain"
	"partnerapi/v1compat"
	"partnerapi/v1compat/v1test"
	v2 "partnerapi/v2"
	"partnerapi/v2/v2test"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// unhurried is a Wait that does not wait.
func unhurried(ctx context.Context, _ time.Duration) error { return ctx.Err() }

// demoSchema is the tables with the demonstration in them. The key is of this process:
// nobody else has this binary's demonstration.
var demoSchema = dbtest.Schema{Name: "paritydemo", Key: rand.Text(), Apply: func(ctx context.Context, url string) (err error) {
	if err := v1test.Schema.Apply(ctx, url); err != nil {
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
		URL: url, Key: key, Facade: v1compat.New(v2.New(nil, nil), v1compat.Config{}), Wait: unhurried,
		Now: func() time.Time { return now },
	}
}

// same wants both sides to say the same.
func same(t *testing.T, c Config) *Report {
	t.Helper()
	r, err := Compare(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if n := r.Different(); n > 0 {
		_ = r.WriteText(t.Output())
		t.Errorf("%d differences", n)
	}
	return r
}

// TestSample: both versions say the same of a sample of the demonstration, in which
// each of v1's operations that read is compared.
func TestSample(t *testing.T) {
	t.Parallel()
	s := demo(t)
	c := config(s.URL, "pk_demo_subset", s.Clock.Now())
	c.Sample = 2
	r := same(t, c)
	compared := map[string]int{}
	for _, o := range r.Operations {
		compared[o.Operation] = o.Compared
	}
	for _, reading := range c.Facade.Readings() {
		if compared[operationOf(reading)] == 0 {
			t.Errorf("nothing of %s was compared", operationOf(reading))
		}
	}
}
