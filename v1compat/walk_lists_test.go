package v1compat

import (
	"fmt"
	"math/rand/v2"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/idmap"
	"partnerapi/v2/v2test"
)

// worlds are the lists of v1. Each has beside it rows of other lists with the
// same keys: another user's, collection's or policy's of the same client,
// another client's and another partner's.
var worlds = []func(*service, *rand.Rand) (*world, v2test.Tenant){
	userWorld, clientWorld, collectionWorld, memberWorld, policyWorld, policyUserWorld, exposureWorld, trainingWorld, phishingWorld, emailWorld, addressWorld,
	reportWorld,
}

// place is where a list's rows are, and where those of others are: the list's
// own client first, then another of the partner, and another partner's.
type place struct {
	tenant  v2test.Tenant
	clients [3]domain.ClientID
}

func newPlace(s *service, rnd *rand.Rand) place {
	p := place{tenant: s.Tenant(fmt.Sprint("partner ", rnd.Uint64()))}
	stranger := s.Tenant(fmt.Sprint("partner ", rnd.Uint64()))
	for i, t := range []v2test.Tenant{p.tenant, p.tenant, stranger} {
		p.clients[i] = s.Client(t, fmt.Sprint("client ", i)).ID
	}
	return p
}

// recipient is one whose courses or mails are listed, and those beside.
type recipient struct {
	client domain.ClientID
	user   domain.UserID
}

// recipients adds a user to each client, and one more to the first; the first of
// them is the one whose rows are listed.
func (p place) recipients(s *service) (list []recipient) {
	for _, client := range append(p.clients[:], p.clients[0]) {
		id := db.NewID[domain.UserKind]()
		s.insertUser(client, id, domain.Active, v2test.Noon)
		list = append(list, recipient{client, id})
	}
	return list
}

func (p place) world(s *service, rnd *rand.Rand, path, member string) *world {
	return &world{service: s, rnd: rnd, path: "/v1/clients/" + s.number(p.clients[0]) + path, member: member, listings: []listing{{}}}
}

// as is the id of a row.
func as[K domain.Kind](s *service, r *row) domain.ID[K] {
	id, err := domain.ParseUUID[K](r.id)
	if err != nil {
		s.T.Fatal(err)
	}
	return id
}

// beside is an id next to the row's, for another client: n is not 0.
func beside[K domain.Kind](s *service, r *row, n int) domain.ID[K] {
	id := as[K](s, r)
	id[15] ^= byte(n)
	return id
}

// userWorld is a list of users that the world changes.
func userWorld(s *service, rnd *rand.Rand) (*world, v2test.Tenant) {
	p := newPlace(s, rnd)
	w := p.world(s, rnd, "/users", "id")
	w.listings = []listing{{state: "active"}, {query: "&status=all"}, {query: "&status=inactive", state: "inactive"}}
	w.states = [2]string{"active", "inactive"}
	w.insert = func(r *row) {
		for i, client := range p.clients {
			s.insertUser(client, beside[domain.UserKind](s, r, i), domain.UserStatus(r.state), r.created)
		}
	}
	w.remove = func(r *row) { s.removeUser(p.clients[0], r, domain.UserStatus(r.state)) }
	w.move = func(r *row) {
		s.Exec(`UPDATE users SET status = CASE status WHEN 'active' THEN 'inactive' ELSE 'active' END
			WHERE client_id = $1 AND id = $2`, p.clients[0], as[domain.UserKind](s, r))
		s.count(p.clients[0], domain.UserStatus(r.state), -1)
		s.count(p.clients[0], map[string]domain.UserStatus{"active": domain.Inactive, "inactive": domain.Active}[r.state], 1)
	}
	return w, p.tenant
}

func (s *service) removeUser(client domain.ClientID, r *row, status domain.UserStatus) {
	user := as[domain.UserKind](s, r)
	s.Exec("DELETE FROM policy_signatures WHERE client_id = $1 AND user_id = $2", client, user)
	s.Exec("DELETE FROM exposures WHERE client_id = $1 AND user_id = $2", client, user)
	s.Exec("DELETE FROM users WHERE client_id = $1 AND id = $2", client, user)
	s.count(client, status, -1)
}

