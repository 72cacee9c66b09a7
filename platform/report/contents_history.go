package report

import (
	"slices"

	"partnerapi/db/reports"
	"partnerapi/domain"
)

// historyTexts are the texts of the kinds of events.
var historyTexts = map[domain.HistoryKind]Word{
	domain.HistoryAssigned:    "Course assigned",
	domain.HistoryCompleted:   "Course completed",
	domain.HistorySent:        "Simulated mail sent",
	domain.HistoryOpened:      "Simulated mail opened",
	domain.HistoryAttachment:  "Simulated mail: attachment opened",
	domain.HistoryClicked:     "Simulated mail: link clicked",
	domain.HistoryCredentials: "Simulated mail: credentials submitted",
	domain.HistoryReported:    "Simulated mail reported",
	domain.HistoryRealMail:    "Real mail reported",
	domain.HistorySigned:      "Policy signed",
	domain.HistoryExposed:     "Exposure found",
	domain.HistoryResolved:    "Exposure resolved",
}

// employeeHistory returns the contents of a report of all events of users in the period, after a page about the employees
// who need attention. It has figures of exposures only with Dark Web Monitoring.
func employeeHistory(r *reading) []Section {
	n, earlier := map[domain.HistoryKind]int{}, map[domain.HistoryKind]int{}
	events := 0 // of the period before
	for _, c := range read(r, reports.HistoryCounts.All) {
		n[c.Kind], earlier[c.Kind] = c.Events, c.Earlier
		events += c.Earlier
	}
	count := func(label string, kind domain.HistoryKind, d direction, note string, args ...any) Figure {
		return countFigure(label, n[kind], note, args...).against(countOr(earlier[kind], events > 0), d)
	}

	t := r.tenant
	figures := blocks{
		Figures{
			count("Courses completed", domain.HistoryCompleted, neither, "%d assigned", n[domain.HistoryAssigned]),
			count("Policies signed", domain.HistorySigned, neither, "in this period"),
			count("Simulated emails sent", domain.HistorySent, neither, "to active employees"),
			count("Links clicked", domain.HistoryClicked, lowerIsBetter, "in simulated emails"),
		},
		Figures{
			count("Simulated emails reported", domain.HistoryReported, neither, "by active employees"),
			count("Emails reported", domain.HistoryRealMail, neither, "excluding simulated emails"),
		},
	}
	if t.DarkWebMonitoring {
		figures[1] = append(figures[1].(Figures),
			count("Exposures found", domain.HistoryExposed, lowerIsBetter, "in this period"),
			count("Exposures resolved", domain.HistoryResolved, neither, "in this period"))
		figures = append(figures, Text(breachSource))
	}

	attention, employees := attentionSections(r)
	return append(attention,
		sectionAfter(employees, "Activity", noUsersNote(t.ActiveUsers), figures),
		section("All employees", Table{
			Title: "History", GroupBy: len(personColumns), Empty: "No events were recorded for active employees in this period.",
			Columns: slices.Concat(personColumns, []Column{{Title: "Time (UTC)", Kind: TimeColumn, Width: 2},
				{Title: "Event", Width: 3}, {Title: "Subject", Width: 4}}),
			Rows: statementRows(r, reports.History, func(e *domain.HistoryEvent) []any {
				return personCells(&e.Person, e.At, historyTexts[e.Kind], historySubject(e))
			}),
		}))
}

// historySubject returns the subject of an event, such as a course, with the version if it is a policy, or "(no
// subject)".
func historySubject(e *domain.HistoryEvent) string {
	switch {
	case e.Version > 0:
		return english.Sprintf("%s (version %d)", e.Subject, e.Version)
	case e.Subject == "":
		return "(no subject)"
	}
	return e.Subject
}
