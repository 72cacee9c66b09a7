package report

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"partnerapi/db"
	"partnerapi/db/reports"
	"partnerapi/domain"
)

// policies returns the contents of a report of the client's policies. The chart shows the policies that users have to
// sign, the least signed first.
func policies(r *reading) []Section {
	list := policiesOf(r)
	names := map[domain.AnyRef]string{}
	for _, n := range read(r, reports.ScopeNames.All) {
		names[domain.ScopeOf(n.Type, n.ID)] = n.Name
	}

	signable := slices.DeleteFunc(slices.Clone(list), func(p domain.Policy) bool {
		return p.SignOff == nil || p.SignOff.Audience == 0
	})
	slices.SortStableFunc(signable, func(a, b domain.Policy) int {
		return cmp.Compare(a.SignOff.Percentage(), b.SignOff.Percentage())
	})
	return []Section{
		section("Summary", signOffBlocks(list),
			barChart("Policies signed least", "%", signable, func(p *domain.Policy) string { return p.Title },
				func(p *domain.Policy) any { return percentOf(p.SignOff.Percentage(), p.SignOff.Audience) })),
		section("Policies", Table{
			Title: "Policies", Empty: "There are no active policies.",
			Columns: slices.Concat([]Column{{Title: "Title", Width: 4}, {Title: "Version", Kind: NumberColumn},
				{Title: "Audience", Width: 3}, {Title: "To be signed", Kind: YesNoColumn}},
				numberColumns("Renewal days", "Users", "Signed", "Unsigned", "Signed rate")),
			Rows: listRows(list, func(p *domain.Policy) []any { return policyCells(p, names) }),
		}),
	}
}

// policyCells returns a policy's row. names are the names of groups and collections. A group or collection without a
// name was deleted. The counts of signatures are nil for a policy that is not to be signed.
func policyCells(p *domain.Policy, names map[domain.AnyRef]string) []any {
	audience := any(Word("All users"))
	if p.ScopeType != domain.TenantScope {
		name, ok := names[p.Scope]
		switch {
		case !ok:
			audience = Word("Nobody: what it was for is deleted")
		case p.ScopeType == domain.GroupScope:
			audience = "Group " + name
		default:
			audience = "Collection " + name
		}
	}
	cells := []any{p.Title, p.Version, audience, p.MustSign, p.RenewalDays, nil, nil, nil, nil}
	if s := p.SignOff; s != nil {
		cells[5], cells[6], cells[7], cells[8] = s.Audience, s.Acknowledged, s.Audience-s.Acknowledged,
			rateCell(s.Acknowledged, s.Audience)
	}
	return cells
}

// policyAcknowledgment returns the contents of a report of every user's signatures.
func policyAcknowledgment(r *reading) []Section {
	return []Section{
		section("Summary", noUsersNote(r.tenant.ActiveUsers), signOffBlocks(policiesOf(r))),
		section("All employees and policies", Table{
			Title: "Policy acknowledgment", GroupBy: len(personColumns),
			Empty: "No policy requires an active employee’s signature.",
			Columns: slices.Concat(personColumns, []Column{{Title: "Policy", Width: 3}, {Title: "Version", Kind: NumberColumn},
				{Title: "Signed", Kind: YesNoColumn}, {Title: "Signed on", Kind: DateColumn, Width: 2},
				{Title: "Valid until", Kind: DateColumn, Width: 2}}),
			Rows: statementRows(r, reports.AskedUsers, func(u *domain.AskedUser) []any {
				cells := personCells(&u.Person, u.Title, u.Version, u.SignedAt != nil, nil, nil)
				if u.SignedAt != nil {
					signed := domain.DateOf(*u.SignedAt)
					cells[6], cells[7] = signed, signed.AddDays(u.RenewalDays)
				}
				return cells
			}),
		}),
	}
}

// policiesOf reads all active policies of the client, in the order of their titles.
func policiesOf(r *reading) []domain.Policy {
	list := current(r, func(t *db.Tenant, ctx context.Context) ([]domain.Policy, error) {
		return reports.EveryPolicy(ctx, t)
	})
	slices.SortStableFunc(list, func(a, b domain.Policy) int {
		return strings.Compare(domain.SortKey(a.Title), domain.SortKey(b.Title))
	})
	return list
}

// signOffBlocks returns figures and a chart of the signatures of the policies that are to be signed, or a text if there
// are none.
func signOffBlocks(list []domain.Policy) Block {
	asked, signed, policies, complete := 0, 0, 0, 0
	for _, p := range list {
		if p.SignOff == nil {
			continue
		}
		policies++
		asked += p.SignOff.Audience
		signed += p.SignOff.Acknowledged
		if p.SignOff.Acknowledged == p.SignOff.Audience && p.SignOff.Audience > 0 {
			complete++
		}
	}
	if policies == 0 {
		return Text("No policy requires a signature.")
	}
	return blocks{sentences(ifAny(asked, "%d of %s (%s) %s in place.", signed, quantity(asked, "required signature"),
		textOf(rateCell(signed, asked)), choose(asked, "is", "are")), collectSignatures(asked-signed)), Figures{
		countFigure("Policies", len(list), "signature required for %d", policies),
		countFigure("Signed by everyone", complete, "of %s", quantity(policies, "policy")),
		rateFigure("Signatures", signed, asked, 100 /* good */, 90 /* fair */, "signature"),
		badIfAny(countFigure("Signatures missing", asked-signed, "on current versions"), asked-signed),
	}, donutChart("Signatures asked for", []string{"Signed", "Missing"}, []Tone{Good, Bad}, signed, asked-signed)}
}