// clientWorld is the list of a new partner's clients. Some go by being
// archived, some altogether.
func clientWorld(s *service, rnd *rand.Rand) (*world, v2test.Tenant) {
	t, stranger := s.Tenant(fmt.Sprint("partner ", rnd.Uint64())), s.Tenant(fmt.Sprint("partner ", rnd.Uint64()))
	w := &world{service: s, rnd: rnd, path: "/v1/clients", member: "client_name", listings: []listing{{}}}
	w.insert = func(r *row) {
		s.insertClient(t.ID, as[domain.ClientKind](s, r), r.name, r.created)
		s.insertClient(stranger.ID, beside[domain.ClientKind](s, r, 1), r.name, r.created)
	}
	w.remove = func(r *row) {
		id := as[domain.ClientKind](s, r)
		if rnd.IntN(2) == 0 {
			s.archive(id)
			return
		}
		s.Exec("DELETE FROM clients WHERE id = $1", id)
		s.CountClients()
	}
	return w, t
}

func reportWorld(s *service, rnd *rand.Rand) (*world, v2test.Tenant) {
	p := newPlace(s, rnd)
	w := p.world(s, rnd, "/reports", "report_id")
	w.insert = func(r *row) {
		for i, client := range p.clients {
			s.insertReport(client, beside[domain.ReportKind](s, r, i), r.created)
		}
		r.name = s.numberOf(idmap.Report, idmap.UUID(as[domain.ReportKind](s, r))) // nothing else distinguishes reports
	}
	w.remove = func(r *row) {
		s.Exec("DELETE FROM reports WHERE client_id = $1 AND id = $2", p.clients[0], as[domain.ReportKind](s, r))
	}
	return w, p.tenant
}

func collectionWorld(s *service, rnd *rand.Rand) (*world, v2test.Tenant) {
	p := newPlace(s, rnd)
	w := p.world(s, rnd, "/collections", "name")
	w.insert = func(r *row) {
		for i, client := range p.clients {
			s.insertCollection(client, beside[domain.CollectionKind](s, r, i), r.name, r.created)
		}
	}
	w.remove = func(r *row) {
		s.Exec("DELETE FROM collections WHERE client_id = $1 AND id = $2", p.clients[0], as[domain.CollectionKind](s, r))
	}
	return w, p.tenant
}

func (s *service) insertCollection(client domain.ClientID, id domain.CollectionID, name string, created time.Time) {
	s.Exec(`INSERT INTO collections (client_id, id, name, name_key, created_by, created_at, updated_at)
		VALUES ($1, $2, $3, $4, 'api', $5, $5)`, client, id, name, domain.SortKey(name), created)
}

// memberWorld: every member is in another collection too, since the same moment.
func memberWorld(s *service, rnd *rand.Rand) (*world, v2test.Tenant) {
	p := newPlace(s, rnd)
	listed, other := db.NewID[domain.CollectionKind](), db.NewID[domain.CollectionKind]()
	s.insertCollection(p.clients[0], listed, "Listed", v2test.Noon)
	s.insertCollection(p.clients[0], other, "Other", v2test.Noon)
	w := p.world(s, rnd, "/collections/"+s.numberOf(idmap.Collection, idmap.UUID(listed))+"/members", "user_infima_id")
	w.insert = func(r *row) {
		user := as[domain.UserKind](s, r)
		s.insertUser(p.clients[0], user, domain.Active, v2test.Noon)
		s.Exec(`INSERT INTO collection_members (client_id, collection_id, user_id, added_at) VALUES ($1, $2, $4, $5), ($1, $3, $4, $5)`,
			p.clients[0], listed, other, user, r.created)
		s.Exec("UPDATE collections SET member_count = member_count + 1 WHERE client_id = $1", p.clients[0])
	}
	w.remove = func(r *row) {
		s.Exec("DELETE FROM collection_members WHERE client_id = $1 AND collection_id = $2 AND user_id = $3", p.clients[0], listed, as[domain.UserKind](s, r))
		s.Exec("UPDATE collections SET member_count = member_count - 1 WHERE client_id = $1 AND id = $2", p.clients[0], listed)
	}
	return w, p.tenant
}

// policyWorld: policies go by being archived.
func policyWorld(s *service, rnd *rand.Rand) (*world, v2test.Tenant) {
	p := newPlace(s, rnd)
	w := p.world(s, rnd, "/policies", "title")
	w.insert = func(r *row) {
		for i, client := range p.clients {
			s.insertPolicy(client, beside[domain.PolicyKind](s, r, i), r.name, r.created)
		}
	}
	w.remove = func(r *row) {
		s.Exec("UPDATE policies SET archived_at = created_at WHERE client_id = $1 AND id = $2", p.clients[0], as[domain.PolicyKind](s, r))
	}
	return w, p.tenant
}

func (s *service) insertPolicy(client domain.ClientID, id domain.PolicyID, title string, created time.Time) {
	s.Exec(`INSERT INTO policies (client_id, id, title, scope_type, scope_id, requires_acknowledgment, reviewed_at, created_at, updated_at)
		VALUES ($1, $2, $3, 'tenant', $1, true, $4, $4, $4)`, client, id, title, created)
}

