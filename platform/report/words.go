package report

// pageWords are the words of pages for words of the report, where they differ: titles of tables, charts, columns and
// series, and cells that are a Word. An XLSX file keeps the words of 1.0, because programs find sheets, columns and rows
// by them.
var pageWords = map[string]string{
	"Better": betterSign + "Better",
	"Worse":  worseSign + "Worse",

	"Users by grade":           "Employees by grade",
	"Users and grades":         "Grades",
	"Users on track":           "Employees on track",
	"Training by user":         "Training by employee",
	"Phishing by user":         "Phishing by employee",
	"Exposures by user":        "Exposures by employee",
	"What became of the mails": "Simulation outcomes",
	"Where the courses stand":  "Course progress",
	"Signatures asked for":     "Requested signatures",
	"Policies signed least":    "Policies with the fewest signatures",
	"Not completed":            "Open courses",

	"Users":        "Employees",
	"Not given":    "Not assigned",
	"What":         "Count",
	"To be signed": "Signature required",
	"Unsigned":     "Missing",
	"Wanted":       "Required",
	"Compared":     "Comparison",
	"Signed rate":  "Share signed",

	"In 365 days":        "Completed in 365 days",
	"In this period":     "Completed in this period",
	"Oldest due on":      "Oldest due date",
	"Clicks in a year":   "Clicks in 365 days",
	"Highest unresolved": "Highest unresolved severity",
	"Period before":      "Previous period",
	"Average of others":  "Average of other clients",
	"Found in period":    "Found in this period",
	"Resolved in period": "Resolved in this period",

	"All users":                          "All employees",
	"Nobody: what it was for is deleted": "None: its group or collection was deleted",
	"a deleted group":                    "Deleted group",
	"a deleted collection":               "Deleted collection",
	"Like others":                        "Same",
	"mails":                              "emails",
	"Simulated mails sent":               "Simulated emails sent",
	"High-risk users":                    "High-risk employees",
	"Users on track with training":       "Employees on track with training",
	"Simulated mails sent per user":      "Simulated emails sent per employee",
	"Unresolved exposures of 100 users":  "Unresolved exposures per 100 employees",
	"Click rate of the last 90 days":     "Click rate, last 90 days",
	"Report rate of the last 90 days":    "Report rate, last 90 days",
	"Average risk score at the end":      "Average risk score at the end of the period",

	"Simulated mail sent":                   "Simulated email sent",
	"Simulated mail opened":                 "Simulated email opened",
	"Simulated mail: attachment opened":     "Simulated email: attachment opened",
	"Simulated mail: link clicked":          "Simulated email: link clicked",
	"Simulated mail: credentials submitted": "Simulated email: credentials submitted",
	"Simulated mail reported":               "Simulated email reported",
	"Real mail reported":                    "Email reported",
}

// onPage returns the words of a page for a word of the report.
func onPage(word string) string {
	if words, ok := pageWords[word]; ok {
		return words
	}
	return word
}
