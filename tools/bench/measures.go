package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"partnerapi/domain"
	"partnerapi/platform/report"
)

// measures is the table of all that is measured: first what only reads, then what
// changes the data, and the memory last.
func (b *bench) measures() []measure {
	measures := slices.Concat(b.throughput(), b.transfers(), b.pages(), b.training(), b.found(), b.calls(), b.tokens())
	if older.measures != nil {
		measures = append(measures, older.measures(b)...)
	}
	return slices.Concat(measures, b.writes(), b.work(), b.reports(), b.frameworks(), b.syncs(), b.events(), []measure{
		{name: "peak resident memory of the service", bound: atMost(150), run: func(context.Context) figure {
			return memory(b.service.peakMB())
		}},
	})
}

// pathOf is the path of a client and of what it has.
func pathOf(client domain.ClientID, of string) string { return "/v2/clients/" + client.String() + of }

// throughput are requests a second beside those of the hand-written server.
func (b *bench) throughput() []measure {
	all := make([]string, len(b.data.clients))
	for i, id := range b.data.clients {
		all[i] = pathOf(id, "")
	}
	users := pathOf(b.data.clients[0], "/users?limit=")
	fresh := func(ctx context.Context) { check(b.data.db.ForceSummaries(ctx)) }
	return []measure{
		{name: "GET /v2/clients/{id}", bound: atLeast(0.9), needs: fresh, run: b.againstReference(all...)},
		{name: "client, with usual Gin middlewares: GET /v2/clients/{id}", bound: atLeast(1.3), needs: fresh,
			run: b.againstUsual("Accept-Encoding: gzip", all...)}, // as most libraries of HTTP ask
		{name: "client, with usual Gin middlewares, to a caller that takes no gzip", needs: fresh,
			run: b.againstUsual("Accept-Encoding: identity", all...)},
		{name: "GET /v2/clients?limit=100", bound: atLeast(1), needs: fresh,
			run: b.againstReference("/v2/clients?limit=100")},
		{name: "GET /v2/clients/{id}/users?limit=50", bound: atLeast(0.9), needs: fresh,
			run: b.againstReference(users + "50")},
		{name: "GET /v2/clients/{id}/users?limit=500", bound: atLeast(0.9), needs: fresh,
			run: b.againstReference(users + "500")},
	}
}

// transfers are an export of all the data, its import into an empty database, and the
// import of a made-up platform. They come before there are millions of mails.
func (b *bench) transfers() []measure {
	p := b.newPlatform()
	return []measure{
		{name: "export of all lines", needs: b.data.empty, run: b.moved("export", b.data.url, "first"), then: []measure{
			{name: "import into an empty database", run: b.moved("import", b.data.emptyURL(), "first")},
			{name: "import once more, which changes nothing", run: b.moved("import", b.data.emptyURL(), "first")},
			{name: "export of what was imported, to the same bytes", run: b.movedBack},
		}},
		{name: "import of a platform: its users and their clients", needs: b.data.empty, run: b.imported(p.objects),
			then: []measure{
				{name: "import of a platform: results in the order of their times", run: b.imported(p.results)},
				{name: "import of a platform: sent mails in the order of their times", run: b.imported(p.mails)},
			}},
	}
}

// pages are pages of v2 that nothing equals: of the largest client's policies, whose
// sign-off was counted before or is to be counted anew, and of users' mails.
func (b *bench) pages() []measure {
	r := always(b.get(pathOf(b.data.clients[0], "/policies")))
	name := fmt.Sprintf("v2 page of %d policies of %d users", policies, b.data.users)
	changed := func(ctx context.Context, _ int) {
		b.data.exec(ctx, "UPDATE policies SET counted_until = '-infinity' WHERE client_id = $1",
			b.data.clients[0])
	}
	return []measure{
		{name: name, needs: b.data.papers, run: b.page(policies, 500, r, nil)},
		{name: name + ", when all changed", bound: atMost(0.3), needs: b.data.papers,
			run: b.page(policies, 20, r, changed)},
		{name: fmt.Sprintf("v2 page of a user's mails, of %d", b.data.all*mailsEach), needs: b.data.mails, run: b.mailPages},
	}
}

