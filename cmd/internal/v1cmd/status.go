package v1cmd

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/database"
	"partnerapi/cmd/internal/output"
	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
	"partnerapi/v1compat"
	"partnerapi/v1compat/retire"
	"partnerapi/v1compat/usage"
	"partnerapi/v2/op/ginop"
)

// StatusCmd is the command v1 status, which shows who still calls version 1.
type StatusCmd struct {
	database.Flags
	Key        string `env:"-" placeholder:"PREFIX" help:"Only the key with this prefix, as shown by keys list."`
	Days       int    `env:"-" default:"30" help:"Number of days for which to show calls and user agents, including today (UTC): 1 to 400."`
	Operations bool   `env:"-" xor:"form" help:"Also show each key's operations, with their successors and user agents, and all emails. The tables are wider than a terminal."`
	JSON       bool   `name:"json" env:"-" xor:"form" help:"Print JSON, including the items of GET /v1/usage for each key."`
	HTML       string `name:"html" env:"-" xor:"form" type:"path" placeholder:"FILE" help:"HTML file to write instead of printing: one page with daily charts."`
}

// Help says what the verdicts mean.
func (StatusCmd) Help() string {
	return `Shows when v1 ends, whether it can end, and which keys still have to move to v2, in lines of at most 80 characters.
With --operations, the command shows all keys and their operations. Calls from the last 10 seconds are not included.

Each operation that a key called in the last 400 days has a verdict:

  moved      its successor in v2 was called after the last call of v1, which was at least 7 days ago
  half-way   its successor was called, but v1 was called in the last 7 days or after the successor
  not begun  its successor was never called with this key
  stopped    v1 was not called for 30 days, and its successor has not been called since: no sign of a move

A v1 call counts whatever its response, even 410; a v2 call counts only if it did not fail. A key's own verdict ignores
operations that the key stopped calling. The key has moved if all its other operations have moved, has not begun if none
of them has begun, and is half-way otherwise. If a caller moves with a new key, the old key shows as stopped.

Calls by partnerapi parity, which compares both versions, are listed separately. These calls do not affect
verdicts, other numbers, v1 remind, v1 announce or v1 end. A key's last use (keys list) includes them.

In a rehearsal, a caller switches v1 off for its own key for up to 60 minutes (POST /v1/rehearsal). This request does
not count as a v1 call, but requests that return 410 during the rehearsal do.

Without --key, the output begins with a checklist of the conditions for v1 end: ok means met, fail means not
met, and warn means that the condition does not prevent the end. Each condition includes the command to run.
v1 end --dry-run prints the checklist in full.

The forecast extends a straight line through the calls of the last two to four whole weeks before today.

After the end of v1, the command shows when you can delete v1: 30 days after the end or after the last call, whichever
is later.`
}

// Validate refuses days that are not kept.
func (c StatusCmd) Validate() error {
	if c.Days < 1 || c.Days > usage.Days {
		return fmt.Errorf("--days must be between 1 and %[2]d: %[1]d", c.Days, usage.Days)
	}
	return nil
}

// Run prints the status.
func (c StatusCmd) Run(ctx context.Context, s cli.Env) error {
	return withRetirement(ctx, c.Flags, s, func(r retirement) error {
		st, err := c.Read(ctx, r.db, r.Store, r.db.Now())
		if err != nil {
			return err
		}
		switch {
		case c.JSON:
			return st.WriteJSON(s.Out)
		case c.HTML != "":
			if err := st.WritePage(c.HTML); err != nil {
				return err
			}
			_, err := fmt.Fprintln(s.Out, "wrote", c.HTML)
			return err
		}
		return st.WriteTable(s.Out, c.Operations)
	})
}

