package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v1compat"
	"partnerapi/v1compat/retire"
	"partnerapi/v1compat/usage"
	v2 "partnerapi/v2"
)

type statusCmd struct {
	databaseFlags
	Key  string `env:"-" placeholder:"PREFIX" help:"Only this key, by the prefix that keys list shows."`
	Days int    `env:"-" default:"30" help:"How many days calls and user agents are shown of, today (UTC) included: 1 to 400."`
	JSON bool   `name:"json" env:"-" xor:"form" help:"Print JSON: per key also the items of GET /v1/usage."`
	HTML string `name:"html" env:"-" xor:"form" type:"path" placeholder:"FILE" help:"Write a page to look at, with curves by day, which needs no other file."`
}

// Help says what the verdicts mean.
func (statusCmd) Help() string {
	return `Shows when v1 ends, which keys call it, and how far each is on its way to v2. What services counted in the last
10 seconds is not in it yet.

Each operation that a key called in the last 400 days has a verdict:

  moved      its successor in v2 was called after the last call of v1, and that was at least 7 days ago
  half-way   its successor was called, but v1 was too, in the last 7 days or after it
  not begun  its successor was never called with this key
  stopped    v1 was not called for 30 days, and its successor not since then: nothing shows that the caller moved

A call of v1 counts whatever it was answered, 410 included; a call of v2 only if it did not fail. A key has moved when it
moved from every operation that it has not stopped calling, has not begun when it has with none of them, and is half-way
otherwise. A caller that moves with another key shows as stopped under its old one.

When v1 was ended, the command says from when on it can be deleted: 30 days after the end, or after the last call, where
one came since then.`
}

// Validate refuses days that are not kept.
func (c statusCmd) Validate() error {
	if c.Days < 1 || c.Days > usage.Days {
		return fmt.Errorf("--days: %d is not from 1 to %d", c.Days, usage.Days)
	}
	return nil
}

// Run shows how far the retirement of v1 is.
func (c statusCmd) Run(ctx context.Context, s streams) (err error) {
	d, shut, err := c.open(ctx, s.err)
	if err != nil {
		return err
	}
	defer closing(shut, &err)
	st, err := c.read(ctx, d, domain.SystemClock{})
	if err != nil {
		return err
	}
	switch {
	case c.JSON:
		return st.writeJSON(s.out)
	case c.HTML != "":
		if err := st.writePage(c.HTML); err != nil {
			return err
		}
		_, err := fmt.Fprintln(s.out, "wrote", c.HTML)
		return err
	}
	return st.writeTable(s.out)
}

// status is how far the retirement of v1 is.
type status struct {
	now  time.Time
	days int
	// state is what was announced, and the phases of keys.
	state *retire.State
	use   *usage.Report
	// only is the one key that is asked for; nil for all.
	only *db.Key
	// last is the last call of v1 that any key made in the last Silent; zero for none.
	last time.Time
}

func (c statusCmd) read(ctx context.Context, d *db.DB, clock domain.Clock) (st *status, err error) {
	st = &status{now: clock.Now().UTC(), days: c.Days}
	asked := usage.Asked{
		Successors: v1compat.New(v2.New(nil, nil), v1compat.Config{}).Successors(), Now: st.now, Days: c.Days,
	}
	if c.Key != "" {
		keys, err := d.Keys(ctx)
		if err != nil {
			return nil, err
		}
		key, err := keyCalled(keys, c.Key)
		if err != nil {
			return nil, err
		}
		asked.Keys, st.only = []domain.KeyID{key.ID}, &key
	}
	if st.state, err = retire.NewStore(d.SQL(), clock).Load(ctx); err != nil {
		return nil, err
	}
	if st.use, err = usage.Read(ctx, d.SQL(), asked); err != nil {
		return nil, err
	}
	calls, err := usage.LastCalls(ctx, d.SQL(), st.now.Add(-usage.Silent))
	if len(calls) > 0 {
		st.last = calls[0].At
	}
	return st, err
}

// phase is the phase that a key is in, and until when; zero is for good.
func (st *status) phase(k usage.Key) (retire.Phase, time.Time) {
	return st.state.PhaseOf(retire.Key{ID: k.ID, Partner: k.Partner}, st.now)
}

// daysLeft is how many days are left until the sunset; below 0 when it has passed.
func (st *status) daysLeft() int {
	a, _ := st.state.Announcement()
	return domain.DateOf(st.now).DaysUntil(domain.DateOf(a.Sunset))
}

// deletable is when v1 can be deleted; ok is false while it was not ended.
func (st *status) deletable() (at time.Time, ok bool) {
	ended, ok := st.state.Ended()
	if st.last.After(ended) {
		ended = st.last
	}
	return ended.Add(usage.Silent), ok
}

