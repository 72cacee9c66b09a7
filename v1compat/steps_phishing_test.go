package v1compat

import (
	"log/slog"
	"time"

	"partnerapi/db"
	"partnerapi/db/outbox"
	"partnerapi/domain"
	"partnerapi/idmap"
	platformmail "partnerapi/platform/mail"
	"partnerapi/platform/phishing"
	"partnerapi/v2/v2test"
)

// sends asks for a mail of a template at a time, or for now.
func sends(user, template, at string) func(*caller) answer {
	return func(c *caller) answer { return c.send(user, template, at) }
}

// deliver sends what is due of the tenant's mails, as the service's worker does.
func deliver(c *caller) answer {
	sender, err := platformmail.Open("", c.T.TempDir())
	if err != nil {
		c.T.Fatal(err)
	}
	defer func() { _ = sender.Close() }()
	dispatch(c.Harness, sender, phishing.NewTokens([]byte("secret")))
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
func remember(name, user string) func(*caller) answer {
	return happens(func(c *caller) {
		var id domain.ResultID
		err := c.DB.SQL().QueryRow("SELECT id FROM phishing_results WHERE user_id = $1 ORDER BY created_at DESC LIMIT 1", c.userID(user)).Scan(&id)
		if err != nil {
			c.T.Fatal(err)
		}
		c.known[name] = id.UUID()
	})
}

func resultsOf(user string) func(*caller) answer {
	return func(c *caller) answer { return c.get("phishing", "/v1/users/"+c.known[user]+"/phishing?limit=50") }
}

// statuses are results by their states alone.
func statuses(list ...string) outcome { return each("status", list...) }

var phishingSteps = []step{
	{"the service's templates", happens(func(c *caller) {
		if err := c.DB.LoadTemplates(c.T.Context()); err != nil {
			c.T.Fatal(err)
		}
		own, err := db.OwnTemplates()
		if err != nil {
			c.T.Fatal(err)
		}
		for i, name := range []string{"first", "second"} {
			c.known[name] = c.numberOf(idmap.Template, idmap.UUID(own[i].ID))
		}
	}), done},
	{"a mail at once", sends("Ada", "first", ""), shows(fields{"at": stamp(noon.Add(7 * time.Second))})},
	{"is on its way", resultsOf("Ada"), shows()},
	{"one", remember("one", "Ada"), done},
	{"it goes out", deliver, done},
	{"and was sent", resultsOf("Ada"), shows(fields{"status": "Sent", "status_date": stamp(noon.Add(10 * time.Second))})},
	{"a mail for later", sends("Ada", "second", "2026-06-16T09:00:00Z"), shows(fields{"at": "2026-06-16T09:00:00Z"})},
	{"two", remember("two", "Ada"), done},
	{"one for the past", sends("Bob", "second", "2026-06-14T09:00:00Z"), shows(fields{"at": stamp(noon.Add(14 * time.Second))})},
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

	{"Bob is inactive", changes("Bob", fields{"status": "inactive"}), done},
	{"and gets nothing", sends("Bob", "first", ""), refuses(domain.InvalidRequest)},
	{"but has what he had", resultsOf("Bob"), statuses("Clicked")},
}
