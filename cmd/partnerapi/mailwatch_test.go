package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// TestMailServerIsWatched: a mail server that is away is a metric and one line, also
// while no mail is due; files are no server.
func TestMailServerIsWatched(t *testing.T) {
	t.Parallel()
	var said bytes.Buffer
	var refusal error
	m := &mailWatch{
		up: prometheus.NewGauge(prometheus.GaugeOpts{Name: "x"}), log: slog.New(slog.NewTextHandler(&said, nil)),
		check: func(context.Context) (string, error) { return "", refusal },
	}
	for _, step := range []struct {
		err error
		up  float64
	}{{nil, 1}, {errors.New("refused"), 0}, {errors.New("refused"), 0}, {nil, 1}, {nil, 1}} {
		refusal = step.err
		m.probe(t.Context())
		if got := testutil.ToFloat64(m.up); got != step.up {
			t.Errorf("after %v it is %v", step.err, got)
		}
	}
	if strings.Count(said.String(), "cannot be used") != 1 || strings.Count(said.String(), "can be used again") != 1 {
		t.Errorf("logs %s", &said)
	}
	if newMailWatch(nil, nil) != nil {
		t.Error("a sender without a server has one")
	}
}