// Status is the state of v1's retirement: the fields of the JSON output, and texts for people.
type Status struct {
	Now  domain.Time `json:"now"`
	Days int         `json:"days"`
	// Announcement is null while nothing is announced.
	Announcement *announcement `json:"announcement"`
	// EndedAt, and DeletableAt, from when v1 can be deleted, are null unless v1 was ended.
	EndedAt     *domain.Time `json:"ended_at"`
	DeletableAt *domain.Time `json:"deletable_at"`
	// NewKeys is the phase of keys created from now on: on or off.
	NewKeys retire.Phase `json:"new_keys"`
	// Rehearsals has the last rehearsal of each key, the latest first.
	Rehearsals []rehearsalStatus `json:"rehearsals"`
	// Parity are the keys with which parity called v1, the latest call first. These calls are counted nowhere else.
	Parity []parityStatus `json:"parity"`
	// Emails are the emails about the end of v1, the newest first.
	Mails []mailStatus `json:"mails"`
	Keys  []keyStatus  `json:"keys"`
	ByDay []usage.Day  `json:"by_day"`
	// Checklist has the conditions of v1's end, as v1 end --dry-run prints them; empty for one key, and after the end.
	Checklist []retire.Condition `json:"checklist"`
	// LastCall is the day on which v1 is called for the last time if calls continue falling as they do. It is null if they
	// do not fall, if the days are too few, and after the end.
	LastCall *domain.Date `json:"last_call_forecast"`
	// Timeline has the phases in force and the brownouts.
	Timeline []span `json:"timeline"`

	// Heading has lines on v1's end and its use; NoCalls is the line shown without Keys.
	Heading []string `json:"-"`
	NoCalls string   `json:"-"`

	contacts map[domain.PartnerID][]string // the email addresses of each partner's owners and admins
	forecast forecast
}

type announcement struct {
	AnnouncedAt domain.Time `json:"announced_at"`
	SunsetAt    domain.Time `json:"sunset_at"`
	// DaysLeft is below 0 when the sunset has passed.
	DaysLeft int `json:"days_left"`
}

type keyStatus struct {
	usage.Who
	Phase      retire.Phase `json:"phase"`
	PhaseUntil *domain.Time `json:"phase_until"`
	usage.Use
	Items []v1compat.UsageItem `json:"items"`

	// Shown is the key's prefix, or its id if it is no longer in the database; Label is its
	// name, and InPhase its phase and until when.
	Shown   string      `json:"-"`
	Label   string      `json:"-"`
	InPhase string      `json:"-"`
	Days    []usage.Day `json:"-"`

	partner domain.PartnerID
}

// parityStatus is a key's use of v1 by parity. Items are those that GET /v1/usage has as parity.
type parityStatus struct {
	usage.ParityKey
	Items []v1compat.UsageItem `json:"items"`
}

// parityOf returns the status of a key's use of v1 by parity.
func parityOf(k *usage.ParityKey, successors map[string]string) parityStatus {
	return parityStatus{*k, usageItems(k.Rows, successors)}
}

// usageItems returns rows as items of GET /v1/usage; successors maps operations of v1 to those of v2.
func usageItems(rows []usage.Row, successors map[string]string) []v1compat.UsageItem {
	return pg.MapRows(rows, func(r *usage.Row) v1compat.UsageItem { return v1compat.UsageItemOf(*r, successors[r.Operation]) })
}

// rehearsalStatus is the last rehearsal of a key.
type rehearsalStatus struct {
	Key         string      `json:"key"`
	Name        string      `json:"name"`
	PartnerName string      `json:"partner"`
	StartedAt   domain.Time `json:"started_at"`
	// EndedAt is when it ended, or will end if Running.
	EndedAt domain.Time `json:"ended_at"`
	Running bool        `json:"running"`
}

// mailStatus is an email to an owner or admin of a partner about the end of v1.
type mailStatus struct {
	Kind        domain.MessageType `json:"kind"`
	PartnerName string             `json:"partner"`
	To          string             `json:"to"`
	CreatedAt   domain.Time        `json:"created_at"`
	// SentAt is null unless the email was sent, and FailedAt unless it was given up.
	SentAt   *domain.Time `json:"sent_at"`
	FailedAt *domain.Time `json:"failed_at"`

	partner domain.PartnerID
}

// State returns when the email was sent, or "failed" or "waiting".
func (m mailStatus) State() string {
	switch {
	case m.SentAt != nil:
		return output.FormatTime(&m.SentAt.Time)
	case m.FailedAt != nil:
		return "failed"
	}
	return "waiting"
}

// readMails returns the emails about the end of v1 to one partner, or to all if only is zero.
func readMails(ctx context.Context, store *retire.Store, only domain.PartnerID) ([]mailStatus, error) {
	all, err := store.Mails(ctx, only)
	return pg.MapRows(all, func(m *retire.Mail) mailStatus {
		return mailStatus{m.Kind, m.Name, m.Recipient, domain.At(m.CreatedAt), domain.MaybeAt(m.SentAt), domain.MaybeAt(m.FailedAt), m.Partner}
	}), err
}

