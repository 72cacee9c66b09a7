package v1compat

import (
	"log/slog"
	"time"

	"partnerapi/db"
	"partnerapi/db/outbox"
	"partnerapi/domain"
	platformmail "partnerapi/platform/mail"
	"partnerapi/platform/phishing"
	"partnerapi/v2/v2test"
)

// sends asks for a mail of a template at a time, or for now.
func sends(user, template, at string) func(*actor) answer {
	return func(a *actor) answer { return a.send(a.someone(user), a.someone(template), at) }
}

// deliver sends what is due of the tenant's mails, as the service's worker does.
func deliver(a *actor) answer {
	sender, err := platformmail.Open("", a.T.TempDir())
	if err != nil {
		a.T.Fatal(err)
	}
	defer func() { _ = sender.Close() }()
	dispatch(a.Harness, sender, phishing.NewTokens([]byte("secret")))
	return answer{}
}

// dispatch sends the mails that are due, as the service does.
func dispatch(h *v2test.Harness, sender platformmail.Sender, tokens phishing.Tokens) (outcomes []platformmail.Outcome) {
	h.T.Helper()
	composer, err := platformmail.NewComposer(h.URL, "")
	if err != nil {
		h.T.Fatal(err)
	}
	mails := platformmail.NewDispatcher(h.DB, sender, 1, map[db.OutboxKind]platformmail.Writer{
		db.RequestedMail: platformmail.NewRequests(h.DB, composer, nil),
		db.SimulatedMail: phishing.NewSimulations(h.DB, phishing.NewComposer(h.URL, tokens)),
	}, slog.New(slog.DiscardHandler), nil, nil)
	leases, err := outbox.ClaimMails(h.T.Context(), h.DB, new(outbox.MailTurns), 1000, time.Minute)
	if err != nil {
		h.T.Fatal(err)
	}
	for _, l := range leases {
		outcome, err := mails.Send(h.T.Context(), h.T.Context(), l)
		if err != nil {
			h.T.Fatal(err)
		}
		outcomes = append(outcomes, outcome)
	}
	return outcomes
}

// remember gives a name to the result of a user's latest mail.
func remember(name, user string) func(*actor) answer {
	return each(func(a *actor) {
		var id domain.ResultID
		err := a.DB.SQL().QueryRow("SELECT id FROM phishing_results WHERE user_id = $1 ORDER BY created_at DESC LIMIT 1", a.known[user]).Scan(&id)
		if err != nil {
			a.T.Fatal(err)
		}
		a.known[name] = id.UUID()
	})
}

func resultsOf(user string) func(*actor) answer {
	return func(a *actor) answer { return a.results(a.someone(user)) }
}

// statuses are results by their states alone.
func statuses(list ...string) outcome {
	out := outcome{objects: []fields{}}
	for _, status := range list {
		out.objects = append(out.objects, fields{"status": status})
	}
	return out
}

var phishingSteps = []step{
	{"the service's templates", each(func(a *actor) {
		if err := a.DB.LoadTemplates(a.T.Context()); err != nil {
			a.T.Fatal(err)
		}
		own, err := db.OwnTemplates()
		if err != nil {
			a.T.Fatal(err)
		}
		a.known["first"], a.known["second"] = own[0].ID.UUID(), own[1].ID.UUID()
	}), done},
	{"a mail at once", sends("Ada", "first", ""), shows(fields{"at": noon.Add(7 * time.Second).Unix()})},
	{"is on its way", resultsOf("Ada"), shows()},
	{"one", remember("one", "Ada"), done},
	{"it goes out", deliver, done},
	{"and was sent", resultsOf("Ada"), shows(fields{"status": "Sent", "at": noon.Add(10 * time.Second).Unix()})},
	{"a mail for later", sends("Ada", "second", "2026-06-16T09:00:00Z"), shows(fields{"at": time.Date(2026, 6, 16, 9, 0, 0, 0, time.UTC).Unix()})},
	{"two", remember("two", "Ada"), done},
	{"one for the past", sends("Bob", "second", "2026-06-14T09:00:00Z"), shows(fields{"at": noon.Add(14 * time.Second).Unix()})},
	{"three", remember("three", "Bob"), done},
	{"what is due goes out", deliver, done},
	{"the later one waits", resultsOf("Ada"), statuses("Sent")},
	{"Bob has his", resultsOf("Bob"), statuses("Sent")},

	{"it is opened", hears(domain.PhishingOpened, "result_id", "one"), done},
	{"so it says", resultsOf("Ada"), statuses("Opened")},
	{"the next day", passes(day), done},
	{"the later one goes out", deliver, done},
	{"newest first", resultsOf("Ada"), statuses("Sent", "Opened")},
	{"it is clicked", hears(domain.PhishingClicked, "result_id", "two"), done},
	{"further on it says", resultsOf("Ada"), statuses("Clicked", "Opened")},
	{"opening it is late", hears(domain.PhishingOpened, "result_id", "two"), done},
	{"nothing goes back", resultsOf("Ada"), statuses("Clicked", "Opened")},
	{"credentials are a click", hears(domain.CredentialsSubmitted, "result_id", "one"), done},
	{"for v1", resultsOf("Ada"), statuses("Clicked", "Clicked")},
	{"a report is none", hears(domain.PhishingReported, "result_id", "three"), done},
	{"and is beside it", resultsOf("Bob"), statuses("Sent")},
	{"an attachment is one", hears(domain.AttachmentOpened, "result_id", "three"), done},
	{"too", resultsOf("Bob"), statuses("Clicked")},

	{"no template", sends("Ada", "none", ""), refuses(domain.InvalidRequest)},
	{"no time", sends("Ada", "first", "soon"), refuses(domain.InvalidRequest)},
	{"nobody", sends("nobody", "first", ""), refuses(domain.NotFound)},
	{"a stranger's user", sends("their user", "first", ""), refuses(domain.NotFound)},
	{"Bob is inactive", func(a *actor) answer { return a.updateUser(a.known["Bob"], fields{"status": "inactive"}) }, done},
	{"and gets nothing", sends("Bob", "first", ""), refuses(domain.InvalidRequest)},
	{"but has what he had", resultsOf("Bob"), statuses("Clicked")},
	{"nobody's results", resultsOf("nobody"), refuses(domain.NotFound)},
	{"a stranger's user's", resultsOf("their user"), refuses(domain.NotFound)},
}

func phishingViews(a *actor, x surface) map[string]answer {
	shown := map[string]answer{}
	for _, user := range []string{"Ada", "Bob"} {
		if id, ok := a.known[user]; ok {
			shown["results of "+user], shown["mails to "+user] = x.results(id), x.emails(id, nil, "")
		}
	}
	if id, ok := a.known["A"]; ok {
		shown["users"] = x.users(id, "all")
	}
	return shown
}
