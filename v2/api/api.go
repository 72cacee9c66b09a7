// Package api declares the operations of version 2 of the interface: their inputs,
// outputs, paths, scopes and documentation. Package v2 implements them, and needs a
// database; a program that calls the service over HTTP (package client) needs this
// package alone.
//
// ListUsers is an operation, ListUsersInput is what it takes, and User an item of its
// pages.
package api

import "partnerapi/domain"

// ClientPath is the path of an operation on one client.
type ClientPath struct {
	ClientID domain.ClientID `path:"client_id" doc:"Opaque id of the client."`
}

// BudgetClient is the client that a call is charged to.
func (p ClientPath) BudgetClient() domain.ClientID { return p.ClientID }

// UserPath is the path of an operation on one user.
type UserPath struct {
	UserID domain.UserID `path:"user_id" doc:"Opaque id of the user."`
}
