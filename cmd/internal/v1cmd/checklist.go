package v1cmd

import (
	"context"
	"fmt"
	"io"
	"time"

	"partnerapi/cmd/internal/output"
	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v1compat/retire"
	"partnerapi/v1compat/usage"
)

// readEndRequest reads the facts that decide whether v1 can end at the time now, and the owners and admins of partners.
func readEndRequest(
	ctx context.Context, d *db.DB, store *retire.Store, state *retire.State, now time.Time,
) (e retire.EndRequest, people []db.V1Recipient, err error) {
	if e.Calls, err = usage.LastCalls(ctx, d, now.Add(-retire.CallerWindow)); err != nil {
		return e, nil, err
	}
	missing, needed, err := withoutSuccessor(state)
	if err != nil {
		return e, nil, err
	}
	if e.Missing = missing; len(missing) > 0 {
		e.Release = needed.String()
	}
	if people, err = d.V1Recipients(ctx, domain.PartnerID{}); err != nil {
		return e, nil, err
	}
	mails, err := store.Mails(ctx, domain.PartnerID{})
	e.Partners, e.Unnotified = unnotified(people, mails)
	return e, people, err
}

// contactsOf returns the email addresses of owners and admins by partner.
func contactsOf(people []db.V1Recipient) map[domain.PartnerID][]string {
	contacts := map[domain.PartnerID][]string{}
	for _, p := range people {
		if p.Email != "" {
			contacts[p.Partner] = append(contacts[p.Partner], p.Email)
		}
	}
	return contacts
}

// unnotified returns the number of partners among the recipients, and those without an email about the end of v1. An email
// that was given up does not count; one that waits does.
func unnotified(people []db.V1Recipient, mails []retire.Mail) (partners int, list []retire.Unnotified) {
	notified := map[domain.PartnerID]bool{}
	for _, m := range mails {
		if m.FailedAt == nil {
			notified[m.Partner] = true
		}
	}
	seen := map[domain.PartnerID]bool{}
	for _, p := range people {
		if seen[p.Partner] {
			continue
		}
		seen[p.Partner] = true
		if !notified[p.Partner] {
			list = append(list, retire.Unnotified{Name: p.Name, NoAdmin: p.Email == ""})
		}
	}
	return len(seen), list
}

// outcomeWords are the outcomes as doctor writes them.
var outcomeWords = map[retire.Outcome]string{retire.Met: "ok", retire.Unmet: "fail", retire.Warning: "warn"}

const (
	// lineWidth is the width of a terminal, which the lines of the status keep to.
	lineWidth = 80
	// someDetails is how many details of a condition the status shows; allDetails has no limit.
	someDetails = 3
	allDetails  = 1 << 30
)

// writeChecklist prints the conditions of v1's end, with up to most details each.
func writeChecklist(out io.Writer, list []retire.Condition, most int) {
	for _, c := range list {
		fmt.Fprintf(out, "%-4s  %s\n", outcomeWords[c.Outcome], output.Wrap(c.Found, lineWidth, 6))
		for _, d := range c.Details[:min(len(c.Details), most)] {
			fmt.Fprintln(out, "        "+output.Wrap(d, lineWidth, 10))
		}
		if more := len(c.Details) - most; more > 0 {
			fmt.Fprintf(out, "        and %d more\n", more)
		}
		for _, command := range c.Commands {
			fmt.Fprintln(out, "      → "+command)
		}
	}
}

// unmet returns how many conditions are not met.
func unmet(list []retire.Condition) (n int) {
	for _, c := range list {
		if c.Outcome == retire.Unmet {
			n++
		}
	}
	return n
}

// canEnd answers whether v1 can end.
func canEnd(list []retire.Condition) string {
	switch n := unmet(list); n {
	case 0:
		return "Can v1 end? Yes: run partnerapi v1 end."
	case 1:
		return "Can v1 end? Not yet: 1 condition is not met."
	default:
		return fmt.Sprintf("Can v1 end? Not yet: %d conditions are not met.", n)
	}
}
