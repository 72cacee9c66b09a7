// Package domain is the language of the service: the types, rules and states
// of partners, clients, users and what happens to them. It does no I/O and
// imports the standard library only, so that every other package can speak it.
package domain
