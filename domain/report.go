package domain

import (
	"fmt"
	"time"
)

// ReportType is the type of a report.
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

// ReportTypes are all types, in the order in which the API lists them.
var ReportTypes = []ReportType{
	ExecutiveSummary, RiskOverview, PhishingOverview, TrainingOverview, TrainingPerformance, EmployeeHistory,
	CourseDetails, ComplianceReport, PolicyReport, PolicyAcknowledgment, DarkWebReport, MonthlyReport,
	TrainingStatus, ManagerTraining, PhishingPerformance, GlobalHealth,
}

// Values lists the types.
func (ReportType) Values() []string { return texts(ReportTypes...) }

// HasPeriod reports whether a report of the type is about a period (decisions 8.9). Reports of other types are about
// the time at which they are generated.
func (t ReportType) HasPeriod() bool {
	switch t {
	case PhishingOverview, PhishingPerformance, TrainingOverview, TrainingPerformance, EmployeeHistory,
		DarkWebReport, ExecutiveSummary, MonthlyReport, GlobalHealth:
		return true
	}
	return false
}

// ReportPeriod is a range of days (UTC), including both ends.
type ReportPeriod struct {
	Start, End Date
}

// MaxReportDays is the maximum number of days of a report's period.
const MaxReportDays = 366

// DefaultPeriod returns the period of a report that is requested today without a period: the 90 days that end today or,
// for a monthly report, the last calendar month.
func (t ReportType) DefaultPeriod(today Date) ReportPeriod {
	if t != MonthlyReport {
		return ReportPeriod{Start: today.AddDays(-89), End: today}
	}
	end := today.AddDays(-today.Time().Day()) // the last day of the previous month
	return ReportPeriod{Start: end.AddDays(1 - end.Time().Day()), End: end}
}

// ReportFormat is the format of a report's file.
type ReportFormat string

// The formats.
const (
	PDF  ReportFormat = "pdf"
	XLSX ReportFormat = "xlsx"
)

// Values lists the formats.
func (ReportFormat) Values() []string { return texts(PDF, XLSX) }

// ReportStatus is the status of a report.
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
	// MaxReports bounds the reports of a client that are accepted within ReportWindow (decisions 8.9).
	MaxReports = 5
	// ReportWindow is the sliding window in which reports are counted.
	ReportWindow = time.Hour
	// ReportLife is how long a report is kept.
	ReportLife = 90 * 24 * time.Hour
	// ReportLinkLife is how long a link to a report's file is valid.
	ReportLinkLife = 24 * time.Hour
	// ReportTries is the number of failed attempts after which a report has failed.
	ReportTries = 3
	// ReportWait is how long after its request a report waits for the report store, the disk or the database, whose
	// failures are no attempts (decisions 8.9). MonthlyReportWait is that of the report of a monthly email.
	ReportWait        = 24 * time.Hour
	MonthlyReportWait = 7 * 24 * time.Hour
)

// CheckPeriod returns the faults of a period that is requested for a report of the type, or nil. Their fields are
// period, or paths of its members.
func (t ReportType) CheckPeriod(p ReportPeriod, today Date) []FieldError {
	var faults []FieldError
	add := func(field, message string) { faults = append(faults, FieldError{Field: field, Message: message}) }
	if !t.HasPeriod() {
		add("period", "is not allowed for this type of report, which describes the state at generation time")
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
		add("period", fmt.Sprintf("must be at most %d days, including the first and last day", MaxReportDays))
	}
	return faults
}

// ReportFilter selects reports. A zero field does not restrict them.
type ReportFilter struct {
	Type         ReportType
	Status       ReportStatus
	UpdatedSince *time.Time
}

// Report is a report on a client's data.
type Report struct {
	ID     ReportID `bun:",pk"`
	Client ClientID `bun:"client_id,pk"`
	Type   ReportType
	Format ReportFormat
	Status ReportStatus
	// Period is nil for a type without one.
	Period               *ReportPeriod `bun:"-"`
	CreatedAt, UpdatedAt time.Time
}

// Expired reports whether the report is older than ReportLife.
func (r Report) Expired(now time.Time) bool { return now.Sub(r.CreatedAt) > ReportLife }

// Previous returns the period of the same length before p or, if p is a calendar month, the previous month.
func (p ReportPeriod) Previous() ReportPeriod {
	end := p.Start.AddDays(-1)
	if p.Start == monthOf(p.Start) && p.End.AddDays(1) == monthOf(p.Start.AddDays(31)) { // a calendar month
		return ReportPeriod{Start: monthOf(end), End: end}
	}
	return ReportPeriod{Start: end.AddDays(-p.Start.DaysUntil(p.End)), End: end}
}

// Health is the figures by which clients are compared. A field is nil if there are no data. Rates and shares are
// percentages.
type Health struct {
	AverageScore *float64
	// HighRisk is the share of the active users who are of high risk, and OnTrack of those without an overdue course.
	HighRisk, OnTrack *float64
	// MailsPerUser is the number of simulated emails per active user in a period. The rates are those of the client's
	// summary, of the last 90 days.
	MailsPerUser, ClickRate, ReportRate *float64
	// ExposuresPer100 is the number of unresolved exposures per 100 active users, for clients with Dark Web Monitoring.
	ExposuresPer100 *float64
	// Signed is the share of the signatures required by policies that are valid.
	Signed *float64
	// FrameworksMet is the share of the requirements of frameworks that are met.
	FrameworksMet *float64
}

// LeastPeers is the minimum number of other clients for which their averages are shown.
const LeastPeers = 3
