package main

import (
	"context"
	"os"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"partnerapi/cmd/internal/cli"
	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/platform/transfer"
)

// whole reads or writes all data.
func (b *bench) whole() []measure {
	return []measure{
		{name: "daily refresh of all users", bound: atMost(5 * 60), run: b.refresh},
		{name: "export of all lines", run: func(context.Context) figure {
			got := inChild[transfer.Report](b, "export", params{File: os.DevNull})
			return rate(got.Result.Lines, got.Took).about(", %d lines in %s", got.Result.Lines, rounded(got.Took)).in(got.peak)
		}},
	}
}

// refreshDaily is a child that runs the daily refresh.
func refreshDaily(ctx context.Context, d *db.DB, p params) bool {
	cli.RelaxGC()
	return must(d.DailyRefresh(ctx, domain.DateOf(p.Now), nil))
}

// refresh measures the daily refresh of the day after the last one, 50 reads a second before and during it, and the list
// of clients by risk after it.
func (b *bench) refresh(ctx context.Context) figure {
	check(b.data.db.ForceSummaries(ctx))
	var reads []request
	for i, user := range b.data.randomUsers(ctx) {
		client := b.data.clients[i%len(b.data.clients)]
		for _, path := range []string{"/v2/users/" + user.String(), "/v2/users/" + user.String() + "/risk", pathOf(client),
			pathOf(client, "/users?limit=50"), pathOf(client, "/phishing/results?limit=50")} {
			reads = append(reads, b.get(path))
		}
	}
	p99 := func(over <-chan time.Time) float64 {
		m := attack(b.service.targeter(reads), vegeta.Rate{Freq: 50, Per: time.Second}, over, vegeta.DefaultMaxWorkers)
		return m.Latencies.P99.Seconds()
	}
	before := p99(time.After(time.Duration(b.times(30)) * time.Second))
	last := first[domain.Date](ctx, b.data, "SELECT greatest(max(day), current_date - 1) FROM daily_refreshes")
	var got done[bool]
	ended, over := make(chan error, 1), make(chan time.Time)
	go func() {
		defer close(over)
		ended <- try(func() { got = inChild[bool](b, "refresh", params{Now: last.AddDays(1).Time().Add(time.Hour)}) })
	}()
	during := p99(over)
	if check(<-ended); !got.Result {
		fail("the refresh is done")
	}
	byRisk := always(b.get("/v2/clients?sort=risk_score&limit=50"))
	right := took(b.service.send(byRisk(0)).took)
	stale := b.each(ctx, 3, byRisk, func() { b.data.exec(ctx, "UPDATE clients SET summarized_at = now() - interval '1 hour'") })
	return took(got.Took).about(", %d of them", b.data.all).in(got.peak).
		and("p99 of reads meanwhile / before", atMost(2), compare([]float64{during}, []float64{before}, seconds)).
		and("clients by risk right after it", atMost(1), right).and("clients by risk, all summaries stale", bound{}, stale)
}
