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

// worlds are the lists that v1 alone has, and users, which stand for those that it shares
// with v2: v2's TestPagingJumps holds each of these to a model, read by position as v1
// does. Each world has beside it rows of other lists with the same keys: another user's of
// the same client, another client's and another partner's.
var worlds = []func(*service, *rand.Rand) (*world, v2test.Partner){userWorld, phishingWorld, emailWorld, addressWorld, reportWorld}

// place is where a list's rows are, and where those of others are: the list's
// own client first, then another of the partner, and another partner's.
type place struct {
	tenant  v2test.Partner
	clients [3]domain.ClientID
}

func newPlace(s *service, rnd *rand.Rand) place {
	p := place{tenant: s.AddPartner(fmt.Sprint("partner ", rnd.Uint64()))}
	stranger := s.AddPartner(fmt.Sprint("partner ", rnd.Uint64()))
	for i, t := range []v2test.Partner{p.tenant, p.tenant, stranger} {
		p.clients[i] = s.AddClient(t, fmt.Sprint("client ", i)).ID
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
func userWorld(s *service, rnd *rand.Rand) (*world, v2test.Partner) {
	p := newPlace(s, rnd)
	w := p.world(s, rnd, "/users", "id")
	w.listings = []listing{{state: "active"}, {query: "&status=all"}, {query: "&status=inactive", state: "inactive"}}
	w.states = [2]string{"active", "inactive"}
	w.insert = func(r *row) {
		for i, client := range p.clients {
			s.insertUser(client, beside[domain.UserKind](s, r, i), domain.UserStatus(r.state), r.created)
		}
	}
	w.remove = func(r *row) {
		s.Exec("DELETE FROM users WHERE client_id = $1 AND id = $2", p.clients[0], as[domain.UserKind](s, r))
		s.count(p.clients[0], domain.UserStatus(r.state), -1)
	}
	w.move = func(r *row) {
		s.Exec(`UPDATE users SET status = CASE status WHEN 'active' THEN 'inactive' ELSE 'active' END
			WHERE client_id = $1 AND id = $2`, p.clients[0], as[domain.UserKind](s, r))
		s.count(p.clients[0], domain.UserStatus(r.state), -1)
		s.count(p.clients[0], map[string]domain.UserStatus{"active": domain.Inactive, "inactive": domain.Active}[r.state], 1)
	}
	return w, p.tenant
}

func reportWorld(s *service, rnd *rand.Rand) (*world, v2test.Partner) {
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

// phishingWorld: v1 shows of a result only when its state was reached, which is
// another moment for each. Mails that were not sent yet are not shown.
func phishingWorld(s *service, rnd *rand.Rand) (*world, v2test.Partner) {
	p := newPlace(s, rnd)
	to := p.recipients(s)
	template := s.insertTemplate(9)
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
func emailWorld(s *service, rnd *rand.Rand) (*world, v2test.Partner) {
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
			s.insertMail(t.client, t.user, as[domain.MessageKind](s, r), domain.MessageType(state), r.created)
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
func addressWorld(s *service, rnd *rand.Rand) (*world, v2test.Partner) {
	p := newPlace(s, rnd)
	to := p.recipients(s)[:3]
	for _, t := range to {
		s.Exec("UPDATE users SET email = 'shared@example.com' WHERE client_id = $1 AND id = $2", t.client, t.user)
	}
	w := p.world(s, rnd, "", "message_infima_id")
	w.path, w.newest, w.listings = "/v1/sentemails", true, []listing{{body: `{"email_address":"Shared@example.com"}`}}
	w.insert = func(r *row) {
		for i, t := range []recipient{to[rnd.IntN(2)], to[2]} {
			s.insertMail(t.client, t.user, beside[domain.MessageKind](s, r, i), domain.PhishingMail, r.created)
		}
	}
	w.remove = func(r *row) { s.Exec("DELETE FROM sent_emails WHERE id = $1", as[domain.MessageKind](s, r)) }
	return w, p.tenant
}