// Read returns the status at the time now: of the key of --key, or of all keys.
func (c StatusCmd) Read(ctx context.Context, d *db.DB, store *retire.Store, now time.Time) (*Status, error) {
	now = now.UTC()
	query := usage.ReportQuery{
		Successors: v1compat.Declare(v1compat.Config{}).Successors(), Now: now, Days: c.Days,
	}
	keys, err := d.Keys(ctx)
	if err != nil {
		return nil, err
	}
	var key db.Key // zero without --key: of all keys
	if c.Key != "" {
		if key, err = findKeyByPrefix(keys, c.Key); err != nil {
			return nil, err
		}
		query.Keys = []domain.KeyID{key.ID}
	}
	state, err := store.Load(ctx)
	if err != nil {
		return nil, err
	}
	report, err := usage.Read(ctx, d, query)
	if err != nil {
		return nil, err
	}
	end, people, err := readEndRequest(ctx, d, store, state, now)
	if err != nil {
		return nil, err
	}

	st := &Status{
		Now: domain.At(now), Days: c.Days, ByDay: report.Days, NewKeys: state.PhaseOfNewKeys(),
		NoCalls: "No key called v1 in the last 400 days.",
	}
	for _, k := range report.Keys {
		st.Keys = append(st.Keys, statusOf(k, state, now))
	}
	st.Parity = []parityStatus{}
	for _, k := range report.Parity {
		st.Parity = append(st.Parity, parityOf(k, query.Successors))
	}
	if st.Rehearsals, err = readRehearsals(ctx, store, key.ID, now); err != nil {
		return nil, err
	}
	if st.Mails, err = readMails(ctx, store, key.PartnerID); err != nil {
		return nil, err
	}
	if c.Key != "" {
		phase, until := state.PhaseOf(retire.Key{ID: key.ID, Partner: key.PartnerID}, now)
		st.NoCalls = fmt.Sprintf("%s (%s) did not call v1 in the last 400 days. It is in phase %s.", key.Prefix, key.Name,
			phaseText(phase, until))
	}
	refusals, err := usage.Refusals(ctx, d)
	if err != nil {
		return nil, err
	}
	st.Timeline, st.contacts = namesOf(keys).spans(state, refusals, key, now), contactsOf(people)
	st.Checklist = []retire.Condition{}
	if state.EndedAt == nil {
		st.forecast = newForecast(st.ByDay)
		st.LastCall = st.forecast.LastCall
		if c.Key == "" {
			st.Checklist = state.Checklist(end, now)
		}
	}
	var lastCall time.Time
	if len(end.Calls) > 0 {
		lastCall = end.Calls[0].At // the latest one, by any key
	}
	st.addHeading(state, lastCall)
	return st, nil
}

// readRehearsals returns the last rehearsal of each key, or of one key unless only is zero.
func readRehearsals(ctx context.Context, store *retire.Store, only domain.KeyID, now time.Time) ([]rehearsalStatus, error) {
	all, err := store.Rehearsals(ctx)
	list := []rehearsalStatus{}
	for _, r := range all {
		if only.IsZero() || r.Key == only {
			list = append(list, rehearsalStatus{
				cmp.Or(r.Prefix, r.Key.UUID()), r.Name, r.Partner, domain.At(r.StartedAt), domain.At(r.EndedAt), r.Running(now),
			})
		}
	}
	return list, err
}

// End returns when the rehearsal ended, or that it is running and until when.
func (r rehearsalStatus) End() string {
	if r.Running {
		return "running until " + output.FormatTime(&r.EndedAt.Time)
	}
	return output.FormatTime(&r.EndedAt.Time)
}

// statusOf returns the status of a key at the time now.
func statusOf(k *usage.Key, state *retire.State, now time.Time) keyStatus {
	phase, until := state.PhaseOf(retire.Key{ID: k.ID, Partner: k.Partner}, now)
	out := keyStatus{
		Who: k.Who, Phase: phase, PhaseUntil: domain.MaybeAt(domain.OrNil(until)), Use: k.Use,
		Shown: cmp.Or(k.Prefix, k.ID.UUID()), Label: k.Name, InPhase: phaseText(phase, until), Days: k.Days, partner: k.Partner,
	}
	if !k.Live { // revoked, expired or deleted
		out.Label = strings.TrimSpace(k.Name + " (ended)")
	}
	successors := map[string]string{}
	for _, o := range k.Operations {
		successors[o.Operation] = o.Successor
	}
	out.Items = usageItems(k.Rows, successors)
	return out
}

// phaseText formats a phase and its end, if it has one.
func phaseText(phase retire.Phase, until time.Time) string {
	if until.IsZero() {
		return string(phase)
	}
	return string(phase) + " until " + output.FormatTime(&until)
}

