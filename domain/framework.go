package domain

import (
	"slices"
	"strings"
	"time"
)

// Measure is what a framework asks to be measured (decisions 7.7).
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

// MeasureSpec is what a measure means: its target is a percentage, or for
// ComplianceReports a number of reports.
type MeasureSpec struct {
	Key    Measure
	Name   string
	Module Module
	Target float64
	// AtMost says that the value must not exceed the target, rather than reach it.
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
	{ComplianceReports, "Compliance reports made within 90 days", ReportingModule, 1, false},
}

// Framework is a framework of the catalogue, which all clients share. Its courses
// are in the database.
type Framework struct {
	ID, Name, Category string
	// Measures are in the order of the list Measures.
	Measures []Measure
}

// Frameworks is the catalogue, by id. Ids are keys that callers may rely on.
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

// FrameworkAudienceType says whom a framework is assigned to.
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

// FrameworkModules says which modules of a framework are on. A measure is
// evaluated only where its module is.
type FrameworkModules struct {
	Training, Phishing, Policies, Reporting bool
}

// FrameworkAssignment records that a client follows a framework for some of its users.
type FrameworkAssignment struct {
	ID        FrameworkAssignmentID
	Client    ClientID
	Framework Framework
	Audience  FrameworkAudienceType
	// AudienceID is the UUID of the group or collection; zero for all users.
	AudienceID [16]byte
	// AudienceName is empty for all users, and where the collection was deleted.
	AudienceName string
	Modules      FrameworkModules
	Evaluation   Evaluation
	CreatedAt    time.Time
}

// Evaluation is how far a framework assignment was met at a moment.
type Evaluation struct {
	Requirements []Requirement
	Met, Total   int
	At           time.Time
}

// Percentage is met of total, rounded half up; 0 without requirements.
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
	// Value is nil where there is nothing to measure.
	Value *float64
	// Detail says the numerator and the denominator in words.
	Detail string
}

// FrameworkByID finds a framework of the catalogue.
func FrameworkByID(id string) (Framework, bool) {
	i, found := slices.BinarySearchFunc(Frameworks, id, func(f Framework, id string) int {
		return strings.Compare(f.ID, id)
	})
	if !found {
		return Framework{}, false
	}
	return Frameworks[i], true
}

// Spec returns the definition of the measure; the zero MeasureSpec for a key that is
// not in Measures.
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

// CatalogueFramework is a framework with the courses that it asks for, those of
// all users first, then by title.
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
	// Size is how many users the audience has, inactive ones included.
	Size int
}

// Scheduled says how many users are given a course.
type Scheduled struct {
	Course CourseID
	Title  string
	Users  int
}
