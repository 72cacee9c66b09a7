package db_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/ingest"
	"partnerapi/domain"
)

// office is a client whose users come, go and sign.
type office struct {
	*world
	client      domain.ClientID
	collections []domain.CollectionID
	users       []domain.UserID
	policies    []domain.PolicyID // of the whole client, of the group, of each collection
}

func newOffice(t *testing.T) *office {
	w := newWorld(t)
	o := &office{world: w, client: w.AddClient()}
	group := db.NewID[domain.GroupKind]()
	w.Add("groups", row{"client_id": o.client, "id": group, "name": "Manual", "manual": true, "created_at": noon})
	policy := func(kind domain.ScopeType, scope any) {
		id := db.NewID[domain.PolicyKind]()
		w.Add("policies", row{"client_id": o.client, "id": id, "scope_type": kind, "scope_id": scope, "renewal_period_days": 10, "created_at": noon})
		o.policies = append(o.policies, id)
	}
	policy(domain.TenantScope, o.client)
	policy(domain.GroupScope, group)
	for _, name := range []string{"a", "b"} {
		id := db.NewID[domain.CollectionKind]()
		w.Add("collections", row{"client_id": o.client, "id": id, "name": name, "name_key": name})
		policy(domain.CollectionScope, id)
		o.collections = append(o.collections, id)
	}
	for i := range 8 {
		u := w.AddUser(o.client, domain.RoleStandard, 750)
		if i%2 == 0 {
			w.Exec("UPDATE users SET group_id = $2 WHERE id = $1", u, group)
		}
		o.users = append(o.users, u)
	}
	return o
}

// step does one of the things that move a policy's counts.
func (o *office) step(ctx context.Context, r *rand.Rand) error {
	user, policy := o.users[r.IntN(len(o.users))], o.policies[r.IntN(len(o.policies))]
	collection := o.collections[r.IntN(len(o.collections))]
	switch r.IntN(10) {
	case 0:
		return o.signal(ctx, domain.Signal{Type: domain.PolicyPublished, Policy: policy})
	case 1, 2:
		return o.turn(ctx, user)
	case 3, 4:
		return o.addMember(ctx, o.client, collection, user)
	case 5:
		err := o.removeMember(ctx, o.client, collection, user)
		if domain.IsCode(err, domain.NotFound) { // not a member
			err = nil
		}
		return err
	default:
		version := 1
		if err := o.SQL().QueryRowContext(ctx, "SELECT version FROM policies WHERE id = $1", policy).Scan(&version); err != nil {
			return err
		}
		return o.signal(ctx, domain.Signal{Type: domain.PolicySigned, User: user, Policy: policy, Version: max(version-r.IntN(2), 1)})
	}
}

// signal takes a signal as of now.
func (o *office) signal(ctx context.Context, s domain.Signal) error {
	s.ID, s.At = db.NewID[domain.EventKind]().String(), o.Now()
	results, err := ingest.Apply(ctx, o.DB, []domain.Signal{s})
	if err == nil && results[0].Refusal != "" {
		err = fmt.Errorf("%s is refused: %s", s.Type, results[0].Refusal)
	}
	return err
}

// turn makes an active user inactive, and the other way round.
func (o *office) turn(ctx context.Context, user domain.UserID) error {
	return o.updateUser(ctx, user, func(u *domain.User) {
		u.Status = map[domain.UserStatus]domain.UserStatus{
			domain.Active: domain.Inactive, domain.Inactive: domain.Active,
		}[u.Status]
	})
}

// read reads all policies' counts, as a caller does.
func (o *office) read(ctx context.Context) (map[domain.PolicyID]domain.SignOff, error) {
	tenant, err := o.Tenant(o.caller(), o.client)
	if err != nil {
		return nil, err
	}
	slice, err := tenant.Policies(ctx, nil, domain.Window{Limit: 100})
	counts := map[domain.PolicyID]domain.SignOff{}
	for _, p := range slice.Rows {
		counts[p.ID] = *p.SignOff
	}
	return counts, err
}

// archive archives the policies at a time, or brings them back at NULL, as
// whoever writes policies does: their counts are then stale.
func (o *office) archive(at string) {
	o.T.Helper()
	o.Exec("UPDATE policies SET counted_until = '-infinity', archived_at = " + at)
}

// check holds what is read against a count of every user one by one.
func (o *office) check(after int) {
	o.T.Helper()
	counts, err := o.read(o.T.Context())
	o.Must(err)
	for i, p := range o.policies {
		var want domain.SignOff
		o.Scan(`SELECT count(u.id), count(s.user_id) FROM policies AS p
			LEFT JOIN users AS u ON u.status = 'active' AND CASE p.scope_type WHEN 'tenant' THEN true WHEN 'user_container' THEN u.group_id = p.scope_id
				ELSE p.scope_id IN (SELECT collection_id FROM collection_members WHERE user_id = u.id) END
			LEFT JOIN policy_signatures AS s ON s.policy_id = p.id AND s.user_id = u.id AND s.version = p.version
				AND s.signed_at + p.renewal_period_days * interval '1 day' > $2
			WHERE p.id = $1`, []any{p, o.Now()}, &want.Audience, &want.Acknowledged)
		if counts[p] != want {
			o.T.Fatalf("after %d steps policy %d shows %+v, not %+v", after, i, counts[p], want)
		}
	}
}

// TestPolicyCountsEqualARecount: whatever happened, and whenever it was read
// in between, a policy shows what counting anew gives.
func TestPolicyCountsEqualARecount(t *testing.T) {
	o := newOffice(t)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 200 {
		o.Must(o.step(t.Context(), r))
		if r.IntN(4) == 0 {
			o.Clock.Advance(time.Duration(r.IntN(72)) * time.Hour)
		}
		if r.IntN(6) == 0 {
			o.Clock.Step(time.Duration(r.IntN(200)-150) * time.Hour) // the clock is set, mostly back
		}
		if r.IntN(3) > 0 {
			o.check(i + 1)
		}
	}
	o.Must(o.ChangeOf(t.Context(), o.client, func(ctx context.Context, c *db.Change, t *db.Tenant) error {
		return t.DeleteCollection(ctx, c, o.collections[0])
	}))
	o.check(201)
	o.archive("now()")
	o.Must(o.turn(t.Context(), o.users[0]))
	o.archive("NULL")
	o.check(202)
}

// rounds has writers do things at random, and checks the counts after each of several rounds.
func (o *office) rounds(writers int, do func(r *rand.Rand) error) {
	o.T.Helper()
	for round := range 10 {
		o.atOnce(writers, func(writer int) error {
			r := rand.New(rand.NewPCG(uint64(round), uint64(writer)))
			for range 10 {
				if err := do(r); err != nil {
					return err
				}
			}
			return nil
		})
		o.check(round)
	}
}
