package v1cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/database"
	"partnerapi/cmd/internal/output"
	"partnerapi/db"
	"partnerapi/db/outbox"
	"partnerapi/domain"
	"partnerapi/platform/mail"
	"partnerapi/v1compat"
	"partnerapi/v1compat/retire"
	"partnerapi/v1compat/usage"
	"partnerapi/v2/op"
)

// mailFlags are the flags of commands that email partners about the end of v1.
type mailFlags struct {
	DryRun bool `env:"-" xor:"mails" help:"Print the emails that would be sent, without sending or changing anything."`
	Again  bool `env:"-" help:"Also email recipients who have already received this email for the current announcement."`
	// PublicURL is for DryRun alone: an email has the URL of the process that sends it, which is also
	// the default here. Its help is that of serve, which reads the same variable.
	PublicURL string `name:"public-url" env:"PARTNERAPI_PUBLIC_URL" placeholder:"URL" help:"URL at which callers reach the service. Links to this service begin with this URL. If the URL has a path, the reverse proxy must remove the path from requests. Default: the listen address."`
}

// Validate checks PublicURL.
func (f mailFlags) Validate() (err error) {
	if f.PublicURL != "" {
		if _, err = mail.PublicURL(f.PublicURL); err != nil {
			err = fmt.Errorf("--public-url: %w", err)
		}
	}
	return err
}

// mailPartners is how many partners are mailed by one statement.
const mailPartners = 200

// mailing holds the emails of a command, and their recipients.
type mailing struct {
	retirement
	mailFlags
	names      map[domain.PartnerID]string
	mails      []domain.PartnerMail // one for each partner with recipients
	recipients map[domain.PartnerID][]string
	// addresses counts the addresses of the partners; noAddress names the partners that have none.
	addresses int
	noAddress []string
}

// plan returns the emails about an announcement, one for each partner or, unless only is zero, for that partner alone;
// request adds the recipients. A recipient gets one email for a cause: with Again the cause is new, so that all get it.
func (f mailFlags) plan(
	ctx context.Context, r retirement, kind domain.MessageType, a retire.Announcement, only domain.PartnerID,
) (*mailing, error) {
	t := &mailing{retirement: r, mailFlags: f, names: map[domain.PartnerID]string{}, recipients: map[domain.PartnerID][]string{}}
	people, err := r.db.V1Recipients(ctx, only)
	if err != nil {
		return nil, err
	}
	if len(people) == 0 && !only.IsZero() {
		return nil, errors.New("the partner receives no email, because it has moved to another cell or all of its clients are archived")
	}
	report, err := usage.Read(ctx, r.db, usage.ReportQuery{
		Successors: v1compat.Declare(v1compat.Config{}).Successors(), Now: r.db.Now(), Days: 30,
	})
	if err != nil {
		return nil, err
	}
	keys := map[domain.PartnerID][]*usage.Key{}
	for _, k := range report.Keys {
		keys[k.Partner] = append(keys[k.Partner], k)
	}

	cause, guides := a.MailCause(), guidesByOperation()
	if f.Again {
		cause += " again " + r.db.Now().Format(time.RFC3339Nano)
	}
	for _, p := range people {
		if p.Email == "" { // the partner has no owner or admin
			t.noAddress = append(t.noAddress, p.Name)
			continue
		}
		t.addresses++
		if _, planned := t.names[p.Partner]; !planned {
			t.names[p.Partner] = p.Name
			t.mails = append(t.mails, domain.PartnerMail{
				Partner: p.Partner, Kind: kind, Cause: cause, Notice: a.Notice(kind, keys[p.Partner], guides, r.db.Now()),
			})
		}
	}
	return t, nil
}

// mailChange runs apply, which changes the announcement to a, in a transaction with the audit entry, and prints apply's
// message. Unless noMail is set, it requests the emails about a. With DryRun, which excludes noMail, it only prints.
func (f mailFlags) mailChange(
	ctx context.Context, r retirement, noMail bool, kind domain.MessageType, a retire.Announcement, e *domain.AuditEntry,
	apply func(context.Context) (message string, err error),
) error {
	if noMail {
		return r.change(ctx, e, apply)
	}
	t, err := f.plan(ctx, r, kind, a, domain.PartnerID{})
	if err != nil {
		return err
	}
	return t.applyAndMail(ctx, e, apply)
}

// guidesByOperation maps the operations of v1 to paths of the migration guide.
func guidesByOperation() map[string]string {
	guides := map[string]string{}
	for meta := range v1compat.Declare(v1compat.Config{}).Routes() {
		guides[meta.Method+" /v1"+op.Braced(meta.Path)] = meta.Guide
	}
	return guides
}

// applyAndMail runs apply and requests the emails in one transaction, with audit entries for the change and for each
// recipient, and prints the message of apply, if any, and how many emails there are. With DryRun it changes nothing and
// prints the emails.
func (t *mailing) applyAndMail(
	ctx context.Context, e *domain.AuditEntry, apply func(context.Context) (message string, err error),
) error {
	var message string
	work := func(ctx context.Context) (err error) {
		if message, err = apply(ctx); err == nil {
			err = t.request(ctx, e.Operation)
		}
		return err
	}
	if t.DryRun {
		if err := t.db.DryRun(ctx, work); err != nil {
			return err
		}
		err := t.print(ctx)
		t.report("would be sent")
		return err
	}
	if err := database.RunAudited(ctx, t.db, e, work); err != nil {
		return err
	}
	if message != "" {
		fmt.Fprintln(t.Out, message, followNote)
	}
	t.report("will be sent")
	return nil
}

