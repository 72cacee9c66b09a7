package v2_test

import (
	"strings"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/api"
	"partnerapi/v2/v2test"
)

// pagedTables are the lists that page, each of rows of a few sort keys only.
var pagedTables = map[string]func(*pagedTable){
	"clients": pagedClients, "usage": pagedUsage, "users": pagedUsers, "users by email": pagedUsersByEmail, "admins": pagedAdmins,
	"collections": pagedCollections, "members": pagedMembers, "policies": pagedPolicies, "policy users": pagedPolicyUsers,
	"exposures": pagedExposures, "dark web users": pagedDarkWebUsers, "training": pagedTraining,
	"client training": pagedClientTraining, "phishing results": pagedResults, "phishing labels": pagedPhishingLabels, "emails": pagedEmails, "reported emails": pagedReported, "courses": pagedCourses,
	"templates": pagedTemplates, "sync runs": pagedSyncRuns, "frameworks": pagedFrameworks, "reports": pagedReports,
	"webhooks": pagedWebhooks, "deliveries": pagedDeliveries, "audit log": pagedAuditLog,
}

// archive drops the client that a row is.
func (p *pagedTable) archive(r pagedRow) {
	p.h.Exec("UPDATE clients SET archived_at = $2 WHERE id = $1", domain.ClientID(r.uuid), v2test.Noon)
}

// reached are two of every three of the rows' clients, and reports whether a row is one of them.
func (p *pagedTable) reached() (clients []domain.ClientID, holds func(pagedRow) bool) {
	in := map[string]bool{}
	for i, r := range p.rows {
		if i%3 > 0 {
			in[r.id], clients = true, append(clients, r.uuid)
		}
	}
	return clients, func(r pagedRow) bool { return in[r.id] }
}

func pagedClients(p *pagedTable) {
	p.of(api.ListClients, nil, shownAs[domain.ClientKind], "id")
	p.drop, p.stored = p.archive, p.h.CountClients
	stranger := p.h.AddClient(p.h.AddPartner("Other"), "alpha of another partner")
	p.fill((*pagedRecords).putClient)

	named := map[string]bool{}
	given := "ids=" + stranger.ID.String() + "," + db.NewID[domain.ClientKind]().String() + ",no id"
	for i, r := range p.rows {
		if i%2 == 0 {
			named[r.id], given = true, given+","+r.id
		}
	}
	p.add("", pagedAll)
	p.add("q=ALPHA", func(r pagedRow) bool { return r.nameHas("alpha") })
	p.add("q=0%25_", func(r pagedRow) bool { return r.nameHas("0%_") })
	p.add("external_id=X1", func(r pagedRow) bool { return r.kind == 1 })
	p.add(given, func(r pagedRow) bool { return named[r.id] })
	p.add(updatedQuery, pagedRow.recent)
	p.add("q=%C3%9C&"+given+"&"+updatedQuery, func(r pagedRow) bool { return r.nameHas("ü") && named[r.id] && r.recent() })
	clients, holds := p.reached()
	p.addSubset("", clients, holds)
	p.addSubset(given, clients, func(r pagedRow) bool { return named[r.id] && holds(r) })
	p.sorted(domain.ClientSort("").Values())
}

// pagedUsage: the rows are clients, each with one period in a list.
func pagedUsage(p *pagedTable) {
	p.of(api.ListUsage, nil, shownAs[domain.ClientKind], "client_id")
	p.h.AddClient(p.h.AddPartner("Other"), "Client of another partner")
	p.fill((*pagedRecords).putClient)
	today := "start_on=2026-06-15&end_on=2026-06-15"
	p.add("", pagedAll)
	p.add(today+"&interval=day", pagedAll)
	one := p.rows[0].id
	p.add("client_id="+one, func(r pagedRow) bool { return r.id == one })
	clients, holds := p.reached()
	p.addSubset(today, clients, holds)
	for i := range p.lists {
		p.lists[i].uncounted = true
	}
}

