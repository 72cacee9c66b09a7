package transfer_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"partnerapi/domain"
)

// happening is a signal by the numbers of what it names, so that the same can
// happen in two offices.
type happening struct {
	kind         domain.SignalType
	user, object int
	at           time.Time
	more         []any
	narrow       bool // of a classification: it names the client
}

// random is something that may happen in an office of some users. What happens
// to mails does so in one day: of a click that is reported after the mail's
// credentials no time is kept, and the score goes by days.
func random(r *rand.Rand, users int) happening {
	h := happening{user: r.IntN(users), object: r.IntN(2), at: noon.Add(-time.Duration(r.IntN(40*24)) * time.Hour)}
	mails := []domain.SignalType{domain.PhishingOpened, domain.PhishingClicked, domain.PhishingReported, domain.CredentialsSubmitted, domain.AttachmentOpened}
	switch r.IntN(10) {
	case 0, 1, 2:
		h.kind = mails[r.IntN(len(mails))]
		h.at = noon.Add(-time.Duration(r.IntN(600)) * time.Minute)
	case 3:
		h.kind = []domain.SignalType{domain.CourseCompleted, domain.CourseStarted}[r.IntN(2)]
		h.object = []int{1, 2, 3, 7, 8}[r.IntN(5)]
	case 4:
		h.kind, h.more = domain.PolicySigned, []any{"version", 1 + r.IntN(3)}
	case 5:
		h.kind = domain.PolicyPublished
	case 6:
		h.kind, h.object = domain.ExposureFound, r.IntN(3)
		if r.IntN(2) == 0 {
			h.more = []any{"severity", domain.SeverityLow.Values()[r.IntN(4)], "data_classes", []string{fmt.Sprint("class ", r.IntN(3))}}
		}
	case 7:
		h.kind, h.object = domain.ExposureResolved, r.IntN(3)
	case 8:
		h.kind, h.more = domain.EmailReported, []any{"subject", fmt.Sprint(r.IntN(2)), "sender", "who@example.com"}
	case 9:
		h.kind, h.more = domain.EmailClassified, []any{"classification", domain.SentClass("").Values()[r.IntN(3)]}
		if r.IntN(2) == 0 {
			h.more = append(h.more, "mailbox_action", domain.MailboxAction("").Values()[r.IntN(3)])
		}
		h.narrow = r.IntN(2) == 0
	}
	return h
}

// line is the happening as a signal of an office.
func (h happening) line(id string, o *office) string {
	more := slices.Clone(h.more)
	switch h.kind {
	case domain.CourseStarted, domain.CourseCompleted:
		more = append(more, "user_id", o.users[h.user], "course_id", course(byte(h.object)))
	case domain.PolicySigned:
		more = append(more, "user_id", o.users[h.user], "policy_id", o.policies[h.object])
	case domain.PolicyPublished:
		more = append(more, "policy_id", o.policies[h.object])
	case domain.ExposureFound, domain.ExposureResolved:
		more = append(more, "user_id", o.users[h.user], "breach_name", []string{"Forum", "List", "Клиника"}[h.object])
	case domain.EmailReported: // of a simulation that was sent to another user, too
		more = append(more, "user_id", o.users[h.user], "message_id", o.message(h.user, h.object))
	case domain.EmailClassified:
		more = append(more, "message_id", o.message(h.user, h.object))
		if h.narrow {
			more = append(more, "client_id", o.client)
		}
	default:
		more = append(more, "result_id", o.results[2*h.user+h.object])
	}
	return signalLine(id, h.kind, h.at, more...)
}

// message is the Message-ID of one of three mails of an office: two that are
// real, and one that the first user was sent as a simulation.
func (o *office) message(user, n int) string {
	if user == 1 {
		return "<" + o.results[0].UUID() + "@partner.example>"
	}
	return fmt.Sprintf("<%d@%s>", n, o.client)
}