// policyUserWorld: who has not signed the policy that is listed signed another.
func policyUserWorld(s *service, rnd *rand.Rand) (*world, v2test.Tenant) {
	p := newPlace(s, rnd)
	policies := [2]domain.PolicyID{db.NewID[domain.PolicyKind](), db.NewID[domain.PolicyKind]()}
	for _, id := range policies {
		s.insertPolicy(p.clients[0], id, "Policy", v2test.Noon)
	}
	w := p.world(s, rnd, "/policies/"+s.numberOf(idmap.Policy, idmap.UUID(policies[0]))+"/users", "id")
	w.listings = []listing{{}, {query: "&status=signed", state: "signed"}, {query: "&status=unsigned", state: "unsigned"}}
	w.states = [2]string{"unsigned", "signed"}
	recount := func() { // as all do that move an audience or its sign-off
		s.Exec("UPDATE policies SET counted_until = '-infinity' WHERE client_id = $1", p.clients[0])
	}
	sign := func(r *row, policy domain.PolicyID) {
		s.Exec("INSERT INTO policy_signatures (client_id, policy_id, user_id, version, signed_at) VALUES ($1, $2, $3, 1, $4)",
			p.clients[0], policy, as[domain.UserKind](s, r), v2test.Noon)
		recount()
	}
	w.insert = func(r *row) {
		for i, client := range p.clients {
			s.insertUser(client, beside[domain.UserKind](s, r, i), domain.Active, r.created)
		}
		sign(r, policies[map[string]int{"signed": 0, "unsigned": 1}[r.state]])
	}
	w.remove = func(r *row) {
		s.removeUser(p.clients[0], r, domain.Active)
		recount()
	}
	w.move = func(r *row) {
		s.Exec("DELETE FROM policy_signatures WHERE client_id = $1 AND user_id = $2", p.clients[0], as[domain.UserKind](s, r))
		sign(r, policies[map[string]int{"signed": 1, "unsigned": 0}[r.state]])
	}
	return w, p.tenant
}

// exposureWorld: every user has exposures of two breaches.
func exposureWorld(s *service, rnd *rand.Rand) (*world, v2test.Tenant) {
	p := newPlace(s, rnd)
	s.Exec("INSERT INTO breaches (name, title, severity, data_classes) VALUES ('A', 'A', 'low', '{Names}'), ('B', 'B', 'low', '{Names}') ON CONFLICT DO NOTHING")
	w := p.world(s, rnd, "/darkweb/exposures", "id")
	w.listings = []listing{{}, {query: "&start=2026-06-15T08:00:00Z&end=2026-06-15"}}
	w.insert = func(r *row) {
		for i, client := range p.clients {
			user := beside[domain.UserKind](s, r, i)
			s.insertUser(client, user, domain.Active, r.created)
			s.Exec(`INSERT INTO exposures (client_id, user_id, breach_name, severity, data_classes, first_seen_at)
				SELECT $1, $2, name, 'low', '{Names}', $3 FROM breaches`, client, user, r.created)
		}
	}
	w.remove = func(r *row) { s.removeUser(p.clients[0], r, domain.Active) }
	return w, p.tenant
}

// trainingWorld: others have the same courses at the same places.
func trainingWorld(s *service, rnd *rand.Rand) (*world, v2test.Tenant) {
	p := newPlace(s, rnd)
	to := p.recipients(s)
	w := p.world(s, rnd, "", "course_name")
	w.path = "/v1/users/" + to[0].user.UUID() + "/training"
	w.insert = func(r *row) {
		course := as[domain.CourseKind](s, r)
		s.Exec("INSERT INTO courses (id, title, created_at) VALUES ($1, $2, $3)", course, r.name, v2test.Noon)
		for _, t := range to {
			s.Exec(`INSERT INTO assignments (client_id, user_id, course_id, position, assigned_at, due_on) VALUES ($1, $2, $3, $4, $5, '2026-07-01')`,
				t.client, t.user, course, 10+int(r.created.Sub(v2test.Noon)/time.Hour), v2test.Noon)
		}
	}
	w.remove = func(r *row) {
		s.Exec("DELETE FROM assignments WHERE client_id = $1 AND user_id = $2 AND course_id = $3", to[0].client, to[0].user, as[domain.CourseKind](s, r))
	}
	return w, p.tenant
}