// request requests the emails, except to recipients who got them before. It records the recipients in t, and each in
// the audit trail.
func (t *mailing) request(ctx context.Context, operation string) error {
	return t.db.Change(ctx, func(ctx context.Context, c *db.Change) error {
		for mails := range slices.Chunk(t.mails, mailPartners) {
			mailed, err := outbox.MailPartners(ctx, c, mails)
			if err != nil {
				return err
			}
			for chunk := range slices.Chunk(mailed, mailPartners) {
				entries := make([]domain.AuditEntry, len(chunk))
				for i, m := range chunk {
					t.recipients[m.Partner] = append(t.recipients[m.Partner], m.Recipient)
					entries[i] = database.AsCommand(domain.AuditEntry{
						Operation: operation, Partner: m.Partner, Fields: []string{"mail"},
						Object: domain.AuditObject{Kind: m.Admin.Noun(), ID: m.Admin.String()},
					})
				}
				if err := t.db.AuditAll(ctx, entries); err != nil {
					return err
				}
			}
		}
		return c.RejectFrozen(ctx) // a partner that is moving would get none
	})
}

// print prints the emails that have recipients, without sender and id: emails get those when they are sent. Links begin
// with PublicURL or, without one, with the URL of the process that sends emails.
func (t *mailing) print(ctx context.Context) error {
	served, err := t.db.PublicURL(ctx)
	if err != nil {
		return err
	}
	composer, err := mail.NewComposer(cmp.Or(t.PublicURL, served, "http://"+cli.DefaultListen), "")
	if err != nil {
		return err
	}
	brand, err := t.db.Brand(ctx, domain.BrandOwner{})
	if err != nil {
		return err
	}
	for _, m := range t.mails {
		to := t.recipients[m.Partner]
		if len(to) == 0 {
			continue
		}
		slices.Sort(to)
		notice := outbox.NoticeMail{PartnerName: t.names[m.Partner], Notice: m.Notice, Brand: brand.Brand}
		text, err := composer.ComposeNotice(domain.MessageID{}, notice, t.db.Now())
		if err != nil {
			return err
		}
		fmt.Fprintf(t.Out, "To: %s\nSubject: %s\n\n%s\n", strings.Join(to, ", "), text.Subject, text.Text)
	}
	return nil
}

// report prints how many emails there are, how many addresses got the email before, and which partners get none. what
// is the end of the sentence about the emails, such as "will be sent".
func (t *mailing) report(what string) {
	count := 0
	for _, to := range t.recipients {
		count += len(to)
	}
	fmt.Fprintf(t.Out, "%s to owners and admins of %s %s.\n", output.Plural(count, "email", "emails"),
		output.Plural(len(t.recipients), "partner", "partners"), what)
	if earlier := t.addresses - count; earlier > 0 {
		fmt.Fprintf(t.Out, "%s already received this email; use --again to send it again.\n", output.Plural(earlier, "address", "addresses"))
	}
	if len(t.noAddress) > 0 {
		fmt.Fprintf(t.Out, "These partners have no owner or admin and receive no email: %s.\n", strings.Join(t.noAddress, ", "))
	}
}

type remindV1Cmd struct {
	database.Flags
	Partner string `env:"-" help:"Only the partner with this ID, UUID or name."`
	mailFlags
}

// Help says who gets what.
func (remindV1Cmd) Help() string {
	return `Emails each partner's owners and admins the announced end, the API keys that called v1 in the last 30 days, their calls, and what to call instead. Partners that have moved, according to v1 status, receive only the end date. Each address receives one reminder per announcement; v1 postpone counts as a new announcement. The links that --dry-run prints begin with the public URL of the process that sends emails, unless you set --public-url.`
}

// Run emails all partners, or that of --partner. It fails if no end is announced, or if that changes meanwhile.
func (c *remindV1Cmd) Run(ctx context.Context, s cli.Env) error {
	return withRetirement(ctx, c.Flags, s, func(r retirement) error {
		if r.state.Announcement == nil {
			return r.LockAnnouncement(ctx, retire.Announcement{}) // the error that no end is announced
		}
		a, entry := *r.state.Announcement, &domain.AuditEntry{Operation: "v1 remind"}
		if c.Partner != "" {
			partner, err := database.FindPartner(ctx, r.db, c.Partner)
			if err != nil {
				return err
			}
			entry = database.PartnerEntry("v1 remind", partner)
		}
		t, err := c.plan(ctx, r, retire.RemindMail, a, entry.Partner)
		if err != nil {
			return err
		}
		return t.applyAndMail(ctx, entry, func(ctx context.Context) (string, error) { return "", r.LockAnnouncement(ctx, a) })
	})
}
