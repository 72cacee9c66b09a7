package db

// The rows of tables are exported for package seed, which copies them into a database
// that is not in use yet. What is stored beside them it makes too.
type (
	PartnerRow    = partnerRow
	ClientRow     = clientRow
	GroupRow      = groupRow
	ProgramRow    = programRow
	AdminRow      = adminRow
	UserRow       = userRow
	CollectionRow = collectionRow
	FrameworkRow  = frameworkRow
	ResultRow     = resultRow
	SentEmailRow  = sentEmailRow
	ReportRow     = reportRow
	KeyRow        = keyRow
	BreachRow     = breachRow
)