// phishingWorld: v1 shows of a result only when its state was reached, which is
// another moment for each. Mails that were not sent yet are not shown.
func phishingWorld(s *service, rnd *rand.Rand) (*world, v2test.Tenant) {
	p := newPlace(s, rnd)
	to := p.recipients(s)
	template := domain.TemplateID{15: 9}
	s.Exec(`INSERT INTO phishing_templates (id, name, language, category, subject, from_address, html, body, created_at)
		VALUES ($1, 'Sample', 'en', 'it', 'Sample', 'it@example.com', '', '', $2) ON CONFLICT DO NOTHING`, template, v2test.Noon)
	w := p.world(s, rnd, "", "status_date")
	w.path, w.newest = "/v1/users/"+to[0].user.UUID()+"/phishing", true
	w.insert = func(r *row) {
		opened := v2test.Noon.Add(-time.Duration(w.step) * time.Second)
		r.name = opened.Format(time.RFC3339)
		for i, t := range to {
			s.Exec(`INSERT INTO phishing_results (client_id, id, user_id, template_id, status, send_at, sent_at, opened_at, created_at, updated_at)
				VALUES ($1, $2, $4, $5, 'opened', $6, $6, $7, $6, $6), ($1, $3, $4, $5, 'scheduled', $6, NULL, NULL, $6, $6)`,
				t.client, beside[domain.ResultKind](s, r, i), beside[domain.ResultKind](s, r, i+len(to)), t.user, template, r.created, opened)
		}
	}
	w.remove = func(r *row) {
		s.Exec("DELETE FROM phishing_results WHERE client_id = $1 AND id = $2", to[0].client, as[domain.ResultKind](s, r))
	}
	return w, p.tenant
}

// emailWorld: others were sent mails with the same ids at the same moments.
func emailWorld(s *service, rnd *rand.Rand) (*world, v2test.Tenant) {
	p := newPlace(s, rnd)
	to := p.recipients(s)
	w := p.world(s, rnd, "", "message_infima_id")
	w.path, w.newest, w.states = "/v1/sentemails", true, [2]string{"phishing", "certificate"}
	body := `{"user_infima_id":"` + to[0].user.UUID() + `"`
	w.listings = []listing{
		{body: body + "}"}, {body: body + `,"message_types":["phishing"]}`, state: "phishing"},
		{body: body + `,"start_time":"2026-06-01T00:00:00Z","message_types":["certificate"]}`, state: "certificate"},
	}
	set := func(r *row, state string, to ...recipient) {
		for _, t := range to {
			s.Exec(`INSERT INTO sent_emails (client_id, user_id, id, sent_at, from_email, subject, send_method, message_type)
				VALUES ($1, $2, $3, $4, 'it@example.com', 'Subject', 'smtp', $5)
				ON CONFLICT (client_id, user_id, id) DO UPDATE SET message_type = excluded.message_type`,
				t.client, t.user, as[domain.MessageKind](s, r), r.created, state)
		}
	}
	w.insert = func(r *row) { set(r, r.state, to...) }
	w.move = func(r *row) {
		set(r, map[string]string{"phishing": "certificate", "certificate": "phishing"}[r.state], to[0])
	}
	w.remove = func(r *row) {
		s.Exec("DELETE FROM sent_emails WHERE client_id = $1 AND user_id = $2 AND id = $3", to[0].client, to[0].user, as[domain.MessageKind](s, r))
	}
	return w, p.tenant
}

// addressWorld: two users of different clients have the email that is asked
// for, and so has another partner's (decisions 5.13).
func addressWorld(s *service, rnd *rand.Rand) (*world, v2test.Tenant) {
	p := newPlace(s, rnd)
	to := p.recipients(s)[:3]
	for _, t := range to {
		s.Exec("UPDATE users SET email = 'shared@example.com' WHERE client_id = $1 AND id = $2", t.client, t.user)
	}
	w := p.world(s, rnd, "", "message_infima_id")
	w.path, w.newest, w.listings = "/v1/sentemails", true, []listing{{body: `{"email_address":"Shared@example.com"}`}}
	w.insert = func(r *row) {
		for i, t := range []recipient{to[rnd.IntN(2)], to[2]} {
			s.Exec(`INSERT INTO sent_emails (client_id, user_id, id, sent_at, from_email, subject, send_method, message_type)
				VALUES ($1, $2, $3, $4, 'it@example.com', 'Subject', 'smtp', 'phishing')`, t.client, t.user, beside[domain.MessageKind](s, r, i), r.created)
		}
	}
	w.remove = func(r *row) { s.Exec("DELETE FROM sent_emails WHERE id = $1", as[domain.MessageKind](s, r)) }
	return w, p.tenant
}