// calls are calls of tools by agents, each beside its operation.
func (b *bench) calls() []measure {
	client := b.data.clients[0]
	return []measure{
		{name: "MCP tools/call of a client / GET", bound: atMost(2),
			run: b.call(3000, "clients_get", object{"client_id": client}, pathOf(client, ""))},
		{name: "MCP tools/call of a page of 100 users / GET", bound: atMost(2), run: b.call(1000, "users_list",
			object{"client_id": client, "limit": 100}, pathOf(client, "/users?limit=100"))},
	}
}

// writes are requests that change something, and reads of clients whose summaries are
// stale: for who polls a client once an hour, whose summary the background work
// refreshes ahead, and for who reads it first.
func (b *bench) writes() []measure {
	return []measure{
		{name: "GET /v2/clients/{id}, polled hourly / fresh", bound: atMost(2), run: b.stale("1 hour")},
		{name: "GET /v2/clients/{id}, first read of a stale summary / fresh", run: b.stale("0")},
		{name: "POST /v2/clients/{id}/users", run: b.each(300, b.newUser(), nil)},
		{name: "PATCH /v2/users/{id}, the role", run: b.ofUsers(500, 300, b.newRole)},
		{name: "POST /v2/clients/{id}/phishing/sends, 100 of them", run: b.ofUsers(5000, 50, b.newSends)},
	}
}

// work is what the background work and the command ingest do.
func (b *bench) work() []measure {
	return []measure{
		{name: "scheduled simulations sent", run: b.drain},
		{name: fmt.Sprintf("mails sent, one to each of %d clients / all to one", manyClients), bound: atLeast(0.8), run: b.manyMails},
		{name: "signals ingested", run: b.ingest},
	}
}

// reports are reports of each type in each format.
func (b *bench) reports() (measures []measure) {
	for _, typ := range domain.ReportTypes {
		for _, format := range []domain.ReportFormat{domain.PDF, domain.XLSX} {
			measures = append(measures, measure{
				name: fmt.Sprintf("report %s as %s", typ, format), bound: atMost(report.MakeWithin.Seconds()).asWork(),
				needs: b.data.papers, run: b.report(typ, format),
			})
		}
	}
	return measures
}

// frameworks are evaluations of stale assignments, as who lists them waits for them:
// of 1,000 to the collections of a client, and of ten to all users of the largest one;
// and the assignment of the framework with the most courses to all users.
func (b *bench) frameworks() []measure {
	a := &assigning{bench: b}
	toCollections := "SELECT 'collection', id FROM collections WHERE client_id = $1 AND starts_with(name, '" +
		evaluatedCollection + "')"
	return []measure{
		{name: fmt.Sprintf("%d framework assignments evaluated in one statement", evaluatedEach*evaluatedFrameworks),
			needs: b.data.parts, run: b.evaluate(b.data.clients[1], toCollections)},
		{name: fmt.Sprintf("%d framework assignments to %d users evaluated", evaluatedFrameworks, b.data.users),
			bound: atMost(3), run: b.evaluate(b.data.clients[0], "SELECT 'all', NULL::uuid")},
		{name: fmt.Sprintf("POST a framework to %d users", b.data.users), bound: atMost(3), run: a.assign, then: []measure{
			{name: "  the courses then given by the background work", run: a.given},
			{name: "  DELETE of that framework", run: a.removed},
		}},
	}
}

// syncs are a client's first sync and one in which nothing has changed, for which
// Google's directory is compared as a whole and Microsoft's sends changes.
func (b *bench) syncs() (measures []measure) {
	for _, of := range []domain.Directory{domain.Microsoft, domain.Google} {
		s := &syncing{bench: b, of: of}
		measures = append(measures, measure{
			name:  fmt.Sprintf("first sync of %d users with %s", b.data.users, of),
			bound: atMost(60).asWork(), run: s.first,
			then: []measure{{
				name:  fmt.Sprintf("unchanged sync of %d users with %s", b.data.users, of),
				bound: atMost(10).asWork(), run: s.unchanged,
			}},
		})
	}
	return measures
}

// events are pages of events, what an event adds to a write, and deliveries of events
// to few subscriptions and to many.
func (b *bench) events() (measures []measure) {
	types := fmt.Sprintf("&types=%s,%s", domain.ReportMade, domain.SyncStopped)
	for _, p := range []eventPage{
		{what: "the first"}, {what: "one in the middle", middle: true}, {what: "of two types", query: types},
		{what: "of a tenth of the clients", subset: true},
		{what: "of two types and a tenth of the clients", query: types, subset: true},
	} {
		measures = append(measures, measure{
			name:  fmt.Sprintf("v2 page of %d of %d events: %s", eventsShown, published, p.what),
			needs: b.data.publishedEvents, run: b.eventPage(p),
		})
	}
	measures = append(measures, measure{name: "PATCH a user, with its event / without", bound: atMost(1.1),
		run: b.beside("service-silent", b.eventCost)})
	for _, n := range []int{20, 200} {
		measures = append(measures, measure{name: fmt.Sprintf("deliveries over TLS to %d subscriptions", n),
			bound: atLeast(deliveriesGoal).asWork(), run: b.deliver(n)})
	}
	return measures
}