// heading says in words when v1 ends, and what is to do when it was ended.
func (st *status) heading() (lines []string) {
	a, announced := st.state.Announcement()
	ended, over := st.state.Ended()
	switch {
	case over:
		lines = append(lines, fmt.Sprintf("v1 was ended on %s: it answers 410.", dayOf(ended)), st.deletion(ended))
	case !announced:
		lines = append(lines, "The end of v1 is not announced: the command v1 announce does that.")
	case st.daysLeft() < 0:
		lines = append(lines, fmt.Sprintf("The sunset of v1 was on %s, %s ago: the command v1 end switches it off.",
			dayOf(a.Sunset), counted(-st.daysLeft(), "day", "days")))
	default:
		lines = append(lines, fmt.Sprintf("The sunset of v1 is on %s, in %s.", dayOf(a.Sunset), counted(st.daysLeft(), "day", "days")))
	}
	if announced {
		lines[0] += fmt.Sprintf(" It was announced on %s.", dayOf(a.Announced))
	}
	return lines
}

// deletion says from when on v1 can be deleted, and how.
func (st *status) deletion(ended time.Time) string {
	since := "nobody called it since then"
	if st.last.After(ended) {
		since = "its last call was on " + dayOf(st.last)
	}
	if at, _ := st.deletable(); st.now.Before(at) {
		return fmt.Sprintf("It can be deleted from %s on, unless it is called before; %s.", dayOf(at), since)
	}
	return "It can be deleted, as " + since + ": remove the folders and files that OF_V1 in the Makefile names (make without-v1 " +
		"proves that nothing else needs them), serve what is left, and then run idmap/drop.sql on the database."
}

// summary says in words who called how much.
func (st *status) summary() string {
	var calls, failures int64
	keys := 0
	for _, k := range st.use.Keys {
		calls, failures = calls+k.Calls, failures+k.Failures
		if k.Calls > 0 {
			keys++
		}
	}
	noun := " calls"
	if calls == 1 {
		noun = " call"
	}
	return fmt.Sprintf("In the last %s: %s of v1 by %s, of which %s failed.", counted(st.days, "day", "days"),
		grouped(calls)+noun, counted(keys, "key", "keys"), grouped(failures))
}

// nobody says that nothing called v1, and what phase the one key is in that is asked
// for.
func (st *status) nobody() string {
	if st.only == nil {
		return "No key called v1 in the last 400 days."
	}
	k := usage.Key{ID: st.only.ID, Partner: st.only.PartnerID}
	return fmt.Sprintf("%s (%s) did not call v1 in the last 400 days. It is in phase %s.", st.only.Prefix, st.only.Name, st.phaseText(k))
}

func (st *status) writeTable(out io.Writer) error {
	for _, line := range st.heading() {
		fmt.Fprintln(out, line)
	}
	fmt.Fprintln(out, st.summary())
	if len(st.use.Keys) == 0 {
		_, err := fmt.Fprintf(out, "\n%s\n", st.nobody())
		return err
	}

	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "KEY\tNAME\tPARTNER\tPHASE\tLAST CALL\tCALLS\tFAILED\tVERDICT")
	for _, k := range st.use.Keys {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%s\n", prefixOf(k), nameOf(k), cmp.Or(k.PartnerName, "-"),
			st.phaseText(k), moment(&k.LastAt), k.Calls, k.Failures, k.Verdict)
	}
	fmt.Fprintln(w)
	if err := w.Flush(); err != nil {
		return err
	}
	w = tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "KEY\tOPERATION\tSUCCESSOR\tLAST CALL\tCALLS\tFAILED\tSUCCESSOR'S\tVERDICT\tUSER AGENTS")
	for _, k := range st.use.Keys {
		for _, o := range k.Operations {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%d\t%d\t%s\t%s\n", prefixOf(k), o.Operation, cmp.Or(o.Successor, "-"),
				moment(&o.LastAt), o.Calls, o.Failures, o.SuccessorCalls, o.Verdict, cmp.Or(strings.Join(o.UserAgents, ", "), "-"))
		}
	}
	return w.Flush()
}

// phaseText is a key's phase, and until when it lasts.
func (st *status) phaseText(k usage.Key) string {
	phase, until := st.phase(k)
	if until.IsZero() {
		return string(phase)
	}
	return string(phase) + " until " + moment(&until)
}

// prefixOf is what a key is listed by; its id where it is no longer in the database.
func prefixOf(k usage.Key) string { return cmp.Or(k.Prefix, k.ID.UUID()) }

// nameOf is what a key is for, and whether it is still valid.
func nameOf(k usage.Key) string {
	if k.Live {
		return k.Name
	}
	return strings.TrimSpace(k.Name + " (ended)")
}

// dayOf is a time's day (UTC).
func dayOf(t time.Time) string { return domain.DateOf(t).String() }
