package transfer

import (
	"partnerapi/db"
	"partnerapi/domain"
)

// kinds are the kinds of objects in the order in which a run applies them: each
// after those that it refers to. Collections and users refer to each other: whom a
// record of a user puts into which collections comes after both.
var kinds = []kind{
	of("partner", (*db.DB).ImportPartners),
	of("course", (*db.DB).ImportCourses),
	of("client", (*db.DB).ImportClients),
	of("admin", (*db.DB).ImportAdmins),
	of("group", (*db.DB).ImportGroups),
	users,
	of("collection", (*db.DB).ImportCollections),
	users.then,
	of("policy", (*db.DB).ImportPolicies),
	of("framework_assignment", (*db.DB).ImportFrameworkAssignments),
	history("phishing_result", (*db.DB).ImportResults, func(r *domain.ResultRecord) userField { return r.User }),
	history("sent_email", (*db.DB).ImportSentEmails, func(r *domain.SentEmailRecord) userField { return r.User }),
	of("exposure", (*db.DB).ImportExposures), // as they come: several may be of one exposure, which has no id
}

type userField = domain.Field[domain.Ref[domain.UserKind]]

var users = &records[domain.UserRecord]{
	planned: planOf[domain.UserRecord]("user"),
	write:   (*db.DB).ImportUsers,
	check: func(u *domain.UserRecord, wrong *faults) {
		if u.SendWelcomeEmail.Value {
			wrong.say("send_welcome_email must be false: an import sends no mail")
		}
	},
	then:  of("user", (*db.DB).ImportMemberships),
	at:    func(u *domain.UserRecord) place { return place{client: u.Client.Value.ID} },
	wants: func(u *domain.UserRecord) bool { return len(u.CollectionIDs.Value) > 0 },
}