// addHeading sets Heading: when v1 ends or ended, when it can be deleted or whether new keys have it, and how often it
// was called. It also sets Announcement, EndedAt and DeletableAt. last is the last call of v1 by any key within
// retire.CallerWindow; zero for none.
func (st *Status) addHeading(state *retire.State, last time.Time) {
	var a retire.Announcement
	if state.Announcement != nil {
		a = *state.Announcement
	}
	left := domain.DateOf(st.Now.Time).DaysUntil(domain.DateOf(a.Sunset)) // unused without an announcement
	var first string
	switch {
	case state.EndedAt != nil:
		first = fmt.Sprintf("v1 ended on %s: its requests return 410.", FormatDay(*state.EndedAt))
	case state.Announcement == nil:
		first = "The end of v1 is not announced. To announce it, run partnerapi v1 announce."
	case left < 0:
		first = fmt.Sprintf("The sunset of v1 was on %s, %s ago. To switch v1 off, run partnerapi v1 end.", FormatDay(a.Sunset),
			output.Plural(-left, "day", "days"))
	default:
		first = fmt.Sprintf("The sunset of v1 is on %s, in %s.", FormatDay(a.Sunset), output.Plural(left, "day", "days"))
	}
	if state.Announcement != nil {
		st.Announcement = &announcement{domain.At(a.Announced), domain.At(a.Sunset), left}
		first += fmt.Sprintf(" It was announced on %s.", FormatDay(a.Announced))
	}
	st.Heading = []string{first}
	if ended := state.EndedAt; ended != nil {
		st.EndedAt = domain.MaybeAt(ended)
		st.Heading = append(st.Heading, st.describeDeletion(*ended, last))
	} else {
		st.Heading = append(st.Heading, describeNewKeys(st.NewKeys))
	}

	var calls, failures int64
	keys := 0
	for _, k := range st.Keys {
		calls, failures = calls+k.Calls, failures+k.Failures
		if k.Calls > 0 {
			keys++
		}
	}
	noun := " calls"
	if calls == 1 {
		noun = " call"
	}
	st.Heading = append(st.Heading, fmt.Sprintf("In the last %s: %s of v1 by %s, of which %s failed.",
		output.Plural(st.Days, "day", "days"), output.Grouped(calls)+noun, output.Plural(keys, "key", "keys"), output.Grouped(failures)))
	if st.forecast.Weeks > 0 {
		st.Heading = append(st.Heading, st.forecast.Text(st.Announcement))
	}
}

// describeNewKeys returns a sentence on whether new keys have v1, and how to change it.
func describeNewKeys(phase retire.Phase) string {
	if phase == retire.Off {
		return "New keys cannot use v1, unless you create them with --v1. To change that, run partnerapi v1 phase --new on."
	}
	return "New keys can use v1. To change that, run partnerapi v1 phase --new off."
}

// describeDeletion sets DeletableAt to usage.Silent after the end of v1 or, if v1 was called later, after the last
// call. It returns a sentence that says when v1 can be deleted or, if that time has come, how.
func (st *Status) describeDeletion(ended, last time.Time) string {
	since := "no one has called it since then"
	if last.After(ended) {
		since = "its last call was on " + FormatDay(last)
		ended = last // usage.Silent counts from there
	}
	at := ended.Add(usage.Silent)
	st.DeletableAt = domain.MaybeAt(domain.OrNil(at))
	if st.Now.Time.Before(at) {
		return fmt.Sprintf("It can be deleted from %s on, unless it is called before then; %s.", FormatDay(at), since)
	}
	return "It can be deleted, as " + since + ". In the sources, run make remove-v1 and make build. Then run partnerapi migrate and replace " +
		"the processes, as in any upgrade. make remove-v1 deletes what OF_V1 in the Makefile lists, removes the lines that name v1cmd from cmd/partnerapi/main.go, " +
		"and adds idmap/drop.sql as the next migration. To verify beforehand that everything else still works, run make without-v1."
}

// WriteJSON writes the status as JSON, with the API's encoder, as its items are those of GET /v1/usage.
func (st *Status) WriteJSON(out io.Writer) error {
	text, err := ginop.Encode(st)
	if err != nil {
		return err
	}
	return output.JSON(out, json.RawMessage(text))
}

// FormatDay formats the day (UTC) of a time.
func FormatDay(t time.Time) string { return domain.DateOf(t).String() }
