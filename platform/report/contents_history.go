package report

import (
	"slices"

	"partnerapi/db/reports"
	"partnerapi/domain"
)

// historyTexts are the texts of the kinds of events.
var historyTexts = map[domain.HistoryKind]string{
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

// employeeHistory returns the contents of a report of all events of users in the period. It has figures of exposures
// only with Dark Web Monitoring.
func employeeHistory(r *reading) []Section {
	n := map[domain.HistoryKind]int{}
	for _, c := range read(r, reports.HistoryCounts.All) {
		n[c.Kind] = c.Events
	}

	t := r.tenant
	figures := blocks{
		Figures{
			countFigure("Active users", t.ActiveUsers, ""),
			countFigure("Courses completed", n[domain.HistoryCompleted], "%d assigned", n[domain.HistoryAssigned]),
			countFigure("Simulated mails", n[domain.HistorySent], "sent"),
			countFigure("Policies signed", n[domain.HistorySigned], ""),
		},
		Figures{
			countFigure("Links clicked", n[domain.HistoryClicked], "in simulated mails"),
			countFigure("Simulated mails reported", n[domain.HistoryReported], ""),
			countFigure("Real mails reported", n[domain.HistoryRealMail], ""),
		},
	}
	if t.DarkWebMonitoring {
		figures = append(figures, Figures{
			countFigure("Exposures found", n[domain.HistoryExposed], ""),
			countFigure("Exposures resolved", n[domain.HistoryResolved], ""),
		}, Text(breachSource))
	}

	return []Section{
		section("Summary", noUsersNote(t.ActiveUsers), figures),
		section("Every user", Table{
			Title: "History", GroupBy: len(personColumns), Empty: "Nothing happened to an active user in this period.",
			Columns: slices.Concat(personColumns, []Column{{Title: "Time (UTC)", Kind: TimeColumn, Width: 2},
				{Title: "Event", Width: 3}, {Title: "Subject", Width: 4}}),
			Rows: statementRows(r, reports.History, func(e *domain.HistoryEvent) []any {
				return personCells(&e.Person, e.At, historyTexts[e.Kind], historySubject(e))
			}),
		}),
	}
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