// shownOfOffice is what there is of an office that must not depend on the order of
// signals.
const shownOfOffice = `
	SELECT concat_ws(E'\n',
		(SELECT string_agg(concat_ws(' ', email, score, next_due_on, next_course_id, phished_sent, phished_clicked, phished_sent_year, phished_clicked_year),
			E'\n' ORDER BY email) FROM users WHERE client_id = $1),
		(SELECT string_agg(concat_ws(' ', u.email, r.status, r.reported, r.automated), E'\n' ORDER BY email, r.id)
			FROM phishing_results AS r JOIN users AS u ON u.id = r.user_id WHERE r.client_id = $1),
		(SELECT concat_ws(' ', sent, opened, clicked, reported, credentials_submitted, attachments_opened) FROM phishing_days WHERE client_id = $1),
		(SELECT string_agg(concat_ws(' ', u.email, a.course_id, a.round, a.position, a.assigned_at, a.due_on, a.completed_at,
			CASE WHEN a.completed_at IS NULL THEN a.started_at END), E'\n' ORDER BY email, course_id, round)
			FROM assignments AS a JOIN users AS u ON u.id = a.user_id WHERE a.client_id = $1),
		(SELECT string_agg(concat_ws(' ', version, reviewed_at), E'\n' ORDER BY id) FROM policies WHERE client_id = $1),
		(SELECT string_agg(concat_ws(' ', u.email, e.type, n), E'\n' ORDER BY email, e.type)
			FROM (SELECT user_id, type, count(*) AS n FROM events WHERE type IN ('dark_web.exposure.found', 'training.assignment.completed', 'phishing.email.reported') GROUP BY user_id, type) AS e
			JOIN users AS u ON u.id = e.user_id WHERE u.client_id = $1),
		(SELECT string_agg(concat_ws(' ', u.email, s.version, s.signed_at), E'\n' ORDER BY policy_id, version, email)
			FROM policy_signatures AS s JOIN users AS u ON u.id = s.user_id WHERE s.client_id = $1),
		(SELECT string_agg(concat_ws(' ', u.email, e.subject, e.classification, e.mailbox_action, e.reported_at, e.classified_at), E'\n' ORDER BY email, reported_at, subject)
			FROM reported_emails AS e JOIN users AS u ON u.id = e.user_id WHERE e.client_id = $1),
		(SELECT string_agg(concat_ws(' ', u.email, e.breach_name, e.severity, e.data_classes, e.first_seen_at, e.resolved_at), E'\n' ORDER BY email, breach_name)
			FROM exposures AS e JOIN users AS u ON u.id = e.user_id WHERE e.client_id = $1))`

// everything is all that changes when something happens in an office.
const everything = `
	SELECT concat_ws(E'\n',
		(SELECT string_agg(u::text, E'\n' ORDER BY id) FROM users AS u WHERE client_id = $1),
		(SELECT string_agg(r::text, E'\n' ORDER BY user_id) FROM user_risks AS r WHERE client_id = $1),
		(SELECT string_agg(r::text, E'\n' ORDER BY id) FROM phishing_results AS r WHERE client_id = $1),
		(SELECT string_agg(p::text, E'\n' ORDER BY day) FROM phishing_days AS p WHERE client_id = $1),
		(SELECT string_agg(p::text, E'\n' ORDER BY id) FROM policies AS p WHERE client_id = $1),
		(SELECT string_agg(e::text, E'\n' ORDER BY id) FROM reported_emails AS e WHERE client_id = $1),
		(SELECT string_agg(e::text, E'\n' ORDER BY user_id, breach_name) FROM exposures AS e WHERE client_id = $1),
		(SELECT string_agg(e::text, E'\n' ORDER BY id) FROM events AS e WHERE client_id = $1))`

// recounted are the counters of a day as its mails have them.
const recounted = `
	SELECT concat_ws(' ', count(*), count(coalesce(opened_at, clicked_at, attachment_opened_at, credentials_submitted_at)),
		count(coalesce(clicked_at, attachment_opened_at, credentials_submitted_at)),
		count(*) FILTER (WHERE reported), count(credentials_submitted_at), count(attachment_opened_at))
	FROM phishing_results WHERE client_id = $1`

const counted = `
	SELECT concat_ws(' ', sent, opened, clicked, reported, credentials_submitted, attachments_opened) FROM phishing_days WHERE client_id = $1`

// differing are the lines of two texts that only one of them has.
func differing(a, b string) string {
	var out []string
	for _, side := range [][2]string{{a, b}, {b, a}} {
		for text := range strings.Lines(side[0]) {
			if !strings.Contains(side[1], strings.TrimSuffix(text, "\n")) {
				out = append(out, text)
			}
		}
		out = append(out, "--\n")
	}
	return strings.Join(out, "")
}