// pagedUsers: another client has a user, too.
func pagedUsers(p *pagedTable) {
	client := p.h.AddClient(p.tenant, "Client").ID
	p.h.AddUser(p.tenant, p.h.AddClient(p.tenant, "Other").ID, "alpha0@example.com")
	collection := p.h.AddCollection(client, "Collection")
	group := db.NewID[domain.GroupKind]()
	p.h.Exec("INSERT INTO groups (client_id, id, name, manual, created_at) VALUES ($1, $2, 'Group', false, $3)", client, group, v2test.Noon)
	p.homes = []pagedHome{{tenant: p.tenant, client: client}}
	p.of(api.ListUsers, ids{"client_id": client.String()}, shownAs[domain.UserKind], "id")
	p.fill(func(of *pagedRecords, r pagedRow) {
		of.putUser(of.id, r.email, nil, r)
		u := of.list[len(of.list)-1].columns
		u["last_name"], u["department"] = r.lastName(), r.department()
		u["sort_keys"] = map[string]map[string]string{
			"last_name":  {r.lastName(): domain.SortKey(r.lastName())},
			"department": {"Ünit 1": "ünit 1", "ünit 1": "ünit 1"},
		}
		u["manager_email"], u["group_id"] = []any{nil, "boss@example.com", nil, "o@example.com"}[r.kind], nil
		if r.kind == 2 {
			u["group_id"] = group
		}
		of.putMember(r.member, collection, r)
	})

	active := func(r pagedRow) bool { return r.status == domain.Active }
	matches := func(r pagedRow, text string) bool { return r.nameHas(text) || strings.Contains(r.email, text) }
	in := "collection_id=" + collection.String()
	p.add("", pagedAll)
	p.add("status=active", active)
	p.add("status=inactive", func(r pagedRow) bool { return !active(r) })
	p.add("q=%C3%BCNAL", func(r pagedRow) bool { return matches(r, "ünal") })
	p.add("q=7@EXAMPLE.com", func(r pagedRow) bool { return matches(r, "7@example.com") })
	p.add("role=finance", func(r pagedRow) bool { return r.role == domain.RoleFinance })
	p.add(in, pagedRow.isMember)
	unit := func(r pagedRow) bool { return r.kind == 1 || r.kind == 2 }
	p.add("department=%C3%9CNIT++1+", unit)
	p.add("no_department=true", func(r pagedRow) bool { return r.kind == 0 })
	p.add("manager_email=BOSS@example.com", func(r pagedRow) bool { return r.kind == 1 })
	p.add("group_id="+group.String(), func(r pagedRow) bool { return r.kind == 2 })
	p.add("grade=C", func(r pagedRow) bool { return r.score < 700 })
	p.add("department=%C3%BCnit+1&group_id="+group.String()+"&grade=B&status=active&overdue=false&"+in, func(r pagedRow) bool {
		return r.kind == 2 && r.score >= 700 && r.score < 800 && active(r) && r.member
	})
	p.add(updatedQuery, pagedRow.recent)
	p.add("status=active&q=a&role=standard&"+in+"&"+updatedQuery, func(r pagedRow) bool {
		return active(r) && matches(r, "a") && r.role == domain.RoleStandard && r.member && r.recent()
	})
	p.sorted(domain.UserSort("").Values())
}

// pagedUsersByEmail: the clients of the rows have a user of the address, and one of another;
// so has another partner's client.
func pagedUsersByEmail(p *pagedTable) {
	p.of(api.FindUsers, nil, shownAs[domain.ClientKind], "client_id")
	p.drop, p.stored = p.archive, p.h.CountClients
	stranger := p.h.AddPartner("Other")
	p.h.AddUser(stranger, p.h.AddClient(stranger, "Client").ID, everywhere)
	p.fill(func(of *pagedRecords, r pagedRow) {
		of.putClient(r)
		of.client = r.uuid
		of.putUser(r.uuid, everywhere, nil, r)
		other := r.uuid
		other[15] ^= 1
		of.putUser(other, "other@example.com", nil, r)
	})
	p.add("email="+everywhere, pagedAll)
	p.add("email=EveryWhere@Example.COM", pagedAll)
	clients, holds := p.reached()
	p.addSubset("email="+everywhere, clients, holds)
}

func pagedAdmins(p *pagedTable) {
	p.h.Exec("INSERT INTO admins (id, partner_id, email, name, role, created_at) VALUES ($1, $2, 'p@example.com', 'Of the partner', 'owner', $3)",
		db.NewID[domain.AdminKind](), p.tenant.ID, v2test.Noon)
	p.ofClient(api.ListClientAdmins, shownAs[domain.AdminKind], "id")
	p.fill(func(of *pagedRecords, r pagedRow) {
		of.putByID("admins", columns{
			"id": of.id, "partner_id": of.tenant.ID, "client_id": of.client, "email": r.email, "name": r.name, "role": "admin",
			"created_at": r.created,
		})
	})
	p.add("", pagedAll)
}

// putWebhook puts a webhook that is limited to a client.
func (of *pagedRecords) putWebhook(client domain.ClientID, r pagedRow) {
	of.putByID("webhooks", columns{
		"partner_id": of.tenant.ID, "id": of.id, "key_id": domain.CallerFrom(of.tenant.Ctx).Key, "url": "https://example.com",
		"events": []string{"user.created"}, "client_ids": []string{client.UUID()}, "status": "active", "secret": "",
		"created_at": r.created, "updated_at": r.updated,
	})
}

