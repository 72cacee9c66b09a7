//go:build slow

package v1compat

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"partnerapi/idmap"
	"partnerapi/v2/v2test"
)

// TestMovesAtOnce: however many move the same users between collections at a
// time, a user is in one at most, in every visible state, and
// the counts of members are right.
func TestMovesAtOnce(t *testing.T) {
	t.Parallel()
	s := start(t, setup{Options: v2test.Options{Limits: v2test.Unlimited}})
	tenant := s.AddPartner("Partner")
	client := s.AddClient(tenant, "Client").ID
	var users, members []string
	for i := range 5 {
		users = append(users, s.AddUser(tenant, client, v2test.Email(i)).ID.UUID())
	}
	for i := range 4 {
		collection := s.AddCollection(client, fmt.Sprint("Collection ", i))
		members = append(members, "/v1/clients/"+s.number(client)+"/collections/"+s.numberOf(idmap.Collection, idmap.UUID(collection))+"/members")
	}
	const twice = "SELECT count(*) FROM (SELECT user_id FROM collection_members GROUP BY user_id HAVING count(*) > 1) AS m"
	var movers sync.WaitGroup
	for worker := range 6 {
		r := rand.New(rand.NewPCG(5, uint64(worker)))
		movers.Go(func() {
			for range 40 {
				user, list := users[r.IntN(len(users))], members[r.IntN(len(members))]
				if r.IntN(8) == 0 {
					if got := s.Do("DELETE", list+"/"+user, tenant.Key, nil); got.Status != http.StatusOK && got.Status != http.StatusNotFound {
						t.Errorf("%d %s", got.Status, got.Body)
					}
				} else if got := s.Do("POST", list, tenant.Key, map[string]string{"user_infima_id": user}); got.Status != http.StatusOK {
					t.Errorf("%d %s", got.Status, got.Body)
				}
				if n := s.Number(twice); n != 0 {
					t.Errorf("%d users are in two collections", n)
				}
			}
		})
	}
	movers.Wait()
	if n := s.Number(`SELECT count(*) FROM collections AS k WHERE member_count <>
		(SELECT count(*) FROM collection_members AS m WHERE m.collection_id = k.id)`); n != 0 {
		t.Errorf("%d collections count wrong", n)
	}
	for _, user := range users {
		s.Do("POST", members[0], tenant.Key, map[string]string{"user_infima_id": user}).Want(http.StatusOK)
	}
	all := s.Get(members[0], tenant.Key).Want(http.StatusOK)
	if all.Field("total") != 5.0 {
		t.Errorf("all moved to one: %s", all.Body)
	}
	s.Clock.Advance(time.Hour)
	s.Do("POST", members[0], tenant.Key, map[string]string{"user_infima_id": users[0]}).Want(http.StatusOK)
	if again := s.Get(members[0], tenant.Key); string(again.Body) != string(all.Body) {
		t.Errorf("a member who is added again moves: %s, not %s", again.Body, all.Body)
	}
}
