package main

import (
	"cmp"
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"partnerapi/domain"
)

type auditCmd struct {
	databaseFlags
	Client domain.ClientID `env:"-" placeholder:"ID" help:"Only what was done to this client."`
	Key    string          `env:"-" placeholder:"PREFIX" help:"Only what was done by this key, named by its prefix as keys list shows it."`
	Since  string          `env:"-" placeholder:"TIME" help:"Only what was done from this time on: as 2027-01-31 (UTC), 2027-01-31T12:00:00Z, or 36h ago."`
}

// Help says what is in the list.
func (auditCmd) Help() string {
	return `Every write that succeeded through the API is listed, the oldest first, with the key that did it and the address it came from. Entries are kept for 400 days.`
}

// Validate refuses a time that is none.
func (c auditCmd) Validate() error {
	_, err := since(c.Since)
	return err
}

// Run prints the audit trail.
func (c auditCmd) Run(ctx context.Context, s streams) (err error) {
	from, err := since(c.Since)
	if err != nil {
		return err
	}
	d, shut, err := c.open(ctx, s.err)
	if err != nil {
		return err
	}
	defer closing(shut, &err)

	w := tabwriter.NewWriter(s.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "AT\tKEY\tADDRESS\tOPERATION\tMETHOD\tPATH\tCLIENT\tUSER\tREQUEST")
	lines := 0
	err = d.EachAuditEntry(ctx, domain.AuditFilter{Client: c.Client, Prefix: c.Key, Since: from},
		func(e domain.AuditEntry) error {
			address, client, user := "-", "-", "-"
			if e.Address.IsValid() {
				address = e.Address.String()
			}
			if !e.Client.IsZero() {
				client = e.Client.String()
			}
			if !e.User.IsZero() {
				user = e.User.String()
			}
			_, err := fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", e.At.UTC().Format(time.RFC3339), e.Prefix, address,
				e.Operation, e.Method, e.Path, client, user, cmp.Or(e.RequestID, "-"))
			if lines++; err == nil && lines%flushEvery == 0 {
				err = w.Flush()
			}
			return err
		})
	if err != nil {
		return err
	}
	return w.Flush()
}

// flushEvery is how many lines of a long list are held to align its columns.
const flushEvery = 1000

// since reads a time: a day (UTC), a moment, or a duration before now. The empty
// text is the zero time.
func since(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, form := range []string{time.DateOnly, time.RFC3339} {
		if at, err := time.Parse(form, text); err == nil {
			return at, nil
		}
	}
	if ago, err := time.ParseDuration(text); err == nil && ago > 0 {
		return domain.SystemClock{}.Now().Add(-ago), nil
	}
	return time.Time{}, fmt.Errorf("--since: %q is not a time such as 2027-01-31, 2027-01-31T12:00:00Z or 36h", text)
}
