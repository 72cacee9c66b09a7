package v1cmd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/database"
	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v1compat"
	"partnerapi/v1compat/retire"
	"partnerapi/v2/op"
)

// v1Cmd has the commands with which an operator retires version 1 (decisions 11).
type v1Cmd struct {
	Status   StatusCmd     `cmd:"" help:"Show when v1 ends, which keys still call it, and which have moved to v2." example:"v1 status --days 7\nv1 status --html status.html"`
	Announce announceV1Cmd `cmd:"" help:"Announce the end of v1. Every v1 response then includes the date." example:"v1 announce --sunset 2028-06-30"`
	Postpone postponeV1Cmd `cmd:"" help:"Move the announced end to a later date." example:"v1 postpone --sunset 2028-12-31"`
	Remind   remindV1Cmd   `cmd:"" help:"Email partners' owners and admins a reminder of when v1 ends and which keys still call it." example:"v1 remind --dry-run\nv1 remind --partner 'Northlight MSP'"`
	Cancel   cancelV1Cmd   `cmd:"" help:"Withdraw the announcement. Phases and brownouts remain in effect." example:"v1 cancel"`
	Phase    phaseV1Cmd    `cmd:"" help:"Set the phase of v1 for a key, a partner's keys or all keys." example:"v1 phase pk_1cY4nTq8Zb read_only\nv1 phase --partner 'Northlight MSP' on"`
	Brownout brownoutCmd   `cmd:"" help:"Schedule windows during which v1 rejects requests with keys in phase brownout."`
	End      endV1Cmd      `cmd:"" help:"End v1 for all keys once its sunset has passed and no key calls it." example:"v1 end"`
}

// retirement has what a command needs to work on the retirement of v1: the database, the store of the retirement, and
// the state of the retirement when the command began.
type retirement struct {
	cli.Env
	*retire.Store
	db    *db.DB
	state *retire.State
}

// withRetirement opens the database, loads the state of the retirement, and calls fn.
func withRetirement(ctx context.Context, f database.Flags, s cli.Env, fn func(retirement) error) error {
	return f.With(ctx, s, func(d *db.DB) (err error) {
		r := retirement{Env: s, Store: retire.NewStore(d.DB, d), db: d}
		if r.state, err = r.Load(ctx); err != nil {
			return err
		}
		return fn(r)
	})
}

// followNote follows the message about a change.
const followNote = "Running services apply the change within 30 seconds."

