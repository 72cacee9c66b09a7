package report

import (
	"fmt"
	"slices"

	"partnerapi/domain"
)

// compliance returns the contents of a report of the client's frameworks, with a section for each assignment.
func compliance(r *reading) []Section {
	list := frameworksOf(r)
	if len(list) == 0 {
		return []Section{section("Summary", Text("The client follows no framework. Assign one to measure training, "+
			"phishing, policies and reporting against its requirements."))}
	}

	complete, requirements, fulfilled := 0, 0, 0 // frameworks with all requirements met, requirements, met requirements
	for _, f := range list {
		requirements += f.Evaluation.Total
		fulfilled += f.Evaluation.Met
		if f.Evaluation.Met == f.Evaluation.Total {
			complete++
		}
	}
	names := uniqueNames(list)
	sections := []Section{section("Summary",
		Text("Each framework asks for measures of its own. A measure without anything to count is not met."),
		Figures{
			countFigure("Frameworks", len(list), "%d met in full", complete), met("Requirements", fulfilled, requirements),
		},
		bars("Requirements met", "%", names, func(name *string) string { return *name },
			func(name *string) float64 { return float64(list[slices.Index(names, *name)].Evaluation.Percentage()) }),
		frameworkTable(list))}

	for i := range list {
		sections = append(sections, section(names[i], requirementTable(names[i], &list[i])))
	}
	return sections
}

// uniqueNames returns a title for each assignment: the framework's name, with the audience unless it is all users, and
// a number if the title is not unique.
func uniqueNames(list []domain.FrameworkAssignment) (names []string) {
	for i := range list {
		name := list[i].Framework.Name
		if list[i].Audience != domain.FrameworkForAll {
			name += ", " + audienceText(&list[i])
		}
		unique := name
		for n := 2; slices.Contains(names, unique); n++ {
			unique = fmt.Sprintf("%s (%d)", name, n)
		}
		names = append(names, unique)
	}
	return names
}

// audienceText returns the name of an assignment's audience.
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
func frameworkTable(list []domain.FrameworkAssignment) Table {
	return Table{
		Title: "Frameworks",
		Columns: []Column{{Title: "Framework", Width: 4}, {Title: "Category", Width: 2}, {Title: "Audience", Width: 2},
			{Title: "Met", Kind: NumberColumn}, {Title: "Of", Kind: NumberColumn}, {Title: "Share", Kind: NumberColumn},
			{Title: "Evaluated (UTC)", Kind: TimeColumn}},
		Rows: listed(list, func(f *domain.FrameworkAssignment) []any {
			e := &f.Evaluation
			return []any{f.Framework.Name, f.Framework.Category, audienceText(f), e.Met, e.Total, Percent(e.Percentage()), e.At}
		}),
	}
}

// requirementTable returns a table of the requirements of an assignment.
func requirementTable(title string, f *domain.FrameworkAssignment) Table {
	return Table{
		Title: title, Empty: "No module of this framework is on, so that nothing is measured.",
		Columns: []Column{{Title: "Requirement", Width: 4}, {Title: "Met", Kind: YesNoColumn},
			{Title: "Measured", Kind: NumberColumn}, {Title: "Wanted"}, {Title: "Target", Kind: NumberColumn}, {Title: "Detail", Width: 4}},
		Rows: listed(f.Evaluation.Requirements, requirementCells),
	}
}

// requirementCells returns a requirement's row. An unknown requirement has its key, the result and the detail only.
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
		if m.Key == domain.ComplianceReports {
			return int(v)
		}
		return Percent(v)
	}

	var measured any
	if r.Value != nil {
		measured = number(*r.Value)
	}
	return []any{m.Name, r.Met, measured, bound, number(m.Target), r.Detail}
}
