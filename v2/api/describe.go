package api

import (
	"embed"
	"io/fs"

	"partnerapi/v2/op"
)

// Tags are the resources under which documents list operations. The declaration of an operation names its resource.
var Tags = []op.Tag{
	{Name: "partner", Title: "Partner", Description: "The partner that your API key belongs to, and the admins who have access to all its clients."},
	{Name: "key", Title: "Key", Description: "The API key that sends the request."},
	{Name: "usage", Title: "Usage", Description: "Each client's number of active users by month or day, for billing."},
	{Name: "audit", Title: "Audit log", Description: "A record of who changed what, through the API or with a command run by the service's operator. Entries are kept for 400 days."},
	{Name: "clients", Title: "Clients", Description: "The client organizations that the partner manages, each with a summary of its users, risk, training and phishing."},
	{Name: "admins", Title: "Admins", Description: "A client's dashboard admins, and invites for new admins."},
	{Name: "users", Title: "Users", Description: "A client's users and the emails sent to them. Users are created manually, through the API or by a directory sync."},
	{Name: "risk", Title: "Risk", Description: "Scores from 0 to 1000 and grades from A to F. A score starts at the baseline for the user's role and changes with each signal; " +
		"recent signals carry more weight."},
	{Name: "training", Title: "Training", Description: "Courses and their assignments to users, with due dates and status."},
	{Name: "phishing", Title: "Phishing", Description: "Phishing simulations and their outcomes, and the emails that users reported."},
	{Name: "collections", Title: "Collections", Description: "Named groups of a client's users, which can be audiences for courses, frameworks and policies."},
	{Name: "frameworks", Title: "Frameworks", Description: "Compliance frameworks, their assignments to audiences, and the evaluation of their requirements."},
	{Name: "policies", Title: "Policies", Description: "A client's policies, and whether the users in their audience have signed the current version."},
	{Name: "dark_web", Title: "Dark Web Monitoring", Description: "Exposures: user data that was found in breaches. Breach data comes from " +
		"[Have I Been Pwned](https://haveibeenpwned.com) under CC BY 4.0."},
	{Name: "reports", Title: "Reports", Description: "PDF or XLSX files about a client, generated in the background and kept for 90 days."},
	{Name: "sync", Title: "Directory sync", Description: "Runs that update a client's users from its Microsoft or Google directory."},
	{Name: "webhooks", Title: "Webhooks", Description: "Subscriptions to events, and the status of each delivery. The service delivers events as signed HTTPS requests."},
	{Name: "events", Title: "Events", Description: "Changes to your clients, in order of publication. Events are kept for 30 days."},
}

// Objects holds the descriptions of the main schemas, by their names.
var Objects = map[string]string{
	"Partner":                "The partner that the API key belongs to, with the admins who have access to all its clients.",
	"Key":                    "The API key that sent the request, without its secret.",
	"Usage":                  "The number of a client's active users in a month or on a day.",
	"AuditEntry":             "A successful change with its actor, object and field names, but no values.",
	"Client":                 "A client organization that the partner manages, with a summary of its users, risk, training and phishing.",
	"Admin":                  "A dashboard admin with access to one client or to all of the partner's clients.",
	"AdminInvite":            "An invite that the service will email.",
	"User":                   "A user of a client.",
	"UserDetail":             "A user, including the risk score, collections and exposures.",
	"SentEmail":              "An email that the service sent to a user.",
	"ClientRisk":             "The risk of a client's active users as a group.",
	"UserRisk":               "A user's risk score, with its baseline and factors.",
	"Course":                 "A course that you can assign to users.",
	"TrainingAssignment":     "A course assigned to a user, with its due date and status.",
	"UserTrainingAssignment": "A course assigned to a user, with the user's ID, the due date and the status.",
	"PhishingLabel":          "A label for simulated emails, with the number of emails by outcome.",
	"PhishingTemplate":       "A template for simulated emails.",
	"PhishingResult":         "A simulated email to a user, with its outcome.",
	"PhishingSend":           "A scheduled simulated email.",
	"ReportedEmail":          "An email, other than a simulation, that a user reported.",
	"Collection":             "A named group of a client's users.",
	"CollectionMember":       "A member of a collection.",
	"Framework":              "A compliance framework.",
	"FrameworkAssignment":    "The assignment of a framework to an audience within a client.",
	"Policy":                 "A client's policy, with the number of users who have signed it.",
	"PolicyUser":             "A user in a policy's audience, and whether the user has signed the current version.",
	"Exposure":               "User data that was found in a breach.",
	"DarkWebUser":            "A user with exposure counts.",
	"FrameworkEvaluation":    "A framework's requirements, and which of them are met.",
	"Report":                 "A file about a client, generated in the background.",
	"ReportDetail":           "A report, with the download link for its file.",
	"SyncRun":                "A run that updates a client's users from its directory.",
	"Webhook":                "A subscription to events.",
	"WebhookDelivery":        "The delivery of an event to a webhook, with its attempts.",
	"Event":                  "A change to a client, as it appears in the list of events and in webhook deliveries.",
	"ErrorEnvelope":          "The body of every error response.",
	"FieldError":             "A part of the request that is invalid or conflicts with an existing object.",
}

//go:embed examples/*.json
var examples embed.FS

// Examples holds an example of every operation, in files ID.json. TestExamples writes them with -update.
var Examples, _ = fs.Sub(examples, "examples") // it fails for an invalid path only