// change runs apply, which makes a change and returns a message about it, in one transaction with its audit entry. It
// prints the message, followed by followNote.
func (r retirement) change(
	ctx context.Context, e *domain.AuditEntry, apply func(context.Context) (message string, err error),
) error {
	var message string
	err := database.RunAudited(ctx, r.db, e, func(ctx context.Context) (err error) {
		message, err = apply(ctx)
		return err
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(r.Out, message, followNote)
	return err
}

// errNoSunset is the error of a missing --sunset. Validate returns it before kong reports the flag as missing.
var errNoSunset = errors.New("set --sunset DATE to the end of version 1, such as --sunset 2028-01-31")

type announceV1Cmd struct {
	database.Flags
	Sunset    cli.Moment `required:"" env:"-" placeholder:"DATE" help:"Date on which v1 ends, at least twelve months after the announcement: 2027-01-31 (00:00 UTC) or 2027-01-31T12:00:00Z."`
	Announced cli.Moment `env:"-" placeholder:"DATE" help:"Date of the announcement, in the format of --sunset. The date may be in the past. Default: today (UTC)."`

	NoMail bool `env:"-" xor:"mails" help:"Do not email partners' owners and admins."`
	mailFlags
}

// Help says who gets what.
func (announceV1Cmd) Help() string {
	return `Emails each partner's owners and admins, like v1 remind. With --again, the command emails the current announcement again. The links that --dry-run prints begin with the public URL of the process that sends emails, unless you set --public-url.`
}

// Validate rejects an absent sunset.
func (c announceV1Cmd) Validate() error {
	if c.Sunset.IsZero() {
		return errNoSunset
	}
	return c.mailFlags.Validate()
}

// Run announces the end of v1, and names the operations that have no successor yet. With --again, if that end is
// announced already, it only emails the announcement again.
func (c announceV1Cmd) Run(ctx context.Context, s cli.Env) error {
	return withRetirement(ctx, c.Flags, s, func(r retirement) error {
		a := retire.Announcement{Announced: c.Announced.Time, Sunset: c.Sunset.Time}
		message := "announced on %s: version 1 ends on %s."
		if a.Announced.IsZero() {
			a.Announced = domain.DateOf(r.db.Now()).Time()
		}
		record, old := r.Announce, r.state.Announcement
		stands := old != nil && old.Sunset.Equal(a.Sunset) && (c.Announced.IsZero() || old.Announced.Equal(a.Announced))
		if c.Again && stands { // email it again; LockAnnouncement records nothing
			a, record, message = *old, r.LockAnnouncement, "already announced on %s: version 1 ends on %s."
		}
		entry := &domain.AuditEntry{Operation: "v1 announce", Fields: []string{"sunset"}}
		err := c.mailChange(ctx, r, c.NoMail, retire.AnnounceMail, a, entry, func(ctx context.Context) (string, error) {
			return fmt.Sprintf(message, retire.FormatTime(a.Announced), retire.FormatTime(a.Sunset)), record(ctx, a)
		})
		if err != nil || c.DryRun { // a dry run only prints the emails
			return err
		}
		missing, _, err := withoutSuccessor(r.state)
		if err != nil {
			return err
		}
		if len(missing) > 0 {
			fmt.Fprintf(s.Out, "%d operations have no successor in release %s of version 2, which the service serves: %s.\n"+
				"Serve a later release (serve --release); otherwise version 1 cannot end.\n", len(missing), r.state.Release,
				strings.Join(missing, ", "))
		}
		later, err := laterFields(r.state)
		if err != nil {
			return err
		}
		if len(later) > 0 {
			fmt.Fprintf(s.Out, "Fields missing from release %s of version 2, which the service serves: %s.\n"+
				"Serve a later release (serve --release); otherwise callers that need these fields cannot move.\n", r.state.Release, strings.Join(later, "; "))
		}
		fmt.Fprintln(s.Out, "Next: set keys to read_only or brownout with partnerapi v1 phase, and end version 1 with partnerapi v1 end.")
		return nil
	})
}

// withoutSuccessor returns the operations of v1 whose successor in v2 is newer than the release of v2 that was served
// last, and the first release that has all successors; nil if no release is recorded. A release that this program does
// not know is an error.
func withoutSuccessor(state *retire.State) (missing []string, needed op.Release, err error) {
	served, err := servedRelease(state)
	if err != nil || served == 0 {
		return nil, 0, err
	}
	for meta := range v1compat.Declare(v1compat.Config{}).Routes() {
		if meta.Additive { // not in v1's own document, without a successor
			continue
		}
		if since := meta.Successor.Meta().Since; since > served {
			missing, needed = append(missing, meta.Method+" /v1"+op.Braced(meta.Path)), max(needed, since)
		}
	}
	return missing, needed, nil
}

// laterFields returns, by operation of v1, the fields that v2 has only in a newer release than the one that was served
// last; nil if no release is recorded. A release that this program does not know is an error.
func laterFields(state *retire.State) (list []string, err error) {
	served, err := servedRelease(state)
	if err != nil || served == 0 {
		return nil, err
	}
	later, err := v1compat.Declare(v1compat.Config{}).LaterFields(served)
	for _, l := range later {
		list = append(list, l.Method+" /v1"+op.Braced(l.Path)+": "+strings.Join(l.Fields, ", "))
	}
	return list, err
}

// servedRelease returns the release of v2 that was served last; 0 if none is recorded. One that this program does not
// know is an error.
func servedRelease(state *retire.State) (served op.Release, err error) {
	if state.Release == "" {
		return 0, nil
	}
	if err := served.UnmarshalText([]byte(state.Release)); err != nil {
		return 0, fmt.Errorf("the service serves release %s of version 2, which this program does not know; "+
			"run the command with the version of partnerapi that the service runs", state.Release)
	}
	return served, nil
}

type postponeV1Cmd struct {
	database.Flags
	Sunset cli.Moment `required:"" env:"-" placeholder:"LATER" help:"The new end of v1: 2027-01-31 (00:00 UTC) or 2027-01-31T12:00:00Z."`

	NoMail bool `env:"-" xor:"mails" help:"Do not email partners' owners and admins."`
	mailFlags
}

// Help says who gets what.
func (postponeV1Cmd) Help() string {
	return `Emails each partner's owners and admins, like v1 remind. With --again, the command emails the current date again. The links that --dry-run prints begin with the public URL of the process that sends emails, unless you set --public-url.`
}

// Validate rejects an absent sunset.
func (c postponeV1Cmd) Validate() error {
	if c.Sunset.IsZero() {
		return errNoSunset
	}
	return c.mailFlags.Validate()
}

// Run moves the sunset. With --again, it only emails again a sunset that is unchanged. It fails if none is announced.
func (c postponeV1Cmd) Run(ctx context.Context, s cli.Env) error {
	return withRetirement(ctx, c.Flags, s, func(r retirement) error {
		entry := &domain.AuditEntry{Operation: "v1 postpone", Fields: []string{"sunset"}}
		var a retire.Announcement // zero if nothing is announced: Postpone then fails
		if old := r.state.Announcement; old != nil {
			a = retire.Announcement{Announced: old.Announced, Sunset: c.Sunset.Time}
		}
		return c.mailChange(ctx, r, c.NoMail, retire.PostponeMail, a, entry, func(ctx context.Context) (string, error) {
			if old := r.state.Announcement; c.Again && old != nil && old.Sunset.Equal(c.Sunset.Time) {
				return fmt.Sprintf("version 1 ends on %s, as before.", retire.FormatTime(c.Sunset.Time)), r.LockAnnouncement(ctx, a)
			}
			previous, err := r.Postpone(ctx, c.Sunset.Time)
			return fmt.Sprintf("version 1 ends on %s instead of %s.", retire.FormatTime(c.Sunset.Time), retire.FormatTime(previous)), err
		})
	})
}

type cancelV1Cmd struct{ database.Flags }

// Run withdraws the announcement.
func (c cancelV1Cmd) Run(ctx context.Context, s cli.Env) error {
	return withRetirement(ctx, c.Flags, s, func(r retirement) error {
		entry := &domain.AuditEntry{Operation: "v1 cancel", Fields: []string{"sunset"}}
		err := r.change(ctx, entry, func(ctx context.Context) (string, error) {
			a, err := r.Cancel(ctx)
			return fmt.Sprintf("withdrew the announcement, made on %s, that version 1 ends on %s.", retire.FormatTime(a.Announced),
				retire.FormatTime(a.Sunset)), err
		})
		if err == nil {
			_, err = fmt.Fprintln(s.Out, "Phases and brownouts remain. To undo them, run partnerapi v1 phase --all on.")
		}
		return err
	})
}

type endV1Cmd struct {
	database.Flags
	Force  bool `env:"-" help:"End v1 even if keys called it in the last 30 days."`
	DryRun bool `env:"-" help:"Print the checklist, without changing anything. The exit status is the same as without this flag."`
}

// Help lists the preconditions.
func (endV1Cmd) Help() string {
	return `The command fails before the sunset and within twelve months of the announcement. It also fails if an operation has no successor in the release of v2 that the service serves, or if keys still call v1. For each reason, it prints what to run. --dry-run prints all conditions, met or not, and the partners that were never notified. To undo the end, run partnerapi v1 phase --all on.`
}

// Run ends v1. It fails without a sunset or before it, in the twelve months after the announcement, while an operation
// has no successor, and if a key called v1 in the last 30 days. With --force it ends v1 despite calls, and prints them.
// With --dry-run, it only prints the checklist.
func (c endV1Cmd) Run(ctx context.Context, s cli.Env) error {
	return withRetirement(ctx, c.Flags, s, func(r retirement) error {
		e, _, err := readEndRequest(ctx, r.db, r.Store, r.state, r.db.Now())
		if err != nil {
			return err
		}
		e.Force = c.Force
		if c.DryRun {
			return c.tryOut(r, e)
		}
		err = r.change(ctx, &domain.AuditEntry{Operation: "v1 end"}, func(ctx context.Context) (string, error) {
			return "version 1 has ended: requests with any key return 410.", r.End(ctx, e)
		})
		if err != nil {
			return err
		}
		for _, call := range e.Calls {
			fmt.Fprintln(s.Err, "still called:", call)
		}
		_, err = fmt.Fprintln(s.Out, "To undo the end, run partnerapi v1 phase --all on.")
		return err
	})
}

// errCannotEnd is the error of a dry run whose checklist says why.
var errCannotEnd = errors.New("version 1 cannot end; see the conditions marked fail")

// tryOut prints the checklist, and returns an error if v1 cannot end.
func (c endV1Cmd) tryOut(r retirement, e retire.EndRequest) error {
	if r.state.EndedAt != nil {
		return r.state.CheckEnd(e, r.db.Now())
	}
	writeChecklist(r.Out, r.state.Checklist(e, r.db.Now()), allDetails)
	if r.state.CheckEnd(e, r.db.Now()) != nil {
		return errCannotEnd
	}
	end := "partnerapi v1 end"
	if c.Force {
		end += " --force"
	}
	_, err := fmt.Fprintln(r.Out, "\nVersion 1 can end. Run "+end)
	return err
}
