package retire

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
	"partnerapi/v1compat/usage"
)

// The kinds of mails that tell partners of the end of v1.
const (
	AnnounceMail domain.MessageType = "v1-announce"
	PostponeMail domain.MessageType = "v1-postpone"
	RemindMail   domain.MessageType = "v1-remind"
)

// Bounds of what a mail lists.
const (
	maxMailKeys       = 20
	maxMailOperations = 15 // of a key
	maxMailAgents     = 3  // of an operation
)

// MailCause returns the cause of mails about the announcement and its sunset. An address gets each mail once per cause.
func (a Announcement) MailCause() string {
	return FormatTime(a.Announced) + " " + FormatTime(a.Sunset)
}

// Notice returns a mail about the announcement to a partner. keys is the report of the partner's keys for the last 30
// days, of which the mail lists those that still call v1; guides maps v1's operations to paths of the migration guide.
func (a Announcement) Notice(kind domain.MessageType, keys []*usage.Key, guides map[string]string, now time.Time) domain.Notice {
	layout := "2 January 2006"
	if sunset := a.Sunset.UTC(); !domain.DateOf(sunset).Time().Equal(sunset) {
		layout = "2 January 2006, 15:04"
	}
	day, deadline := a.Sunset.UTC().Format(layout), "before that day"
	n := domain.Notice{
		Subject: "Version 1 of the API ends on " + day, Action: "Read how to move to version 2", Path: "/docs/guide/moving-from-v1",
		Paragraphs: []string{fmt.Sprintf("Version 1 of the API ends on %s (UTC). After that, requests to version 1 may fail with 410 Gone.", day)},
	}
	if !now.Before(a.Sunset) {
		deadline = "now"
		n.Subject = "Version 1 of the API was to end on " + day
		n.Paragraphs[0] = n.Subject + " (UTC). Requests to version 1 may now fail with 410 Gone at any time."
	}
	switch kind {
	case PostponeMail:
		n.Subject = "The end of version 1 of the API is postponed to " + day
		n.Paragraphs[0] = "The end of version 1 of the API is postponed. " + n.Paragraphs[0]
	case RemindMail:
		n.Subject = "Reminder: v" + strings.TrimPrefix(n.Subject, "V")
	}
	keys = slices.DeleteFunc(slices.Clone(keys), func(k *usage.Key) bool { return !stillCalls(k) })
	if len(keys) == 0 {
		return n
	}
	n.Paragraphs = append(n.Paragraphs, "Your API keys have called version 1 in the last 30 days. Please move the programs that use them to version 2 "+deadline+".")
	n.PointsHeading = "Calls to version 1 by these keys, and what to call instead:"
	for _, k := range keys[:min(len(keys), maxMailKeys)] {
		n.Points = append(n.Points, keyPoints(k, guides)...)
	}
	if more := len(keys) - maxMailKeys; more > 0 {
		n.Points = append(n.Points, fmt.Sprintf("%d more keys", more))
	}
	n.After = []string{
		"GET /v1/usage lists all calls of an API key by day. The migration guide says what each operation of version 1 is in version 2: " + domain.PublicURL + "/docs/migrating",
	}
	return n
}

// stillCalls reports whether a live key called v1 in the report's days, and neither moved nor stopped (usage.Verdict).
func stillCalls(k *usage.Key) bool {
	return k.Live && k.Calls > 0 && k.Verdict != usage.Moved && k.Verdict != usage.Stopped
}

// keyPoints lists the operations that a key called in the days of the report, the most called first, each with its user
// agents and its successor. Beyond maxMailOperations it gives their number only.
func keyPoints(k *usage.Key, guides map[string]string) (points []string) {
	called := slices.DeleteFunc(slices.Clone(k.Operations), func(o usage.Operation) bool { return o.Calls == 0 })
	slices.SortStableFunc(called, func(a, b usage.Operation) int { return cmp.Compare(b.Calls, a.Calls) })
	name := fmt.Sprintf("%s (%s): ", domain.Visible(k.Name), k.Prefix)
	for _, o := range called[:min(len(called), maxMailOperations)] {
		calls := fmt.Sprintf("%d calls", o.Calls)
		if o.Calls == 1 {
			calls = "1 call"
		}
		if agents := o.UserAgents[:min(len(o.UserAgents), maxMailAgents)]; len(agents) > 0 {
			calls += " by " + domain.Visible(strings.Join(agents, ", "))
		}
		instead := ""
		if o.Successor != "" {
			instead = fmt.Sprintf("; call %s instead: %s%s", o.Successor, domain.PublicURL, guides[o.Operation])
		}
		points = append(points, name+o.Operation+", "+calls+instead)
	}
	if more := len(called) - maxMailOperations; more > 0 {
		points = append(points, fmt.Sprintf("%s%d more operations", name, more))
	}
	return points
}

// LockAnnouncement locks the state until the transaction of ctx ends; an error unless a is the current announcement.
func (s *Store) LockAnnouncement(ctx context.Context, a Announcement) error {
	return s.change(ctx, "remind of the end of v1", func(_ context.Context, state *State, _ time.Time) error {
		current, err := state.requireAnnouncement()
		if err == nil && (!current.Announced.Equal(a.Announced) || !current.Sunset.Equal(a.Sunset)) {
			err = fmt.Errorf("version 1 ends on %s, and not on %s", FormatTime(current.Sunset), FormatTime(a.Sunset))
		}
		return err
	})
}

// Mail is a mail about the end of v1, and its outcome.
type Mail struct {
	Kind      domain.MessageType
	Partner   domain.PartnerID
	Name      string // of the partner
	Recipient string
	CreatedAt time.Time
	// SentAt is when a mail server took it, and FailedAt when it was given up.
	SentAt, FailedAt *time.Time
}

// Mails returns the mails about the end of v1 to a partner, or to all if it is zero, the newest first.
func (s *Store) Mails(ctx context.Context, to domain.PartnerID) ([]Mail, error) {
	return pg.All[Mail](ctx, s.db, "list emails about the end of v1", pg.SQL(`
		SELECT m.kind, m.partner_id AS partner, p.name, m.recipient, m.created_at, m.sent_at, m.failed_at
		FROM partner_mails AS m JOIN partners AS p ON p.id = m.partner_id
		WHERE m.kind IN (?announce, ?postpone, ?remind) AND (?partner::uuid IS NULL OR m.partner_id = ?partner)
		ORDER BY m.created_at DESC, p.name_key, m.recipient`,
		pg.Named{"announce": AnnounceMail, "postpone": PostponeMail, "remind": RemindMail, "partner": domain.OrNil(to)}))
}
