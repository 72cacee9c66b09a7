package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"text/tabwriter"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/op"
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

// actor is who did what an entry says: a key, or a command and the user who ran it.
func actor(e domain.AuditEntry) string {
	switch {
	case e.SystemUser == "":
		return e.Prefix
	case e.SudoUser == "":
		return e.Prefix + " " + e.SystemUser
	}
	return fmt.Sprintf("%s %s (sudo %s)", e.Prefix, e.SystemUser, e.SudoUser)
}

func orDash[T fmt.Stringer](value *T) string {
	if value == nil {
		return "-"
	}
	return (*value).String()
}

// auditLine is an entry as the command prints it in JSON.
type auditLine struct {
	At         op.Time           `json:"at"`
	KeyPrefix  *string           `json:"key_prefix"`  // null for a command
	SystemUser *string           `json:"system_user"` // who ran the command; null for a key
	SudoUser   *string           `json:"sudo_user"`
	Address    *netip.Addr       `json:"address"`
	Operation  string            `json:"operation"`
	Object     *auditObject      `json:"object"`
	Fields     []string          `json:"fields"`
	PartnerID  *domain.PartnerID `json:"partner_id"`
	ClientID   *domain.ClientID  `json:"client_id"`
	UserID     *domain.UserID    `json:"user_id"`
	Method     *string           `json:"method"`
	Path       *string           `json:"path"`
	RequestID  *string           `json:"request_id"`
}

type auditObject struct {
	Kind string `json:"kind"`
	ID   string `json:"id"`
}

func auditLineOf(e domain.AuditEntry) auditLine {
	line := auditLine{
		At: op.At(e.At), SystemUser: given(e.SystemUser), SudoUser: given(e.SudoUser), Address: given(e.Address),
		Operation: e.Operation, Fields: append([]string{}, e.Fields...), PartnerID: given(e.Partner),
		ClientID: given(e.Client), UserID: given(e.User), Method: given(e.Method), Path: given(e.Path), RequestID: given(e.RequestID),
	}
	if e.Prefix != domain.CommandActor {
		line.KeyPrefix = &e.Prefix
	}
	if e.Object != (domain.AuditObject{}) {
		line.Object = &auditObject{e.Object.Kind, e.Object.ID}
	}
	return line
}

// given is a value, or nil for the zero one.
func given[T comparable](value T) *T {
	if value == *new(T) {
		return nil
	}
	return &value
}

// printAuditJSON prints entries as asJSON prints an array of them, one after the other.
func printAuditJSON(ctx context.Context, d *db.DB, chosen domain.AuditFilter, out io.Writer) error {
	out = jsonTo(out)
	between := "["
	err := d.EachAuditEntry(ctx, chosen, func(e domain.AuditEntry) error {
		text, err := json.MarshalIndent(auditLineOf(e), "  ", "  ")
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "%s\n  %s", between, text)
		between = ","
		return err
	})
	if err != nil {
		return err
	}
	if between == "[" {
		_, err = fmt.Fprintln(out, "[]")
		return err
	}
	_, err = fmt.Fprint(out, "\n]\n")
	return err
}

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
