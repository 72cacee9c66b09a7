package parity

import (
	"context"
	"testing"
	"time"

	"partnerapi/db/dbtest"
	"partnerapi/db/seed"
	"partnerapi/v1compat"
	"partnerapi/v1compat/v1test"
	v2 "partnerapi/v2"
	"partnerapi/v2/v2test"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// unhurried is a Wait that does not wait.
func unhurried(ctx context.Context, _ time.Duration) error { return ctx.Err() }

// demo is a service with the demonstration.
func demo(t *testing.T) *v1test.Service {
	t.Helper()
	s := v1test.Start(t, v2test.Options{Demo: true})
	if _, err := seed.Demo(t.Context(), s.DB); err != nil {
		t.Fatal(err)
	}
	return s
}

// config compares the service that is at an address.
func config(url, key string, now time.Time) Config {
	return Config{
		URL: url, Key: key, Facade: v1compat.New(v2.New(nil, nil), v1compat.Config{}), Wait: unhurried,
		Now: func() time.Time { return now },
	}
}

func TestDemo(t *testing.T) {
	s := demo(t)
	c := config(s.URL, "pk_demo_subset", s.Clock.Now())
	r, err := Compare(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.WriteText(t.Output()); err != nil {
		t.Fatal(err)
	}
	if n := r.Different(); n > 0 {
		t.Errorf("%d differences", n)
	}
}
