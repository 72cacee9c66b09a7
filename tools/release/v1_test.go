package main

import (
	"errors"
	"fmt"
)

// v1Round is v2Round through v1.
func (u *load) v1Round() error {
	var clients struct {
		Items []struct{ ID int }
	}
	if err := u.send("GET", "/v1/clients?limit=3", nil, &clients); err != nil {
		return err
	}
	if len(clients.Items) == 0 {
		return errors.New("there are no clients")
	}
	users := fmt.Sprintf("/v1/clients/%d/users", clients.Items[0].ID)
	user, err := u.create(users)
	return errors.Join(err,
		u.send("POST", "/v1/users/"+user, map[string]any{"preferred_language": "es"}, nil),
		u.send("GET", users+"?limit=20", nil, nil),
	)
}