// wanted reports whether a measure, or one that goes on from it, is to be run.
func (b *bench) wanted(m measure) bool {
	return slices.ContainsFunc(strings.Split(b.only, "|"), func(text string) bool { return strings.Contains(m.name, text) }) ||
		slices.ContainsFunc(m.then, b.wanted)
}

// mailPages measures the page of the mails that a user was sent, each time of another
// user.
func (b *bench) mailPages(ctx context.Context) figure {
	readers := b.data.readers(ctx)
	return b.page(mailsShown, 2000, func(i int) []byte {
		return b.get(emailsPath(readers[i%len(readers)], 100))
	}, nil)(ctx)
}

// The mails that are asked for are those of 30 days, as v1 shows them.
const (
	mailsShown = 30
	mailsSince = "2026-01-11T00:00:00Z"
	mailsUntil = "2026-02-10T00:00:00Z"
	mailTypes  = "training-invite,phishing,phish-reminder,certificate,monthly-report"
)

func emailsPath(user domain.UserID, limit int) string {
	return fmt.Sprintf("/v2/users/%s/emails?limit=%d&since=%s&until=%s&message_types=%s", user, limit, mailsSince,
		mailsUntil, mailTypes)
}

// readers are users of any clients, in no order.
func (d *data) readers(ctx context.Context) []domain.UserID {
	return all[domain.UserID](ctx, d, "SELECT id FROM users ORDER BY random() LIMIT 1000")
}

// stale compares the read of a client whose summary is an hour old with that of one
// whose summary is fresh. It was polled until a time from now, and refreshed ahead.
func (b *bench) stale(until string) finder {
	client := func(i int) domain.ClientID { return b.data.clients[1+i%(len(b.data.clients)-1)] }
	next := func(i int) []byte { return b.get(pathOf(client(i), "")) }
	aged := func(age, until string) func(context.Context, int) {
		return func(ctx context.Context, i int) {
			b.data.exec(ctx, `UPDATE clients
				SET summarized_at = now() - $2::interval, refresh_until = now() + $3::interval WHERE id = $1`,
				client(i), age, until)
			must(b.data.db.RefreshAhead(ctx))
		}
	}
	return func(ctx context.Context) figure {
		return compared(ctx, b.times(500), lane{b.service.address, next, aged("1 hour", until)},
			lane{b.service.address, next, aged("0", "0")})
	}
}

// newUser makes users of the largest client.
func (b *bench) newUser() func(i int) []byte {
	began := time.Now().UnixNano()
	return func(i int) []byte {
		return request("POST", pathOf(b.data.clients[0], "/users"), b.writeKey, object{
			"email":      fmt.Sprintf("new-%d-%d@bench.example", began, i),
			"first_name": "New", "last_name": "User", "job_title": "Accountant",
		})
	}
}

// ofUsers is each, of requests that concern users of the largest client.
func (b *bench) ofUsers(n, times int, next func(users []domain.UserID, i int) []byte) finder {
	return func(ctx context.Context) figure {
		users := b.data.activeUsers(ctx, b.tenth(n))
		return b.each(times, func(i int) []byte { return next(users, i) }, nil)(ctx)
	}
}

// newRole changes a user's role, which moves the score.
func (b *bench) newRole(users []domain.UserID, i int) []byte {
	roles := []string{"finance", "hr", "standard"}
	return request("PATCH", "/v2/users/"+users[i%len(users)].String(), b.writeKey,
		object{"role": roles[(i/len(users)+i)%len(roles)]})
}

// newSends schedules 100 simulated mails, whose templates the service chooses. They
// are not due while anything is measured.
func (b *bench) newSends(users []domain.UserID, i int) []byte {
	from := i * sendsAtOnce % (len(users) - sendsAtOnce + 1)
	return b.sends(users[from:from+sendsAtOnce], time.Now().AddDate(1, 0, 0))
}
