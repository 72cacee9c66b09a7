package v1compat

import (
	"fmt"
	"slices"
	"testing"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/idmap"
)

// strangers are objects of each kind that a key does not reach, by why.
func (s *service) strangers() (subset string, unreached map[string]objects) {
	s.T.Helper()
	tenant, other := s.AddPartner("Partner"), s.AddPartner("Other")
	listed, unlisted := s.objectsOf(tenant.ID, s.AddClient(tenant, "Listed").ID), s.objectsOf(tenant.ID, s.AddClient(tenant, "Unlisted").ID)
	archived, deleted := s.objectsOf(tenant.ID, s.AddClient(tenant, "Archived").ID), s.objectsOf(tenant.ID, s.AddClient(tenant, "Deleted").ID)
	foreign := s.objectsOf(other.ID, s.AddClient(other, "Theirs").ID)
	subset = s.AddKey(tenant, []domain.Scope{domain.Read}, []domain.ClientID{domain.ClientID(listed["client"]), domain.ClientID(archived["client"])})
	for kind := range foreign { // from now on the registry's cache has them
		for _, o := range []objects{unlisted, archived, deleted} {
			s.reachesOnly(tenant.Key, kind, o[kind], true)
		}
		s.reachesOnly(other.Key, kind, foreign[kind], true)
		s.reachesOnly(subset, kind, listed[kind], true)
	}
	s.archive(domain.ClientID(archived["client"]))
	s.delete(deleted)
	s.Exec("UPDATE policies SET archived_at = now() WHERE id = $1", domain.PolicyID(listed["policy"]))
	return subset, map[string]objects{
		"unlisted": unlisted, "archived": archived, "deleted": deleted, "foreign": foreign, "archived policy": {"policy": listed["policy"]},
	}
}

// reachesOnly fails the test unless both ids of an object are exchanged for each
// other, or else neither is for anything.
func (s *service) reachesOnly(key, kind string, id idmap.UUID, reached bool) {
	s.T.Helper()
	old, newer := s.tokens(kind, id)
	for _, token := range []string{old, newer} {
		want := exchanged(nil, []string{token})
		if reached {
			want = exchanged([]string{item(old, newer)}, nil)
		}
		if got := s.exchange(key, kind, token).Want(200); string(got.Body) != want {
			s.T.Errorf("%s %s is exchanged for %s", kind, token, got.Body)
		}
	}
}

// TestExchangeLeaksNothing: what another partner has, what the key's list lacks,
// what was archived or deleted, and what there never was are one answer, by the
// same statements, also where the registry's cache has it for who reaches it
// (decisions 11.3).
func TestExchangeLeaksNothing(t *testing.T) {
	for _, cached := range []int{0, 10_000} {
		t.Run(fmt.Sprintf("cached=%d", cached), func(t *testing.T) {
			s := start(t, setup{cached: cached})
			if cached > 0 {
				tenant := s.AddPartner("First")
				s.watch(s.AddClient(tenant, "First").ID)
			}
			key, unreached := s.strangers()
			for why, of := range unreached {
				for kind, id := range of {
					s.leaksNothing(key, kind, id, why)
				}
			}
		})
	}
}

func (s *service) leaksNothing(key, kind string, id idmap.UUID, why string) {
	s.T.Helper()
	s.reachesOnly(key, kind, id, false)
	old, newer := s.tokens(kind, id)
	nobodys := idmap.UUID(db.NewID[domain.UserKind]())
	unused := `"` + namings[kind].show(nobodys) + `"`
	unusedOld := map[string]string{"user": `"` + unusedID + `"`, "admin": `"` + unusedID + `"`, "report": `"2147483647"`}[kind]
	if unusedOld == "" {
		unusedOld = "2147483647"
	}
	for _, pair := range [][2]string{{old, unusedOld}, {newer, unused}} {
		var said [2]string
		var took [2]int
		for i, token := range pair {
			took[i] = s.Statements.During(func() { said[i] = string(s.exchange(key, kind, token).Want(200).Body) })
			if said[i] != exchanged(nil, []string{token}) {
				s.T.Errorf("%s %s, %s: %s", why, kind, token, said[i])
			}
		}
		if took[0] != took[1] || took[0] == 0 {
			s.T.Errorf("%s %s %s takes %d statements, an unused one %d", why, kind, pair[0], took[0], took[1])
		}
	}
}

// TestExchangeStatements: three statements at most, however many ids are
// exchanged, beside the one that looks the key up; two with a warm registry.
func TestExchangeStatements(t *testing.T) {
	for cached, most := range map[int]int{0: 3, 10_000: 1} {
		t.Run(fmt.Sprintf("cached=%d", cached), func(t *testing.T) {
			s := start(t, setup{cached: cached})
			tenant := s.AddPartner("Partner")
			if cached > 0 {
				s.watch(s.AddClient(tenant, "First").ID)
			}
			var olds, newers []string
			for i := range 100 {
				id := db.NewID[domain.ClientKind]()
				s.insertClient(tenant.ID, id, fmt.Sprint("client ", i), s.Clock.Now())
				old, newer := s.tokens("client", idmap.UUID(id))
				olds, newers = append(olds, old), append(newers, newer)
			}
			all := slices.Concat(olds[:50], newers[50:], olds[50:], newers[:50])
			s.exchange(tenant.Key, "client", all...).Want(200) // looks the key up, fills the cache
			for _, n := range []int{1, 100, 200} {
				took := s.Statements.During(func() {
					if got := s.exchange(tenant.Key, "client", all[len(all)-n:]...).Want(200).JSON(); len(got["items"].([]any)) != min(n, 100) || len(got["invalid"].([]any)) != 0 {
						t.Errorf("%d ids: %d items", n, len(got["items"].([]any)))
					}
				})
				if took > most {
					t.Errorf("%d ids take %d statements", n, took)
				}
			}
		})
	}
}
