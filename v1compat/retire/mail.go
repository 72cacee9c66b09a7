package retire

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"partnerapi/db/pg"
	"partnerapi/domain"
	"partnerapi/v1compat/usage"
)

// The kinds of emails that notify partners of the end of v1.
const (
	AnnounceMail domain.MessageType = "v1-announce"
	PostponeMail domain.MessageType = "v1-postpone"
	RemindMail   domain.MessageType = "v1-remind"
)

// Bounds of what an email lists.
const (
	maxMailKeys       = 20
	maxMailOperations = 15 // of a key
	maxMailAgents     = 3  // of an operation, and of a key in its table
)

// MailCause returns the cause of emails about the announcement and its sunset. An address gets each email once per
// cause.
func (a Announcement) MailCause() string {
	return FormatTime(a.Announced) + " " + FormatTime(a.Sunset)
}

// Notice returns an email about the announcement to a partner. keys is the report of the partner's keys for the last 30
// days, of which the email lists those that still call v1; guides maps v1's operations to paths of the migration guide.
func (a Announcement) Notice(kind domain.MessageType, keys []*usage.Key, guides map[string]string, now time.Time) domain.Notice {
	layout := "2 January 2006"
	if sunset := a.Sunset.UTC(); !domain.DateOf(sunset).Time().Equal(sunset) {
		layout = "2 January 2006, 15:04"
	}
	day, deadline := a.Sunset.UTC().Format(layout), "before that day"
	n := domain.Notice{
		Subject: "Version 1 of the API ends on " + day, Action: "Read the migration guide", Path: "/docs/guide/moving-from-v1",
		Facts:      []domain.NoticeFact{{Label: "Version 1 ends on", Value: day + " (UTC)"}, {Label: "Days left", Value: a.daysLeft(now)}},
		Paragraphs: []string{fmt.Sprintf("Version 1 of the API ends on %s (UTC). From then on, requests to version 1 may fail with 410 Gone.", day)},
	}
	if !now.Before(a.Sunset) {
		deadline = "now"
		n.Subject = "Version 1 of the API was to end on " + day
		n.Facts[0].Label = "Version 1 was to end on"
		n.Paragraphs[0] = n.Subject + " (UTC). Requests to version 1 may fail with 410 Gone at any time."
	}
	switch kind {
	case PostponeMail:
		n.Subject = "The end of API version 1 has been postponed to " + day
		n.Paragraphs[0] = "The end of API version 1 has been postponed. " + n.Paragraphs[0]
	case RemindMail:
		n.Subject = "Reminder: v" + strings.TrimPrefix(n.Subject, "V")
	}
	keys = slices.DeleteFunc(slices.Clone(keys), func(k *usage.Key) bool { return !stillCalls(k) })
	if len(keys) == 0 {
		n.Paragraphs = append(n.Paragraphs, "As far as the service can tell, your API keys no longer call version 1, so you have nothing to migrate.")
		return n
	}
	n.Paragraphs = append(n.Paragraphs, "Your API keys have called version 1 in the last 30 days. Please move the programs that use them to version 2 "+deadline+".")
	n.PointsHeading = "Here is what each key called in version 1 and what to call instead:"
	for _, k := range keys[:min(len(keys), maxMailKeys)] {
		n.Points = append(n.Points, keyPoints(k, guides)...)
		n.Tables = append(n.Tables, keyTable(k, guides))
	}
	if more := len(keys) - maxMailKeys; more > 0 {
		n.After = append(n.After, fmt.Sprintf("Other API keys that have called version 1: %d.", more))
	}
	n.After = append(n.After, "To list a key's calls by day, call GET /v1/usage with that key. For the replacement of each operation, see "+domain.PublicURL+"/docs/migrating")
	return n
}

// daysLeft returns the number of days until the sunset as text.
func (a Announcement) daysLeft(now time.Time) string {
	days := int(domain.DateOf(a.Sunset).Time().Sub(domain.DateOf(now).Time()) / (24 * time.Hour))
	switch {
	case !now.Before(a.Sunset):
		return "none"
	case days == 0:
		return "less than one"
	}
	return strconv.Itoa(days)
}

// stillCalls reports whether a live key called v1 in the report's days, and neither moved nor stopped (usage.Verdict).
func stillCalls(k *usage.Key) bool {
	return k.Live && k.Calls > 0 && k.Verdict != usage.Moved && k.Verdict != usage.Stopped
}

