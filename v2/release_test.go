package v2_test

import (
	"testing"

	"partnerapi/db/dbtest"
	"partnerapi/db/dbtest/worldtest"
	"partnerapi/domain"
	"partnerapi/v2/op"
	"partnerapi/v2/v2test"
)

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
