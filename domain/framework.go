package domain

import (
	"slices"
	"strings"
	"time"
)

// Measure is the key of a measure by which a framework is evaluated (decisions 7.7).
type Measure string

// The measures: of training, phishing, policies and reporting.
const (
	RequiredTraining  Measure = "T1"
	NewUserTraining   Measure = "T2"
	RoleTraining      Measure = "T3"
	NothingOverdue    Measure = "T4"
	SimulationReach   Measure = "P1"
	ClickRate         Measure = "P2"
	ReportRate        Measure = "P3"
	FailureFollowUp   Measure = "P4"
	PoliciesSigned    Measure = "A1"
	PoliciesReviewed  Measure = "A2"
	ComplianceReports Measure = "R1"
)

// Module is a part of the service that a framework assignment may leave out.
type Module string

// The modules.
const (
	TrainingModule  Module = "training"
	PhishingModule  Module = "phishing"
	PoliciesModule  Module = "policies"
	ReportingModule Module = "reporting"
)

// Values lists the modules.
func (Module) Values() []string {
	return texts(TrainingModule, PhishingModule, PoliciesModule, ReportingModule)
}

// MeasureSpec is the definition of a measure. Target is a percentage or, for ComplianceReports, a number of reports.
type MeasureSpec struct {
	Key    Measure
	Name   string
	Module Module
	Target float64
	// AtMost is true if the value must be at most the target. Otherwise it must be at least the target.
	AtMost bool
}

// Measures are all measures, in the order in which a framework shows them.
var Measures = []MeasureSpec{
	{RequiredTraining, "Required courses completed within a year", TrainingModule, 100, false},
	{NewUserTraining, "New users trained within 30 days", TrainingModule, 100, false},
	{RoleTraining, "Role courses completed within a year", TrainingModule, 100, false},
	{NothingOverdue, "Users with nothing overdue", TrainingModule, 95, false},
	{SimulationReach, "Users simulated within 90 days", PhishingModule, 95, false},
	{ClickRate, "Click rate of the last 90 days", PhishingModule, 5, true},
	{ReportRate, "Report rate of the last 90 days", PhishingModule, 20, false},
	{FailureFollowUp, "Failed simulations followed by a course within 30 days", PhishingModule, 90, false},
	{PoliciesSigned, "Users who signed the current policies", PoliciesModule, 100, false},
	{PoliciesReviewed, "Policies reviewed within a year", PoliciesModule, 100, false},
	{ComplianceReports, "Compliance reports generated within 90 days", ReportingModule, 1, false},
}

// Framework is a framework of the catalogue, which all clients share. Its courses are in the database.
type Framework struct {
	ID, Name, Category string
	// Measures are in the order of the list Measures.
	Measures []Measure
}

// Frameworks is the catalogue, sorted by id. The ids must never change: callers store them.
var Frameworks = []Framework{
	{"cis_v8", "CIS Critical Security Controls v8", "Security controls", []Measure{"T1", "T2", "T3", "P3", "A2"}},
	{"cmmc_l2", "CMMC Level 2", "Government", []Measure{"T1", "T3", "T4"}},
	{"ftc_safeguards", "FTC Safeguards Rule", "Finance", []Measure{"T1", "T4", "P4", "R1"}},
	{"gdpr", "General Data Protection Regulation", "Privacy", []Measure{"T1", "A1", "R1"}},
	{"hipaa", "HIPAA Security Rule", "Healthcare", []Measure{"T1", "T2", "P1", "A1", "R1"}},
	{"iso_27001", "ISO/IEC 27001", "Information security", []Measure{"T1", "P3", "A1", "A2"}},
	{"nist_800_53", "NIST SP 800-53", "Government", []Measure{"T1", "T2", "T3", "P1", "R1"}},
	{"nist_csf", "NIST Cybersecurity Framework", "Information security", []Measure{"T1", "T3", "P2", "P3"}},
	{"nydfs", "NYDFS Cybersecurity Regulation", "Finance", []Measure{"T1", "P1", "P2", "R1"}},
	{"pci_dss", "PCI DSS", "Payments", []Measure{"T1", "T2", "P1", "A1", "A2"}},
	{"soc2", "SOC 2", "Information security", []Measure{"T1", "T2", "A1", "R1"}},
}

// FrameworkAudienceType is the type of the audience to which a framework is assigned.
type FrameworkAudienceType string

// The types of audiences of frameworks.
const (
	FrameworkForAll        FrameworkAudienceType = "all"
	FrameworkForGroup      FrameworkAudienceType = "group"
	FrameworkForCollection FrameworkAudienceType = "collection"
)

// Values lists the types.
func (FrameworkAudienceType) Values() []string {
	return texts(FrameworkForAll, FrameworkForGroup, FrameworkForCollection)
}

// FrameworkModules reports which modules of a framework assignment are on. Only measures of these modules are
// evaluated.
type FrameworkModules struct {
	Training, Phishing, Policies, Reporting bool
}

// FrameworkAssignment is the assignment of a framework to an audience of a client's users.
type FrameworkAssignment struct {
	ID        FrameworkAssignmentID
	Client    ClientID
	Framework Framework
	Audience  FrameworkAudienceType
	// AudienceID is the UUID of the group or collection; zero for all users.
	AudienceID [16]byte
	// AudienceName is empty for all users, and for a deleted collection.
	AudienceName string
	Modules      FrameworkModules
	Evaluation   Evaluation
	CreatedAt    time.Time
	// UpdatedAt is the time of the last change of the assignment, of the result of its evaluation or of its collection.
	UpdatedAt time.Time
}

// Evaluation is the evaluation of a framework assignment at a time.
type Evaluation struct {
	Requirements []Requirement
	Met, Total   int
	At           time.Time
}

// Percentage returns Met as a percentage of Total, rounded half up. Without requirements it returns 0.
func (e *Evaluation) Percentage() int {
	if e.Total == 0 {
		return 0
	}
	return (200*e.Met + e.Total) / (2 * e.Total)
}

// Requirement is one measure of an evaluation.
type Requirement struct {
	Key Measure
	Met bool
	// Value is nil if there is nothing to measure.
	Value *float64
	// Detail is a text with the numerator and the denominator.
	Detail string
}

// FrameworkByID returns a framework of the catalogue, which is sorted by id; false if there is none with the id.
func FrameworkByID(id string) (Framework, bool) {
	i, found := slices.BinarySearchFunc(Frameworks, id, func(f Framework, id string) int {
		return strings.Compare(f.ID, id)
	})
	if !found {
		return Framework{}, false
	}
	return Frameworks[i], true
}

// Spec returns the definition of the measure. For a key that is not in Measures it returns the zero MeasureSpec.
func (m Measure) Spec() MeasureSpec {
	for _, s := range Measures {
		if s.Key == m {
			return s
		}
	}
	return MeasureSpec{}
}

// RequiredCourse is a course that a framework requires of its audience.
type RequiredCourse struct {
	Course CourseID
	Title  string
	// Role is the role whose users must complete the course; empty for all users.
	Role Role
}

// CatalogueFramework is a framework with the courses that it requires: first those for all users, then those for roles,
// both by title.
type CatalogueFramework struct {
	Framework
	Courses []RequiredCourse
}

// NewFrameworkAssignment is a requested framework assignment.
type NewFrameworkAssignment struct {
	ID        FrameworkAssignmentID
	Framework Framework
	Audience  Audience
	Modules   FrameworkModules
	// Size is the number of users of the audience, including inactive ones.
	Size int
}

// Scheduled is the number of users who are enrolled in a course.
type Scheduled struct {
	Course CourseID
	Title  string
	Users  int
}
