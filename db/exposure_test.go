//go:build slow

package db_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"partnerapi/db"
	"partnerapi/domain"
)

// TestResolvingBesideImports: changes that resolve a user's exposures and an
// import that changes their breaches lock the same exposures, and wait for each
// other.
func TestResolvingBesideImports(t *testing.T) {
	w := newWorld(t)
	client := w.AddClient()
	var users []domain.UserID
	for range 4 {
		users = append(users, w.AddUser(client, domain.RoleStandard, 750))
	}
	catalogue := func(title string) []domain.Breach {
		list := make([]domain.Breach, 20)
		for i := range list {
			list[i] = domain.Breach{Name: fmt.Sprintf("Breach %02d", i), Title: title, Severity: domain.SeverityLow, DataClasses: []string{"Names"}}
		}
		return list
	}
	list := catalogue("0")
	_, _, err := w.ImportBreaches(t.Context(), list)
	w.Must(err)
	for i, user := range users { // as they lie in the table, no two users' are in one order
		order := slices.Clone(list)
		if i%2 == 0 {
			slices.Reverse(order)
		}
		for _, b := range order {
			w.Add("exposures", row{"client_id": client, "user_id": user, "breach_name": b.Name, "data_classes": []string{"Names"}, "first_seen_at": noon})
		}
	}
	w.atOnce(len(users)+1, func(n int) (err error) {
		for i := 0; i < 50 && err == nil; i++ {
			if n == len(users) {
				var changed int
				if _, changed, err = w.ImportBreaches(t.Context(), catalogue(fmt.Sprint(i+1))); changed != len(list) {
					t.Errorf("%d breaches change", changed)
				}
				continue
			}
			err = w.Change(w.As(t.Context()), func(ctx context.Context, c *db.Change) error {
				u, err := c.LockUser(ctx, users[n])
				for _, b := range list {
					if err == nil {
						_, err = u.ResolveExposure(ctx, c, b.Name)
					}
				}
				return err
			})
			w.Exec("UPDATE exposures SET resolved_at = NULL WHERE user_id = $1 AND breach_name = $2", users[n], list[0].Name)
		}
		return err
	})
}
