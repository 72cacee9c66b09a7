package domain

import (
	"fmt"
	"time"
)

// ReportType says what a report is about.
type ReportType string

// The types of reports (decisions 8.10).
const (
	ExecutiveSummary     ReportType = "executive_summary"
	RiskOverview         ReportType = "risk_overview"
	PhishingOverview     ReportType = "phishing_overview"
	TrainingOverview     ReportType = "training_overview"
	TrainingPerformance  ReportType = "training_performance"
	EmployeeHistory      ReportType = "employee_history"
	CourseDetails        ReportType = "course_details"
	ComplianceReport     ReportType = "compliance"
	PolicyReport         ReportType = "policy"
	PolicyAcknowledgment ReportType = "policy_acknowledgment"
	DarkWebReport        ReportType = "dark_web"
	MonthlyReport        ReportType = "monthly_report"
	TrainingStatus       ReportType = "training_status_report"
	ManagerTraining      ReportType = "manager_dept_training_report"
	PhishingPerformance  ReportType = "phishing_performance"
	GlobalHealth         ReportType = "global_health_report"
)

// ReportTypes are all types, in the order of the interface.
var ReportTypes = []ReportType{
	ExecutiveSummary, RiskOverview, PhishingOverview, TrainingOverview, TrainingPerformance, EmployeeHistory,
	CourseDetails, ComplianceReport, PolicyReport, PolicyAcknowledgment, DarkWebReport, MonthlyReport,
	TrainingStatus, ManagerTraining, PhishingPerformance, GlobalHealth,
}

// Values lists the types.
func (ReportType) Values() []string { return texts(ReportTypes...) }

// HasPeriod reports whether a report of the type is about a period (decisions
// 8.9); one of another type is about the moment at which it is made.
func (t ReportType) HasPeriod() bool {
	switch t {
	case PhishingOverview, PhishingPerformance, TrainingOverview, TrainingPerformance, EmployeeHistory,
		DarkWebReport, ExecutiveSummary, MonthlyReport, GlobalHealth:
		return true
	}
	return false
}

// ReportPeriod is a range of days (UTC), both ends counted.
type ReportPeriod struct {
	Start, End Date
}

// MaxReportDays is how many days a report's period has at most.
const MaxReportDays = 366

// DefaultPeriod returns the period of a report requested today without one: the 90 days
// that end today, or the last calendar month for a monthly report.
func (t ReportType) DefaultPeriod(today Date) ReportPeriod {
	if t != MonthlyReport {
		return ReportPeriod{Start: today.AddDays(-89), End: today}
	}
	end := today.AddDays(-today.Time().Day())
	return ReportPeriod{Start: end.AddDays(1 - end.Time().Day()), End: end}
}

// ReportFormat is the form of a report's file.
type ReportFormat string

// The formats.
const (
	PDF  ReportFormat = "pdf"
	XLSX ReportFormat = "xlsx"
)

// Values lists the formats.
func (ReportFormat) Values() []string { return texts(PDF, XLSX) }

// ReportStatus says how far a report is.
type ReportStatus string

// The states of a report.
const (
	ReportPending ReportStatus = "pending"
	ReportReady   ReportStatus = "ready"
	ReportFailed  ReportStatus = "failed"
)

// Values lists the states.
func (ReportStatus) Values() []string { return texts(ReportPending, ReportReady, ReportFailed) }

const (
	// MaxReports is how many reports of a client are accepted within ReportWindow
	// (decisions 8.9).
	MaxReports = 5
	// ReportWindow is the sliding time in which reports are counted.
	ReportWindow = time.Hour
	// ReportLife is how long a report is kept.
	ReportLife = 90 * 24 * time.Hour
	// ReportLinkLife is how long a link to a report's file is valid.
	ReportLinkLife = 24 * time.Hour
	// ReportTries is the number of failed attempts after which a report has failed.
	ReportTries = 3
)

// CheckPeriod returns the faults of the period requested for a report of the type, by
// the field's path (period or below); nil if there are none.
func (t ReportType) CheckPeriod(p ReportPeriod, today Date) []FieldError {
	var faults []FieldError
	add := func(field, message string) { faults = append(faults, FieldError{Field: field, Message: message}) }
	if !t.HasPeriod() {
		add("period", "is not taken by a report of this type, which is about the moment at which it is made")
		return faults
	}

	if p.Start.After(today) {
		add("period.start_on", "must not be in the future")
	}
	switch {
	case p.End.After(today):
		add("period.end_on", "must not be in the future")
	case p.Start.After(p.End):
		add("period.start_on", "must not be after end_on")
	case p.Start.DaysUntil(p.End) >= MaxReportDays:
		add("period", fmt.Sprintf("must be at most %d days, counting both ends", MaxReportDays))
	}
	return faults
}

// ReportFilter says which reports a list shows. A zero field filters nothing.
type ReportFilter struct {
	Type         ReportType
	Status       ReportStatus
	UpdatedSince *time.Time
}

// Report is a report made from a client's data.
type Report struct {
	ID     ReportID
	Client ClientID
	Type   ReportType
	Format ReportFormat
	Status ReportStatus
	// Period is nil for a type without one.
	Period               *ReportPeriod
	CreatedAt, UpdatedAt time.Time
}

// Expired reports whether the report is older than reports are kept.
func (r Report) Expired(now time.Time) bool { return now.Sub(r.CreatedAt) > ReportLife }

// Previous is the period of the same length before p: the month before, where p is
// a calendar month.
func (p ReportPeriod) Previous() ReportPeriod {
	end := p.Start.AddDays(-1)
	if p.Start == monthOf(p.Start) && p.End.AddDays(1) == monthOf(p.Start.AddDays(31)) {
		return ReportPeriod{Start: monthOf(end), End: end}
	}
	return ReportPeriod{Start: end.AddDays(-p.Start.DaysUntil(p.End)), End: end}
}

// Health is what clients are compared by. A field is nil where there is nothing to
// compare; rates are percentages.
type Health struct {
	AverageScore *float64
	// HighRisk is the share of the active users who are of high risk.
	HighRisk, OnTrack *float64
	// The phishing rates are those of the client's summary, of the last 90 days;
	// MailsPerUser is how many mails an active user was sent in a period.
	MailsPerUser, ClickRate, ReportRate *float64
	// ExposuresPer100 is the number of unresolved exposures per 100 active users, for
	// clients with Dark Web Monitoring.
	ExposuresPer100 *float64
	// Signed is the share of the signatures asked for by policies that is given.
	Signed *float64
	// FrameworksMet is the share of the requirements of frameworks that are met.
	FrameworksMet *float64
}

// LeastPeers is the least number of other clients for which their averages are shown.
const LeastPeers = 3