// mailedOperations returns the operations that a key called in the days of the report, the most called first, up to
// maxMailOperations, and the number of the others.
func mailedOperations(k *usage.Key) (called []usage.Operation, more int) {
	called = slices.DeleteFunc(slices.Clone(k.Operations), func(o usage.Operation) bool { return o.Calls == 0 })
	slices.SortStableFunc(called, func(a, b usage.Operation) int { return cmp.Compare(b.Calls, a.Calls) })
	n := min(len(called), maxMailOperations)
	return called[:n], len(called) - n
}

// keyName returns the name of a key with its prefix.
func keyName(k *usage.Key) string { return fmt.Sprintf("%s (%s)", domain.Visible(k.Name), k.Prefix) }

// keyPoints lists the operations of a key for the plain text, each with its user agents and its successor.
func keyPoints(k *usage.Key, guides map[string]string) (points []string) {
	called, more := mailedOperations(k)
	name := keyName(k) + ": "
	for _, o := range called {
		calls := count(o.Calls) + " calls"
		if o.Calls == 1 {
			calls = "1 call"
		}
		if agents := mailedAgents(o.UserAgents); agents != "" {
			calls += " by " + agents
		}
		instead := ""
		if o.Successor != "" {
			instead = fmt.Sprintf("; call %s instead: %s%s", o.Successor, domain.PublicURL, guides[o.Operation])
		}
		points = append(points, name+o.Operation+", "+calls+instead)
	}
	if more > 0 {
		points = append(points, fmt.Sprintf("%sother operations called: %d", name, more))
	}
	return points
}

// keyTable returns the table of the operations of a key, with links to the guide of each.
func keyTable(k *usage.Key, guides map[string]string) domain.NoticeTable {
	called, more := mailedOperations(k)
	t := domain.NoticeTable{Heading: keyName(k), Columns: []string{"Operation", "Calls in 30 days", "Call instead"}}
	var agents []string
	for _, o := range called {
		instead := domain.NoticeCell{Text: "none"}
		if o.Successor != "" {
			instead = domain.NoticeCell{Text: o.Successor, Path: guides[o.Operation]}
		}
		t.Rows = append(t.Rows, []domain.NoticeCell{{Text: o.Operation}, {Text: count(o.Calls)}, instead})
		for _, agent := range o.UserAgents {
			if !slices.Contains(agents, agent) {
				agents = append(agents, agent)
			}
		}
	}
	var notes []string
	if more > 0 {
		notes = append(notes, fmt.Sprintf("Other operations called: %d.", more))
	}
	if by := mailedAgents(agents); by != "" {
		notes = append(notes, "Called by "+by+".")
	}
	t.Note = strings.Join(notes, " ")
	return t
}

// mailedAgents returns the first maxMailAgents of the user agents of calls.
func mailedAgents(agents []string) string {
	return domain.Visible(strings.Join(agents[:min(len(agents), maxMailAgents)], ", "))
}

// count returns a number with separators of thousands.
func count(n int64) string { return message.NewPrinter(language.English).Sprint(n) }

// LockAnnouncement locks the state until the transaction of ctx ends; an error unless a is the current announcement.
func (s *Store) LockAnnouncement(ctx context.Context, a Announcement) error {
	return s.change(ctx, "remind of the end of v1", func(_ context.Context, state *State, _ time.Time) error {
		current, err := state.requireAnnouncement()
		if err == nil && (!current.Announced.Equal(a.Announced) || !current.Sunset.Equal(a.Sunset)) {
			err = fmt.Errorf("version 1 ends on %s, not on %s", FormatTime(current.Sunset), FormatTime(a.Sunset))
		}
		return err
	})
}

// Mail is an email about the end of v1, and its outcome.
type Mail struct {
	Kind      domain.MessageType
	Partner   domain.PartnerID
	Name      string // of the partner
	Recipient string
	CreatedAt time.Time
	// SentAt is when a mail server took it, and FailedAt when it was given up.
	SentAt, FailedAt *time.Time
}

// Mails returns the emails about the end of v1 to a partner, or to all if it is zero, the newest first.
func (s *Store) Mails(ctx context.Context, to domain.PartnerID) ([]Mail, error) {
	return pg.All[Mail](ctx, s.db, "list emails about the end of v1", pg.SQL(`
		SELECT m.kind, m.partner_id AS partner, p.name, m.recipient, m.created_at, m.sent_at, m.failed_at
		FROM partner_mails AS m JOIN partners AS p ON p.id = m.partner_id
		WHERE m.kind IN (?announce, ?postpone, ?remind) AND (?partner::uuid IS NULL OR m.partner_id = ?partner)
		ORDER BY m.created_at DESC, p.name_key, m.recipient`,
		pg.Named{"announce": AnnounceMail, "postpone": PostponeMail, "remind": RemindMail, "partner": domain.OrNil(to)}))
}
