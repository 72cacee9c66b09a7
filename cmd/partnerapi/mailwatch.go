package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"partnerapi/domain"
	"partnerapi/platform/lease"
	"partnerapi/platform/mail"
)

// mailServerEvery is how often the mail server is asked whether it takes mail. With the
// 20 seconds that it may take to answer, scrapes and rules each minute, and the 2 minutes
// of the alert, an operator knows within 5 minutes.
const mailServerEvery = 30 * time.Second

// mailWatch is the server that mail is handed to, as an operator watches it: also
// while no mail is due. Nil is none.
type mailWatch struct {
	up  prometheus.Gauge
	log *slog.Logger
	// check connects as for a mail, and sends none.
	check func(context.Context) (string, error)
	away  bool
}

// newMailWatch watches the server of a sender; nil for a sender that has none.
func newMailWatch(sender mail.Sender, log *slog.Logger) *mailWatch {
	server, ok := sender.(interface {
		Check(context.Context) (string, error)
	})
	if !ok {
		return nil
	}
	up := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "partnerapi_mail_server_up",
		Help: "1 where the mail server let this process in when it was last asked, else 0.",
	})
	up.Set(1) // until it is asked
	return &mailWatch{up: up, log: log, check: server.Check}
}

// watch asks now and then, until ctx ends.
func (m *mailWatch) watch(ctx context.Context) {
	if m == nil {
		return
	}
	lease.NewLoop(m.log, "ask the mail server", mailServerEvery, func(ctx context.Context) (time.Duration, error) {
		m.ask(ctx)
		return mailServerEvery, nil
	}).Run(ctx)
}

// ask connects once, and logs what has changed.
func (m *mailWatch) ask(ctx context.Context) {
	_, err := domain.RecoverValue(ctx, m.log, "ask the mail server", func() (string, error) { return m.check(ctx) })
	switch {
	case ctx.Err() != nil:
	case err != nil:
		m.up.Set(0)
		if !m.away {
			m.log.WarnContext(ctx, "the mail server cannot be used; mail waits", "error", err)
		}
		m.away = true
	default:
		m.up.Set(1)
		if m.away {
			m.log.InfoContext(ctx, "the mail server can be used again")
		}
		m.away = false
	}
}
