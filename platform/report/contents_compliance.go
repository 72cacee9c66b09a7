package report

import (
	"context"
	"fmt"
	"math"
	"slices"

	"partnerapi/db"
	"partnerapi/domain"
)

// compliance returns the contents of a report of the client's frameworks, with a section for each assignment; a text if
// there are none.
func compliance(r *reading) []Section {
	list := frameworksOf(r)
	if len(list) == 0 {
		return []Section{section("Summary", Text("No framework is assigned. Assign a framework to measure "+
			"training, phishing, policies and reporting against its requirements."))}
	}

	complete, requirements, fulfilled := 0, 0, 0 // frameworks with all requirements met, requirements, met requirements
	for _, f := range list {
		requirements += f.Evaluation.Total
		fulfilled += f.Evaluation.Met
		if f.Evaluation.Met == f.Evaluation.Total {
			complete++
		}
	}
	sections := []Section{section("Summary",
		sentences(english.Sprintf("%d of %s %s met.", fulfilled, quantity(requirements, "framework requirement"),
			choose(requirements, "is", "are")),
			meetRequirements(requirements-fulfilled)),
		Figures{
			countFigure("Frameworks", len(list), "%d met in full", complete),
			metFigure("Requirements", fulfilled, requirements),
		},
		Text("A requirement without a measured value counts as not met."),
		barChart("Requirements met", "%", list, func(f *framework) string { return f.title },
			func(f *framework) any { return WholePercent(f.Evaluation.Percentage()) }),
		frameworkTable(list))}

	for i := range list {
		sections = append(sections, section(list[i].title, requirementTable(&list[i])))
	}
	return sections
}

// framework is a framework assignment of the client, with a title that no other assignment has.
type framework struct {
	domain.FrameworkAssignment
	title string
}

// frameworksOf reads all framework assignments of the client, with unique titles. It ends early if r has an error.
func frameworksOf(r *reading) (all []framework) {
	for w := (domain.Window{Limit: 100}); ; {
		page := current(r, func(t *db.Tenant, ctx context.Context) (domain.Slice[domain.FrameworkAssignment], error) {
			return t.Frameworks(ctx, nil /* since */, w)
		})
		for _, f := range page.Rows {
			all = append(all, framework{f, uniqueTitle(&f, all)})
		}
		if !page.More { // also after an error: page is then zero
			return all
		}
		w.After = page.End
	}
}

// uniqueTitle returns a title for an assignment: the framework's name, the audience unless it is all users, and a
// number if an earlier assignment has the same title.
func uniqueTitle(f *domain.FrameworkAssignment, earlier []framework) string {
	title := f.Framework.Name
	if f.Audience != domain.FrameworkForAll {
		title += ", " + audienceText(f)
	}
	unique := title
	for n := 2; slices.ContainsFunc(earlier, func(e framework) bool { return e.title == unique }); n++ {
		unique = fmt.Sprintf("%s (%d)", title, n)
	}
	return unique
}

// audienceText returns the name of an assignment's audience: all users, a group or a collection, or that it is deleted.
func audienceText(f *domain.FrameworkAssignment) string {
	switch {
	case f.Audience == domain.FrameworkForAll:
		return "All users"
	case f.AudienceName == "":
		return "a deleted " + string(f.Audience)
	}
	return f.AudienceName
}

// frameworkTable returns a table of the assignments' evaluations.
func frameworkTable(list []framework) Table {
	return Table{
		Title: "Frameworks",
		Columns: []Column{{Title: "Framework", Width: 4}, {Title: "Category", Width: 2}, {Title: "Audience", Width: 2},
			{Title: "Met", Kind: NumberColumn}, {Title: "Of", Kind: NumberColumn}, {Title: "Share", Kind: NumberColumn},
			{Title: "Evaluated (UTC)", Kind: TimeColumn}},
		Rows: listRows(list, func(f *framework) []any {
			e, audience := &f.Evaluation, any(audienceText(&f.FrameworkAssignment))
			if f.Audience == domain.FrameworkForAll || f.AudienceName == "" { // no text of the client
				audience = Word(audience.(string))
			}
			return []any{f.Framework.Name, f.Framework.Category, audience, e.Met, e.Total, WholePercent(e.Percentage()), e.At}
		}),
	}
}

// requirementTable returns a table of the requirements of an assignment.
func requirementTable(f *framework) Table {
	return Table{
		Title: f.title, Empty: "No module of this framework is enabled, so nothing is measured.",
		Columns: []Column{{Title: "Requirement", Width: 4}, {Title: "Met", Kind: YesNoColumn},
			{Title: "Measured", Kind: NumberColumn}, {Title: "Wanted"}, {Title: "Target", Kind: NumberColumn},
			{Title: "Detail", Width: 4}},
		Rows: listRows(f.Evaluation.Requirements, requirementCells),
	}
}

// requirementCells returns the row of a requirement. For a requirement that this release does not know, it has only the
// key, the result and the detail.
func requirementCells(r *domain.Requirement) []any {
	m := r.Key.Spec()
	if m.Key == "" { // written by a later release
		return []any{string(r.Key), r.Met, nil, nil, nil, r.Detail}
	}
	bound := "at least"
	if m.AtMost {
		bound = "at most"
	}
	number := func(v float64) any {
		if m.Key == domain.ComplianceReports { // a count; the others are rates
			return int(v)
		}
		if v == math.Trunc(v) {
			return WholePercent(v)
		}
		return Percent(v)
	}

	var measured any
	if r.Value != nil {
		measured = number(*r.Value)
	}
	return []any{m.Name, r.Met, measured, bound, number(m.Target), r.Detail}
}
