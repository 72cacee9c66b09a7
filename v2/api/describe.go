package api

import (
	"embed"
	"io/fs"

	"partnerapi/v2/op"
)

// Tags are the resources under which documents list operations. The declaration of an operation names its resource.
var Tags = []op.Tag{
	{Name: "partner", Title: "Partner", Description: "The partner that the key belongs to, and the admins who see all of its clients."},
	{Name: "key", Title: "Key", Description: "The API key that a request is made with."},
	{Name: "clients", Title: "Clients", Description: "The organizations that the partner looks after, each with a summary of its users, risk, training and phishing."},
	{Name: "admins", Title: "Admins", Description: "The people who use a client's dashboard."},
	{Name: "users", Title: "Users", Description: "The people of a client, whether made by hand, by this interface or by a directory sync, and the mails that they were sent."},
	{Name: "risk", Title: "Risk", Description: "Scores from 0 to 1000 and grades from A to F. A score starts at the baseline of the user's role and moves with each signal; " +
		"recent signals weigh more."},
	{Name: "training", Title: "Training", Description: "Courses, and which users are to complete them by when."},
	{Name: "phishing", Title: "Phishing", Description: "Simulated phishing mails with what became of them, and the real mails that users reported."},
	{Name: "collections", Title: "Collections", Description: "Groups of a client's users that are put together by hand, to be audiences of courses, frameworks and policies."},
	{Name: "frameworks", Title: "Frameworks", Description: "Compliance frameworks, their assignments to audiences, and how far each of their measures is met."},
	{Name: "policies", Title: "Policies", Description: "A client's policies, and who of their audience signed the current version."},
	{Name: "dark_web", Title: "Dark Web Monitoring", Description: "Exposures: data of users that was found in breaches. Data on breaches comes from " +
		"[Have I Been Pwned](https://haveibeenpwned.com) under CC BY 4.0."},
	{Name: "reports", Title: "Reports", Description: "Files about a client as PDF or XLSX, made in the background and kept for 90 days."},
	{Name: "sync", Title: "Directory sync", Description: "Runs that bring a client's users in line with its Microsoft or Google directory."},
	{Name: "webhooks", Title: "Webhooks", Description: "Subscriptions to events, which are delivered as signed HTTPS requests, and what became of the deliveries."},
	{Name: "events", Title: "Events", Description: "What changed, in the order in which it was committed. Kept for 30 days."},
}

// Objects holds the descriptions of the main schemas, by their names.
var Objects = map[string]string{
	"Partner":                "The partner that the key belongs to, with the admins who see all of its clients.",
	"Key":                    "The API key of the request, without its secret.",
	"Client":                 "An organization that the partner looks after, with a summary of its users, risk, training and phishing.",
	"Admin":                  "A person who uses a client's dashboard.",
	"AdminInvite":            "An invite that is on its way.",
	"User":                   "A person of a client.",
	"UserDetail":             "A user, with risk, collections and exposures.",
	"SentEmail":              "A mail that was sent to a user.",
	"ClientRisk":             "The risk of a client's active users together.",
	"UserRisk":               "A user's score, with what it is made of.",
	"Course":                 "A course that users can be given.",
	"TrainingAssignment":     "Where a user stands with a course.",
	"UserTrainingAssignment": "Where a user of a client stands with a course.",
	"PhishingTemplate":       "A simulated phishing mail that can be sent.",
	"PhishingResult":         "A simulated phishing mail to a user, and what became of it.",
	"PhishingSend":           "A simulated phishing mail that will be sent.",
	"ReportedEmail":          "A real mail that a user reported.",
	"Collection":             "A group of a client's users that is put together by hand.",
	"CollectionMember":       "A user in a collection.",
	"Framework":              "A compliance framework.",
	"FrameworkAssignment":    "A framework that is assigned to an audience of a client.",
	"Policy":                 "A text of a client that an audience is to sign.",
	"PolicyUser":             "A user of a policy's audience, and whether the current version is signed.",
	"Exposure":               "Data of a user that was found in a breach.",
	"DarkWebUser":            "A user with the numbers of exposures.",
	"FrameworkEvaluation":    "How far a client meets a framework.",
	"Report":                 "A file about a client, made in the background.",
	"ReportDetail":           "A report with the link to its file.",
	"SyncRun":                "A run that brings a client's users in line with its directory.",
	"Webhook":                "A subscription to events.",
	"WebhookDelivery":        "The delivery of an event to a webhook, with its tries.",
	"Event":                  "What happened, as the feed shows it and as webhooks are sent it.",
	"ErrorEnvelope":          "The body of every error.",
	"FieldError":             "A part of the request that is wrong.",
}

//go:embed examples/*.json
var examples embed.FS

// Examples holds an example of every operation, in files ID.json. TestExamples writes them with -update.
var Examples, _ = fs.Sub(examples, "examples") // it fails for an invalid path only