// pagedWebhooks: another partner has webhooks that were made at the same moments, and
// a key sees those of its client alone.
func pagedWebhooks(p *pagedTable) {
	p.ofClient(api.ListWebhooks, shownAs[domain.WebhookKind], "id")
	beside := p.homes[1].client
	p.homes = []pagedHome{p.homes[0], p.homes[2]}
	p.fill(func(of *pagedRecords, r pagedRow) {
		client := of.client
		if r.score == 600 && client == p.homes[0].client { // which touching does not change
			client = beside
		}
		of.putWebhook(client, r)
	})
	p.add("", pagedAll)
	p.addSubset("", []domain.ClientID{p.homes[0].client}, func(r pagedRow) bool { return r.score != 600 })
}

// pagedDeliveries: another webhook has deliveries with the same ids.
func pagedDeliveries(p *pagedTable) {
	p.ofClient(api.ListDeliveries, shownAs[domain.DeliveryKind], "id")
	p.order, p.homes = "-created_at", p.homes[:1]
	webhooks := []domain.WebhookID{{15: 1}, {15: 2}}
	p.at = ids{"webhook_id": webhooks[0].String()}
	for _, id := range webhooks {
		p.write(p.homes[0], id, func(of *pagedRecords) { of.putWebhook(of.client, pagedRow{}) })
	}
	p.fill(func(of *pagedRecords, r pagedRow) {
		for _, webhook := range webhooks {
			of.list = append(of.list, pagedRecord{"webhook_deliveries", "webhook_id, id", columns{
				"webhook_id": webhook, "id": r.uuid, "partner_id": of.tenant.ID, "position": 1, "client_id": of.client,
				"event_id": r.uuid, "type": "user.created", "status": "failed", "created_at": r.created, "due_at": r.created,
			}, false})
		}
	})
	p.add("", pagedAll)
	p.addSubset("", []domain.ClientID{p.homes[0].client}, pagedAll)
}

// pagedAuditLog: two keys changed two clients of the partner, and what is of no client. A key of one client created none of
// the entries. Another partner's entries are of the same moments.
func pagedAuditLog(p *pagedTable) {
	p.ofClient(api.ListAuditLog, shownAs[domain.AuditKind], "id")
	p.h.Exec("CREATE UNIQUE INDEX ON audit_entries (entry_id)") // by which the test finds a row again
	own, beside := p.homes[0].client, p.homes[1].client
	p.homes, p.at = []pagedHome{p.homes[0], p.homes[2]}, nil
	other := domain.CallerFrom(p.h.As(p.h.AddKey(p.tenant, bothScopes, nil)))
	p.fill(func(of *pagedRecords, r pagedRow) {
		key, client := domain.CallerFrom(of.tenant.Ctx), any(of.client)
		switch {
		case of.client != own:
		case r.score == 600: // which touching does not change
			client = beside
		case r.score == 650:
			client = nil
		}
		if of.client == own && r.finance() {
			key = other
		}
		of.list = append(of.list, pagedRecord{"audit_entries", "entry_id", columns{
			"entry_id": of.id, "at": r.created, "partner_id": of.tenant.ID, "key_id": key.Key, "key_prefix": key.Prefix,
			"operation": pagedOperations[r.kind], "method": "PATCH", "path": "/v2", "request_id": "r", "client_id": client,
		}, false})
	})

	inOwn := func(r pagedRow) bool { return r.score > 650 }
	key, operation := "key="+other.Prefix, "operation="+pagedOperations[2]
	p.add("", pagedAll)
	p.add("client_id="+own.String(), inOwn)
	p.add("client_id="+beside.String(), func(r pagedRow) bool { return r.score == 600 })
	p.add(key, pagedRow.finance)
	p.add(operation, func(r pagedRow) bool { return r.kind == 2 })
	p.add(sinceQuery, func(r pagedRow) bool { return fromSince(r.created) })
	p.add(untilQuery, func(r pagedRow) bool { return beforeUntil(r.created) })
	p.add("client_id="+own.String()+"&"+key+"&"+operation+"&"+sinceQuery+"&"+untilQuery, func(r pagedRow) bool {
		return inOwn(r) && r.finance() && r.kind == 2 && pagedWithin(r.created)
	})
	clients := []domain.ClientID{own}
	p.addSubset("", clients, inOwn)
	p.addSubset("client_id="+beside.String(), clients, func(pagedRow) bool { return false })
	p.addSubset(key+"&"+operation, clients, func(r pagedRow) bool { return inOwn(r) && r.finance() && r.kind == 2 })
	p.sorted(domain.AuditSort("").Values())
}

// pagedOperations are those of entries by the kind of their rows.
var pagedOperations = []string{"users.update", "users.create", "webhooks.test", "keys create"}
