package v2_test

import (
	"testing"

	"partnerapi/db/dbtest"
	"partnerapi/db/dbtest/worldtest"
	"partnerapi/domain"
	"partnerapi/v2/op"
	"partnerapi/v2/v2test"
)

// ladder names every operation by the release that it is since (decisions 3.5).
var ladder = map[op.Release][]string{
	op.V2_0: {"GET /clients", "GET /clients/:client_id", "GET /clients/:client_id/admins"},
	op.V2_1: {"GET /partner", "GET /clients/:client_id/risk", "GET /clients/:client_id/users", "GET /users/:user_id", "GET /users/:user_id/risk",
		"GET /clients/:client_id/collections", "GET /clients/:client_id/collections/:collection_id", "GET /clients/:client_id/collections/:collection_id/members",
		"GET /clients/:client_id/policies", "GET /clients/:client_id/policies/:policy_id/users",
		"GET /clients/:client_id/dark-web", "GET /clients/:client_id/dark-web/exposures", "GET /clients/:client_id/dark-web/users",
		"GET /users/:user_id/training", "GET /users/:user_id/emails", "GET /courses",
		"GET /clients/:client_id/phishing/results", "GET /clients/:client_id/phishing/summary", "GET /phishing/templates",
		"GET /frameworks", "GET /clients/:client_id/frameworks", "GET /clients/:client_id/frameworks/:assignment_id",
		"GET /clients/:client_id/reports", "GET /clients/:client_id/reports/:report_id",
	},
	op.V2_2: {
		"POST /clients", "PATCH /clients/:client_id", "POST /clients/:client_id/admins/invites",
		"POST /clients/:client_id/users", "PATCH /users/:user_id",
		"POST /clients/:client_id/collections", "DELETE /clients/:client_id/collections/:collection_id",
		"POST /clients/:client_id/collections/:collection_id/members", "DELETE /clients/:client_id/collections/:collection_id/members/:user_id",
		"POST /clients/:client_id/policies/:policy_id/reminders", "POST /users/:user_id/exposures/:breach_name/resolve",
		"POST /clients/:client_id/training/assignments", "POST /clients/:client_id/training/reminders", "POST /clients/:client_id/phishing/sends",
		"GET /clients/:client_id/phishing/reported",
		"POST /clients/:client_id/frameworks", "DELETE /clients/:client_id/frameworks/:assignment_id",
		"POST /clients/:client_id/reports",
		"POST /clients/:client_id/sync/runs", "GET /clients/:client_id/sync/runs",
	},
	op.V2_3: {
		"GET /webhooks", "POST /webhooks", "GET /webhooks/:webhook_id", "PATCH /webhooks/:webhook_id",
		"DELETE /webhooks/:webhook_id", "POST /webhooks/:webhook_id/test", "POST /webhooks/:webhook_id/secret",
		"GET /webhooks/:webhook_id/deliveries", "POST /webhooks/:webhook_id/deliveries/:delivery_id/redeliver",
		"GET /events",
	},
	op.V2_4: {
		"GET /key", "GET /users", "GET /clients/:client_id/training/assignments",
		"DELETE /clients/:client_id/phishing/sends/:result_id", "POST /clients/:client_id/phishing/sends/cancel",
	},
}

func TestLadder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{})
	listed := map[string]op.Release{}
	for release, names := range ladder {
		for _, name := range names {
			listed[name] = release
		}
	}
	for _, o := range w.API.Set.All() {
		name := o.Meta().Method + " " + o.Meta().Path
		if release, ok := listed[name]; !ok {
			t.Errorf("%s, of %s, is missing: add it to ladder in release_test.go", name, o.Meta().Since)
		} else if release != o.Meta().Since {
			t.Errorf("%s is of %s, not %s", name, o.Meta().Since, release)
		}
		delete(listed, name)
		if (o.Meta().Method == "GET") == (o.Meta().Scope == domain.Write) {
			t.Errorf("%s needs the scope %s", name, o.Meta().Scope)
		}
	}
	for name, release := range listed {
		t.Errorf("%s, of %s, is no operation", name, release)
	}
}

// TestReleases serves one database in every release: what a release has not
// answers as an unknown path does, and what it shares with others answers the
// same bytes.
func TestReleases(t *testing.T) {
	t.Parallel()
	url := dbtest.URL(t, worldtest.Schema)
	limits := v2test.Unlimited
	latest := newWorld(t, v2test.Options{URL: url, Limits: limits})
	for _, release := range []op.Release{op.V2_0, op.V2_1, op.V2_2, op.V2_3, op.V2_4} {
		t.Run(release.String(), func(t *testing.T) {
			served := 0
			h := v2test.New(t, v2test.Options{URL: url, Release: release, Limits: limits, Keys: latest.Keys})
			unknown := anonymous(checkError(t, h.Get("/v2/unknown", latest.tenant.Key), domain.NotFound))
			w := &world{Harness: h, tenant: latest.tenant, client: latest.client, user: latest.user, sampled: latest.sampled, parts: latest.parts}
			w.each(t, func(t *testing.T, w *world, o op.Operation) {
				if o.Meta().Since > release {
					for _, at := range []ids{w.ids(), strangers()} {
						if got := anonymous(checkError(t, w.send(o, w.tenant.Key, at), domain.NotFound)); got != unknown {
							t.Errorf("answers %s\nnot as an unknown path: %s", got, unknown)
						}
					}
					checkError(t, w.send(o, "", w.ids()), domain.Unauthorized)
					return
				}
				served++
				l := latest.in(t)
				if o.Meta().Method != "GET" {
					w.send(o, w.tenant.Key, w.ids()).Want(o.Meta().Status)
					return
				}
				for _, query := range [][]string{nil, {"limit=0"}, {"limit=1"}, {"sort=-created_at"}} {
					path := pathOf(t, o, w.ids(), query...)
					here, there := w.Get(path, w.tenant.Key), l.Get(path, w.tenant.Key)
					if here.Status != there.Status || anonymous(here) != anonymous(there) {
						t.Errorf("%s %v answers\n%s in %s and\n%s in the latest", o.Meta().ID, query, here.Body, release, there.Body)
					}
				}
			})
			if release == op.V2_0 && served != 3 {
				t.Errorf("serves %d operations", served)
			}
		})
	}
}
